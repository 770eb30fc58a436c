package mcpserver

import (
	"context"
	"errors"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/terminal"
)

// What can be followed has a URI. That of the sessions is always there: a host that has tools for
// resources offers them from the start then, and not from the first job on.
const (
	sessionsURI = "limpet://sessions"

	jobURI      = "limpet://jobs/{job}/log"
	terminalURI = "limpet://terminals/{terminal}/screen"
)

// logShown is how much of a job's log its resource has.
const logShown = 64 << 10

// addResources offers the logs of jobs and the screens of terminals, with those that there
// are in the list.
func (s *Server) addResources() {
	const mime = "text/plain"
	if s.offers(groupJobs) {
		s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
			Name: "job log", Title: "Log of a job", URITemplate: jobURI, MIMEType: mime, Description: "The last 64 KiB that a background job has printed, as text.",
		}, s.readResource)
	}
	if s.offers(groupTerminals) {
		s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
			Name: "terminal screen", Title: "Screen of a terminal", URITemplate: terminalURI, MIMEType: mime, Description: "What is on the screen of a terminal now, as text.",
		}, s.readResource)
	}
	s.followed.changed() // Nobody listens yet.
	s.mcp.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == "resources/list" {
				s.followed.changed() // Some may have been forgotten for their age.
			}
			return next(ctx, method, req)
		}
	})
}

// readResource reads a log or a screen.
func (s *Server) readResource(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	text, err := s.resource(req.Params.URI)
	if errors.Is(err, jobs.ErrNotFound) || errors.Is(err, terminal.ErrNotFound) {
		return nil, mcp.ResourceNotFoundError(req.Params.URI)
	}
	if err != nil {
		return nil, err
	}
	var names []string // The text has them, where each was.
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: s.mask(text, &names)}}}, nil
}

func (s *Server) resource(uri string) (string, error) {
	if id, ok := idIn(uri, jobURI); ok && s.offers(groupJobs) {
		r, err := s.sessions.Jobs()
		if err != nil {
			return "", err
		}
		end := int64(-logShown)
		log, err := r.Log(id, jobs.LogOptions{Offset: &end, Bytes: logShown})
		return plain([]byte(log.Text), false), err
	}
	if uri == sessionsURI {
		return s.listSessions().text(), nil
	}
	id, ok := idIn(uri, terminalURI)
	if !ok || !s.offers(groupTerminals) {
		return "", jobs.ErrNotFound
	}
	t, err := s.ownTerminal(id)
	if err != nil {
		return "", err
	}
	screen, err := t.Screen()
	if err != nil {
		return "", err
	}
	return screen.Text(), nil
}

// ownTerminal returns a terminal of this program.
func (s *Server) ownTerminal(id string) (*terminal.Terminal, error) {
	r, err := s.sessions.Terminals()
	if err != nil {
		return nil, err
	}
	t, err := r.Get(id)
	if err == nil && t.Info().Owner != r.Owner() {
		err = terminal.ErrNotFound
	}
	return t, err
}

// idIn is what stands in a URI for the name in braces of a template.
func idIn(uri, template string) (string, bool) {
	before, rest, _ := strings.Cut(template, "{")
	_, after, _ := strings.Cut(rest, "}")
	id, ok := strings.CutPrefix(uri, before)
	if !ok {
		return "", false
	}
	id, ok = strings.CutSuffix(id, after)
	return id, ok && id != "" && !strings.Contains(id, "/")
}

// uriOf is the opposite.
func uriOf(template, id string) string {
	before, rest, _ := strings.Cut(template, "{")
	_, after, _ := strings.Cut(rest, "}")
	return before + id + after
}

// listed are the resources that there are now, by URI.
func (s *Server) listed() map[string]*mcp.Resource {
	list := map[string]*mcp.Resource{sessionsURI: {URI: sessionsURI, Name: "sessions", Title: "Sessions: where they are, and what runs there", MIMEType: "text/plain"}}
	put := func(template, id, name, what string) {
		uri := uriOf(template, id)
		var names []string // As in what is read.
		what = s.mask(what, &names)
		list[uri] = &mcp.Resource{URI: uri, Name: name, Title: name + ": " + brief(what), MIMEType: "text/plain"}
	}
	if r, err := s.jobsIfOffered(); err == nil {
		all, _ := r.List(jobs.Filter{}) // A list is better than none.
		for _, job := range all {
			put(jobURI, job.ID, "log of job "+job.ID, job.Command)
		}
	}
	if r, err := s.terminalsIfOffered(); err == nil {
		all, _ := r.List() // As above.
		for _, info := range all {
			if info.Owner == r.Owner() {
				put(terminalURI, info.ID, "screen of terminal "+info.ID, commandOf(info))
			}
		}
	}
	return list
}

var errNotOffered = errors.New("not offered")

func (s *Server) jobsIfOffered() (*jobs.Registry, error) {
	if !s.offers(groupJobs) {
		return nil, errNotOffered
	}
	return s.sessions.Jobs()
}

func (s *Server) terminalsIfOffered() (*terminal.Registry, error) {
	if !s.offers(groupTerminals) {
		return nil, errNotOffered
	}
	return s.sessions.Terminals()
}
