package mcpserver

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/session"
)

// nothing is what a tool without arguments is asked.
type nothing struct{}

// sessionsOut is what session_list returns.
type sessionsOut struct {
	Sessions []sessionOut `json:"sessions"`
}

type sessionOut struct {
	Name        string    `json:"name"`
	State       string    `json:"state" jsonschema:"new: its bash was not started yet." enum:"new,idle,busy"`
	Dir         string    `json:"dir,omitempty"`
	Running     string    `json:"running,omitempty" jsonschema:"The command that runs now."`
	Created     time.Time `json:"created"`
	LastUsed    time.Time `json:"last_used"`
	Commands    int       `json:"commands" jsonschema:"How many were run."`
	Jobs        int       `json:"jobs" jsonschema:"How many run."`
	Terminals   int       `json:"terminals" jsonschema:"How many run."`
	Checkpoints []string  `json:"checkpoints,omitempty"`
	Policy      string    `json:"policy,omitempty" jsonschema:"The sandbox that it is in."`
}

type sessionIn struct {
	Session string `json:"session" jsonschema:"The name of the session."`
}

type closedOut struct {
	Session string `json:"session"`
	Closed  bool   `json:"closed"`
}

type forkIn struct {
	Session    string `json:"session,omitempty" jsonschema:"The one to fork. Default: default."`
	NewSession string `json:"new_session" jsonschema:"The name of the new one: letters, digits, dots, dashes and underscores."`
}

type forkOut struct {
	Session    string `json:"session"`
	NewSession string `json:"new_session"`
	Dir        string `json:"dir"`
}

type checkpointIn struct {
	Session    string `json:"session,omitempty" jsonschema:"Default: default."`
	Checkpoint string `json:"checkpoint" jsonschema:"Its name: letters, digits, dots, dashes and underscores."`
}

type checkpointOut struct {
	Session     string   `json:"session"`
	Checkpoint  string   `json:"checkpoint"`
	Dir         string   `json:"dir"`
	Checkpoints []string `json:"checkpoints" jsonschema:"All that the session has, the oldest first."`
}

type rollbackOut struct {
	Session    string   `json:"session"`
	Checkpoint string   `json:"checkpoint"`
	Dir        string   `json:"dir"`
	Lost       []string `json:"lost,omitempty" jsonschema:"What is not as it was at the checkpoint."`
}

func (s *Server) addSessions() {
	add(s, tool[nothing, sessionsOut]{
		name: "session_list", title: "List sessions", effect: looks, call: listSessions,
		example:     `{}`,
		description: "List the sessions, with where they are, what runs in them, and how many jobs and terminals they have. It is cheap.",
	})
	add(s, tool[sessionIn, closedOut]{
		name: "session_close", title: "Close a session", effect: destroys, call: closeSession,
		example: `{"session": "build"}`,
		description: "End a session: its bash with its variables and functions, what runs in it, its jobs and its terminals. What they have printed can still be read. " +
			"A session of that name can be used again at once; it starts anew.",
	})
	add(s, tool[forkIn, forkOut]{
		name: "session_fork", title: "Fork a session", effect: adds, call: forkSession,
		example: `{"session": "default", "new_session": "trial"}`,
		description: "Make a new session that starts with the directory, variables, functions and options that another has now, and is separate from then on. " +
			"Use it to try something without disturbing the first, or to work in parallel. Files are shared (in a sandbox those of the workspace, and not /tmp), and jobs stay where they are.",
	})
	add(s, tool[checkpointIn, checkpointOut]{
		name: "session_checkpoint", title: "Remember a session's state", effect: adds, call: checkpointSession,
		example:     `{"checkpoint": "before"}`,
		description: "Remember the directory, variables, functions and options of a session under a name, for session_rollback. It does not remember files.",
	})
	add(s, tool[checkpointIn, rollbackOut]{
		name: "session_rollback", title: "Bring a session's state back", effect: destroys, call: rollbackSession,
		example:     `{"checkpoint": "before"}`,
		description: "Bring the directory, variables, functions and options of a session back to a checkpoint, which stays. Files are left as they are (but what a sandbox had in its own /tmp is gone), and jobs run on.",
	})
}

func listSessions(_ context.Context, c *call, _ nothing) (sessionsOut, error) {
	return c.server.listSessions(), nil
}

func (s *Server) listSessions() sessionsOut {
	out := sessionsOut{Sessions: []sessionOut{}}
	for _, i := range s.sessions.List() {
		out.Sessions = append(out.Sessions, sessionOut{
			i.Name, string(i.State), i.Dir, i.Running, i.Created, i.LastUsed, i.Commands, i.Jobs, i.Terminals, i.Checkpoints, i.Policy,
		})
	}
	return out
}

func closeSession(ctx context.Context, c *call, in sessionIn) (closedOut, error) {
	in.Session = c.server.named(in.Session)
	sess, err := c.server.sessions.Get(in.Session)
	if err != nil {
		return closedOut{}, refused(err)
	}
	stop := c.waits(ctx, sess)
	err = sess.Close()
	stop()
	c.server.followed.changed()
	if err != nil {
		return closedOut{}, refused(err)
	}
	return closedOut{in.Session, true}, nil
}

func forkSession(ctx context.Context, c *call, in forkIn) (forkOut, error) {
	in.Session = c.server.sessionOr(in.Session)
	sess, err := c.server.sessions.Get(in.Session)
	if err != nil {
		return forkOut{}, refused(err)
	}
	if err := c.turn(ctx, sess); err != nil {
		return forkOut{}, err
	}
	defer c.waits(ctx, sess)()
	fork, err := sess.Fork(ctx, in.NewSession)
	if err != nil {
		return forkOut{}, refused(err)
	}
	info, err := fork.Info(ctx)
	if err != nil {
		return forkOut{}, refused(err)
	}
	c.place(info)
	return forkOut{in.Session, in.NewSession, info.Dir}, nil
}

func checkpointSession(ctx context.Context, c *call, in checkpointIn) (checkpointOut, error) {
	sess, err := c.server.open(ctx, &in.Session)
	if err != nil {
		return checkpointOut{}, err
	}
	if err := c.turn(ctx, sess); err != nil {
		return checkpointOut{}, err
	}
	defer c.waits(ctx, sess)()
	if err := sess.Checkpoint(ctx, in.Checkpoint); err != nil {
		return checkpointOut{}, refused(err)
	}
	info, err := sess.Info(ctx)
	if err != nil {
		return checkpointOut{}, refused(err)
	}
	return checkpointOut{in.Session, in.Checkpoint, info.Dir, info.Checkpoints}, nil
}

func rollbackSession(ctx context.Context, c *call, in checkpointIn) (rollbackOut, error) {
	in.Session = c.server.sessionOr(in.Session)
	sess, err := c.server.sessions.Get(in.Session)
	if err != nil {
		return rollbackOut{}, refused(err)
	}
	if err := c.turn(ctx, sess); err != nil {
		return rollbackOut{}, err
	}
	defer c.waits(ctx, sess)()
	restart, err := sess.Rollback(ctx, in.Checkpoint)
	if err != nil {
		return rollbackOut{}, refused(err)
	}
	info, err := sess.Info(ctx)
	if err != nil {
		return rollbackOut{}, refused(err)
	}
	c.place(info)
	return rollbackOut{in.Session, in.Checkpoint, info.Dir, restart.Lost}, nil
}

// sessionOr is the name of a session, or that of the default.
func (s *Server) sessionOr(name string) string { return s.named(cmp.Or(name, defaultSession)) }

// named is the name of the session that a call means by a name; empty if it names none.
func (s *Server) named(name string) string {
	if name == defaultSession {
		return s.opts.Session
	}
	return name
}

// open returns the session of a name, of which an empty one is the default, and makes it
// if there is none.
func (s *Server) open(ctx context.Context, name *string) (*session.Session, error) {
	*name = s.sessionOr(*name)
	sess, err := s.sessions.Open(ctx, *name, nil)
	if err != nil {
		return nil, refused(err)
	}
	return sess, nil
}

func (o sessionsOut) text() string {
	if len(o.Sessions) == 0 {
		return "there are no sessions; the first run_command makes one"
	}
	var text strings.Builder
	for _, s := range o.Sessions {
		fmt.Fprintf(&text, "%s: %s", s.Name, s.State)
		if s.Dir != "" {
			fmt.Fprintf(&text, ", in %s", s.Dir)
		}
		if s.Running != "" {
			fmt.Fprintf(&text, ", runs: %s", brief(s.Running))
		}
		fmt.Fprintf(&text, "; %d commands, %d jobs, %d terminals", s.Commands, s.Jobs, s.Terminals)
		if len(s.Checkpoints) > 0 {
			fmt.Fprintf(&text, "; checkpoints: %s", strings.Join(s.Checkpoints, ", "))
		}
		if s.Policy != "" {
			fmt.Fprintf(&text, "; sandbox: %s", s.Policy)
		}
		fmt.Fprintf(&text, "; last used %v ago", time.Since(s.LastUsed).Round(time.Second))
		text.WriteByte('\n')
	}
	return strings.TrimSuffix(text.String(), "\n")
}

func (o closedOut) text() string { return fmt.Sprintf("session %q is closed", o.Session) }

func (o forkOut) text() string {
	return fmt.Sprintf("session %q is a fork of %q, in %s", o.NewSession, o.Session, o.Dir)
}

func (o checkpointOut) text() string {
	text := fmt.Sprintf("session %q is remembered as %q, in %s", o.Session, o.Checkpoint, o.Dir)
	if len(o.Checkpoints) > 1 {
		text += "; it has the checkpoints " + strings.Join(o.Checkpoints, ", ")
	}
	return text
}

func (o rollbackOut) text() string {
	text := fmt.Sprintf("session %q is as it was at %q, in %s", o.Session, o.Checkpoint, o.Dir)
	if len(o.Lost) > 0 {
		text += "; lost: " + strings.Join(o.Lost, ", ")
	}
	return text
}
