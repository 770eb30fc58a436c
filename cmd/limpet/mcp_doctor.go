package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/mcpserver"
)

func mcpDoctorCommand() *cobra.Command {
	var flags mcpFlags
	cmd := &cobra.Command{
		Use:   "doctor [HOST] [flags]",
		Short: "Start limpet mcp as a host would, and say what is wrong",
		Long: `Doctor starts limpet mcp with these flags as an agent host would: in this directory, with as
much of this environment as the host hands on, and in its version of the protocol. It
asks for the tools, makes three calls, ends it, and prints a line for each step. The exit
code is 1 if something is wrong.

There are ` + hostNames() + `.`,
		Example: `  limpet mcp doctor
  limpet mcp doctor codex --sandbox workspace-write --workspace ~/src/project`,
		Args:              wants(0, 1, "wants the name of one host at most: "+hostNames()),
		ValidArgsFunction: completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			host := mcpHost{title: "a host"}
			if len(args) > 0 {
				var err error
				if host, err = hostNamed(cmd, args[0]); err != nil {
					return err
				}
			}
			argv, err := started(cmd, &flags)
			if err != nil {
				return err
			}
			return examine(cmd.Context(), cmd.OutOrStdout(), host, argv)
		},
	}
	flags.add(cmd)
	return cmd
}

// stepPatience is how long each step may take: a sandbox, and a bash, are started in one.
const stepPatience = 30 * time.Second

// examine starts the server, and says how it is.
func examine(ctx context.Context, out io.Writer, host mcpHost, argv []string) error {
	d := &doctor{out: out, argv: argv}
	d.say("as %s would: %s", host.title, strings.Join(argv, " "))
	defer d.end()
	if err := d.start(ctx, host); err != nil {
		return d.wrong("it does not start: %v", err)
	}
	d.tools(ctx)
	d.calls(ctx)
	d.end()
	if d.problems > 0 {
		return exit(1)
	}
	d.say("all is well")
	return nil
}

// doctor is an examination.
type doctor struct {
	out      io.Writer // of people
	argv     []string
	session  *mcp.ClientSession
	said     words // on its standard error
	problems int
}

// words are what a program says while it runs.
type words struct {
	mu   sync.Mutex
	said bytes.Buffer
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said.Write(p)
}

// take returns what was said since the last time.
func (w *words) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.said.Reset()
	return strings.TrimSpace(w.said.String())
}

func (d *doctor) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// wrong says what is wrong, with what the server said itself. The error is the exit code.
func (d *doctor) wrong(format string, args ...any) error {
	d.problems++
	d.say("WRONG: "+format, args...)
	if said := d.said.take(); said != "" {
		d.say("it said: %s", strings.ReplaceAll(said, "\n", "\n         "))
	}
	return exit(1)
}

// start starts the server, and says hello.
func (d *doctor) start(ctx context.Context, host mcpHost) error {
	ctx, cancel := context.WithTimeout(ctx, stepPatience)
	defer cancel()
	cmd := exec.Command(d.argv[0], d.argv[1:]...) //nolint:gosec // It is this program.
	cmd.Stderr = &d.said
	if host.env != nil {
		cmd.Env = slices.DeleteFunc(os.Environ(), func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			return !slices.Contains(host.env, name)
		})
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "limpet mcp doctor", Version: version()}, nil)
	began := time.Now()
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: host.protocol})
	if err != nil {
		return err
	}
	d.session = session
	d.say("ok: it answers after %d ms, in version %s of the protocol", time.Since(began).Milliseconds(), session.InitializeResult().ProtocolVersion)
	return nil
}

// tools asks for the tools.
func (d *doctor) tools(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stepPatience)
	defer cancel()
	list, err := d.session.ListTools(ctx, nil)
	if err != nil {
		_ = d.wrong("it does not say which tools it has: %v", err)
		return
	}
	size, err := json.Marshal(list.Tools)
	if err != nil || len(list.Tools) == 0 {
		_ = d.wrong("it has no tools")
		return
	}
	d.say("ok: it has %d tools, in %d bytes", len(list.Tools), len(size))
}

// calls makes three calls: that commands run, that an exit code comes through, and that a session
// stays where it was left.
func (d *doctor) calls(ctx context.Context) {
	where, ok := d.call(ctx, "pwd", 0)
	if !ok {
		return
	}
	where, _, _ = strings.Cut(where, "\n")
	if home, err := os.UserHomeDir(); where == "/" || err == nil && where == home {
		_ = d.wrong("sessions start in %s: --dir or --workspace says where the project is", where)
	} else {
		d.say("ok: commands run, in %s", where)
	}
	if _, ok := d.call(ctx, "cd / && x=kept; (exit 3)", 3); ok {
		d.say("ok: an exit code comes through")
	}
	if text, ok := d.call(ctx, `echo "$PWD $x"`, 0); ok {
		if !strings.HasPrefix(text, "/ kept\n") {
			_ = d.wrong("a session does not stay where it was left: %s", text)
			return
		}
		d.say("ok: a session stays where it was left")
	}
}

// call runs a command, which is to exit with a code, and returns its answer.
func (d *doctor) call(ctx context.Context, command string, code int) (text string, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, stepPatience)
	defer cancel()
	res, err := d.session.CallTool(ctx, &mcp.CallToolParams{Name: "run_command", Arguments: map[string]any{"command": command}})
	if err != nil {
		_ = d.wrong("%s is not answered: %v", command, err)
		return "", false
	}
	for _, content := range res.Content {
		if one, ok := content.(*mcp.TextContent); ok {
			text += one.Text
		}
	}
	if got, known := res.Meta[mcpserver.MetaExitCode].(float64); res.IsError || !known || int(got) != code {
		_ = d.wrong("%s: %s", command, text)
		return "", false
	}
	return text, true
}

// end ends the server. It is safe to call twice.
func (d *doctor) end() {
	if d.session == nil {
		return
	}
	err := d.session.Close()
	d.session = nil
	var exited *exec.ExitError
	if errors.As(err, &exited) {
		_ = d.wrong("it ends with %v", exited)
	}
}
