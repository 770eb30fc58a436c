package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// answer is what a call of a tool has come to.
type answer struct {
	failed bool
	text   string
}

// calls calls a tool, and does not wait for it.
func calls(t *testing.T, c *mcp.ClientSession, name string, arguments map[string]any) <-chan answer {
	ended := make(chan answer, 1)
	go func() {
		res, err := c.CallTool(testenv.Context(t), &mcp.CallToolParams{Name: name, Arguments: arguments})
		if err != nil {
			ended <- answer{true, err.Error()}
			return
		}
		ended <- answer{res.IsError, res.Content[0].(*mcp.TextContent).Text}
	}()
	return ended
}

// over ends the one who answers, and then the agent.
func over(tm *seat, c *mcpClient) {
	tm.t.Helper()
	tm.types(ctrlC)
	tm.exits(codeSignal + int(syscall.SIGINT))
	c.leaves()
	c.gone("closed")
}

func runs(command string) map[string]any { return map[string]any{"command": command} }

// An agent waits for a person, who answers at a terminal that has nothing to do with it.
func TestAPersonAnswersWhatAnAgentWants(t *testing.T) {
	testenv.Slow(t)
	for name, args := range map[string][]string{"here": nil, "kept": {"--keep"}} {
		t.Run(name, func(t *testing.T) {
			p := newMCPPlace(t)
			t.Setenv("XDG_STATE_HOME", p.state)
			c := p.stdio(append([]string{"--approve", "ask"}, args...)...)
			assert.False(t, (<-calls(t, c.ClientSession, "run_command", runs("ls | wc -l"))).failed, "it changes nothing")

			waits := calls(t, c.ClientSession, "run_command", runs("touch one"))
			testenv.Await(t, "the question", func() bool { return p.limpet("approvals", "list", "--json") != "" })
			var q struct {
				ID, From, Session, Dir, Script, Reason string
				Age                                    float64 `json:"age_seconds"`
				Left                                   float64 `json:"left_seconds"`
			}
			require.NoError(t, json.Unmarshal([]byte(p.limpet("approvals", "list", "--json")), &q))
			assert.Equal(t, "touch one", q.Script)
			assert.Equal(t, p.dir, q.Dir)
			assert.Equal(t, "it writes files", q.Reason)
			assert.Regexp(t, `^limpet mcp for \S+ \S+$`, q.From)
			assert.Positive(t, q.Age)
			assert.Positive(t, q.Left)
			require.NoFileExists(t, filepath.Join(p.dir, "one"))

			tm := onTerminal(t, p.home, "xterm", "approvals", "answer", q.ID[:6])
			tm.sees("session " + q.Session + ", asks: may this run in " + p.dir)
			tm.sees("  | touch one\r\n")
			tm.types("y")
			tm.exits(0)
			assert.False(t, (<-waits).failed)
			require.FileExists(t, filepath.Join(p.dir, "one"))

			tm = onTerminal(t, p.home, "xterm", "approvals", "answer", "--wait")
			tm.sees("waits for questions, until Ctrl-C")
			waits = calls(t, c.ClientSession, "run_command", map[string]any{"command": "tee two", "stdin": "some text"})
			tm.sees("  | tee two\r\n")
			tm.sees("It reads:")
			tm.sees("  | some text\r\n")
			tm.types("r")
			tm.sees("no, because: ")
			tm.types("call it three\n")
			refused := <-waits
			assert.True(t, refused.failed)
			assert.Equal(t, "not approved: tee two: it writes files; the answer was no: call it three. Nothing ran. Do it in another way, or tell the user why it is needed.", refused.text)
			require.NoFileExists(t, filepath.Join(p.dir, "two"))

			waits = calls(t, c.ClientSession, "terminal_create", map[string]any{"argv": []string{"touch", "three"}})
			tm.sees("  | touch three\r\n")
			tm.types("s")
			assert.False(t, (<-waits).failed)
			testenv.Await(t, "the file", func() bool { return exec.Command("test", "-e", filepath.Join(p.dir, "three")).Run() == nil })
			tm.types(ctrlC)
			tm.exits(codeSignal + int(syscall.SIGINT))
			c.leaves()
			if args != nil {
				p.closeKept()
			}
			p.gone("closed")
		})
	}
}

// A call that is given up asks no more, and whoever is at the question is told.
func TestAQuestionIsTakenAwayWithTheCall(t *testing.T) {
	p := newMCPPlace(t)
	t.Setenv("XDG_STATE_HOME", p.state)
	c := p.stdio("--approve", "ask")
	ctx, cancel := context.WithCancel(testenv.Context(t))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = c.CallTool(ctx, &mcp.CallToolParams{Name: "run_command", Arguments: runs("touch one")}) // It is cancelled.
	}()
	tm := onTerminal(t, p.home, "xterm", "approvals", "answer", "--wait")
	tm.sees("any other key: no")
	cancel()
	<-ended
	tm.sees("that is not asked any more")
	tm.types(ctrlC)
	tm.exits(codeSignal + int(syscall.SIGINT))
	require.NoFileExists(t, filepath.Join(p.dir, "one"))
	c.leaves()
	p.gone("closed")
}

func TestNobodyAnswersInTime(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	c := p.stdio("--approve", "ask", "--approve-wait", "100ms")
	const other, stop = "Go on with what needs no approval, or tell the user what is to be approved.", "That is question 3 in a row without a yes: stop trying, and tell the user what is to be approved."
	for _, next := range []string{other, other, stop} {
		refused := <-calls(t, c.ClientSession, "run_command", runs("touch one"))
		assert.True(t, refused.failed)
		assert.Equal(t, "not approved: touch one: it writes files; there is nobody to ask: nobody has answered within 100ms; a person answers by limpet approvals answer, at a terminal. Nothing ran. "+next, refused.text)
	}
	assert.Empty(t, p.limpet("approvals", "list", "--json"))
	c.leaves()
	p.gone("closed")
}

func TestWhatIsDeniedAsksNobody(t *testing.T) {
	p := newMCPPlace(t)
	c := p.stdio("--approve", "deny")
	refused := <-calls(t, c.ClientSession, "run_command", runs("touch one"))
	assert.Contains(t, refused.text, "there is nobody to ask: it was started with --approve deny")
	assert.False(t, (<-calls(t, c.ClientSession, "run_command", runs("ls"))).failed)
	c.leaves()
	p.gone("closed")
}

// What an agent runs cannot answer, not even on a terminal of its own.
func TestAnAgentCannotAnswerItself(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	t.Setenv("XDG_STATE_HOME", p.state)
	c := p.stdio("--approve", "ask")
	started := calls(t, c.ClientSession, "terminal_create", map[string]any{"argv": []string{"bash", "--norc"}})
	tm := onTerminal(t, p.home, "xterm", "approvals", "answer", "--wait")
	tm.sees("  | bash --norc\r\n")
	tm.types("y")
	res := <-started
	require.False(t, res.failed, res.text)
	list, err := c.CallTool(testenv.Context(t), &mcp.CallToolParams{Name: "terminal_list"})
	require.NoError(t, err)
	b, err := json.Marshal(list.StructuredContent)
	require.NoError(t, err)
	var all struct{ Terminals []struct{ Terminal string } }
	require.NoError(t, json.Unmarshal(b, &all))
	require.Len(t, all.Terminals, 1)
	id := all.Terminals[0].Terminal
	typed := calls(t, c.ClientSession, "terminal_send_keys", map[string]any{"terminal": id, "keys": []string{"limpet approvals answer --wait; echo status $?", "Enter"}, "settle_seconds": 0})
	tm.sees("may this be typed to " + id)
	tm.types("s")
	require.False(t, (<-typed).failed)
	testenv.Await(t, "it to be refused", func() bool {
		res := <-calls(t, c.ClientSession, "terminal_screen", map[string]any{"terminal": id})
		return strings.Contains(res.text, "or runs in a session of limpet") && strings.Contains(res.text, "status 1")
	})
	over(tm, c)
}

// Whatever makes a name mean something else is approved as such, and from then on nothing is taken for what it says.
func TestWhatMakesANameAnotherAsks(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	t.Setenv("XDG_STATE_HOME", p.state)
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, "e"), []byte("ls() { touch made; }\n"), 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(p.dir, "bin"), 0o700))
	require.NoError(t, os.Symlink("/bin/touch", filepath.Join(p.dir, "bin", "ls")))
	c := p.stdio("--approve", "ask")
	tm := onTerminal(t, p.home, "xterm", "approvals", "answer", "--wait")
	in := func(session, command string) map[string]any {
		return map[string]any{"session": session, "command": command}
	}
	// asks sees the question about a script, and says no.
	asks := func(session, script, why string) {
		asked := calls(t, c.ClientSession, "run_command", in(session, script))
		tm.sees("  | " + script + "\r\n")
		tm.sees(why)
		tm.sees("any other key: no")
		tm.types("n")
		assert.Contains(t, (<-asked).text, why, session)
	}
	for session, row := range map[string]struct{ script, then, why string }{
		"function":  {"ls() { touch made; }", "ls", "ls is a function here, since: ls()"},
		"alias":     {"shopt -s expand_aliases; alias ls='touch made'", "ls", "ls is an alias here"},
		"path":      {"PATH=$PWD/bin:$PATH", "ls", "PATH was changed here: ls is"},
		"hash":      {"hash -p /bin/touch ls", "ls", "ls is /bin/touch here"},
		"startup":   {"export BASH_ENV=$PWD/e", "bash -c ls", "BASH_ENV was exported here"},
		"sourced":   {"source ./e", "ls", "ls is a function here, since: source ./e"},
		"evaluated": {"eval 'ls() { touch made; }'", "ls", "ls is a function here"},
		"trapped":   {"trap 'touch made' USR1", "ls", "a trap for SIGUSR1 runs commands"},
		"pointed":   {"declare -n PATH=x", "ls", "PATH was changed here"},
	} {
		made := calls(t, c.ClientSession, "run_command", in(session, row.script))
		tm.sees("  | " + row.script + "\r\n")
		tm.sees("any other key: no")
		tm.types("s") // It does not mean that of what comes after it.
		<-made
		if session != "trapped" && session != "pointed" {
			assert.False(t, (<-calls(t, c.ClientSession, "run_command", in(session, "cat /dev/null; wc -l </dev/null"))).failed, "%s is no matter here", session)
		}
		asks(session, row.then, row.why)
	}
	fork := calls(t, c.ClientSession, "session_fork", map[string]any{"session": "function", "new_session": "fork"})
	require.False(t, (<-fork).failed)
	asks("fork", "ls", "ls is a function here")
	require.NoFileExists(t, filepath.Join(p.dir, "made"))
	over(tm, c)
}

// A yes is for the script that was shown, where it was shown: not for one that comes meanwhile.
func TestAYesIsForThatScriptAlone(t *testing.T) {
	p := newMCPPlace(t)
	t.Setenv("XDG_STATE_HOME", p.state)
	c := p.stdio("--approve", "ask")
	first := calls(t, c.ClientSession, "run_command", runs("touch one"))
	tm := onTerminal(t, p.home, "xterm", "approvals", "answer", "--wait")
	tm.sees("  | touch one\r\n")
	second := calls(t, c.ClientSession, "run_command", runs("touch two"))
	tm.sees("any other key: no")
	tm.types("y")
	assert.False(t, (<-first).failed)
	tm.sees("  | touch two\r\n")
	tm.sees("any other key: no")
	tm.types("n")
	assert.True(t, (<-second).failed)
	require.NoFileExists(t, filepath.Join(p.dir, "two"))
	over(tm, c)
}

// A host that shows the question to its user answers as well as a terminal does. That its user looked away, or that it says so, settles nothing.
func TestAHostAsksItsUser(t *testing.T) {
	testenv.Slow(t)
	const once, again = "yes, this time", "yes, and whenever it comes again"
	for name, c := range map[string]struct {
		result *mcp.ElicitResult
		runs   int // of two calls with the same script
		asked  int
	}{
		"yes":       {&mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": once}}, 2, 2},
		"again":     {&mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": again}}, 2, 1},
		"no":        {&mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": "no"}}, 0, 2},
		"no choice": {&mcp.ElicitResult{Action: "accept"}, 0, 2},
		"declined":  {&mcp.ElicitResult{Action: "decline"}, 0, 2},
	} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(name+" "+version, func(t *testing.T) {
				p := newMCPPlace(t)
				var shown []string
				p.version = version
				p.client = &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					shown = append(shown, r.Params.Message) // One question at a time.
					return c.result, nil
				}}
				record := filepath.Join(p.home, "audit.jsonl")
				client := p.stdio("--approve", "ask", "--elicit", "--approve-wait", "500ms", "--audit", record)
				ran := 0
				for range 2 {
					res := <-calls(t, client.ClientSession, "run_command", runs("echo x >>made\x1b[2J"))
					if !res.failed {
						ran++
					} else if c.result.Content == nil {
						assert.Contains(t, res.text, "nobody has answered within 500ms")
					} else {
						assert.Contains(t, res.text, "the answer was no")
					}
				}
				assert.Equal(t, c.runs, ran)
				require.Len(t, shown, c.asked)
				assert.Contains(t, shown[0], "limpet: may this run")
				assert.Contains(t, shown[0], "in "+p.dir)
				assert.Contains(t, shown[0], "\n  | echo x >>made\\x1b[2J\nit writes a file")
				// What was asked is written down, and what came of it.
				answers := 0
				for _, e := range audited(t, record) {
					if e.Kind == "answer" && e.Answer != "" {
						answers++
					}
				}
				if c.result.Content != nil {
					assert.Equal(t, c.asked, answers)
				} else {
					assert.Zero(t, answers)
				}
				client.leaves()
				p.gone("closed")
			})
		}
	}
}

// Hosts cut what is long, so that a yes to it is a yes to what the user has not read. A terminal shows all of it.
func TestAHostApprovesNothingThatIsTooLongForItsForm(t *testing.T) {
	testenv.Slow(t)
	script := "# Tidies.\n" + strings.Repeat("echo x >>made\n", 40)
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			p := newMCPPlace(t)
			choice := ""
			var shown []string
			p.version = version
			p.client = &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				shown = append(shown, r.Params.Message) // One question at a time.
				return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": choice}}, nil
			}}
			c := p.stdio("--approve", "ask", "--elicit", "--approve-wait", "500ms")
			for answer, says := range map[string]string{
				"I answer at a terminal": "nobody has answered within 500ms; a person answers by limpet approvals answer",
				"no":                     "the answer was no",
			} {
				choice = answer
				res := <-calls(t, c.ClientSession, "run_command", runs(script))
				assert.True(t, res.failed, answer)
				assert.Contains(t, res.text, says, answer)
			}
			require.Len(t, shown, 2)
			for _, text := range shown {
				assert.Contains(t, text, "too long for this form (a script, 41 lines)")
				assert.Contains(t, text, "limpet approvals answer")
			}
			require.NoFileExists(t, filepath.Join(p.dir, "made"))
			c.leaves()
			p.gone("closed")
		})
	}
}

// What an agent runs asks the person for a password, who sees which program it is. It is in no file.
func TestAPersonGivesAPasswordToWhatAnAgentRuns(t *testing.T) {
	testenv.Slow(t)
	for name, args := range map[string][]string{"here": nil, "kept": {"--keep"}} {
		t.Run(name, func(t *testing.T) {
			p := newMCPPlace(t)
			t.Setenv("XDG_STATE_HOME", p.state)
			c := p.stdio(append([]string{"--askpass"}, args...)...)
			tm := onTerminal(t, p.home, "xterm", "approvals", "answer", "--wait")
			asks := calls(t, c.ClientSession, "run_command", runs(`"$SUDO_ASKPASS" $'Pass\x1b[2Jword: ' | wc -c`))
			tm.sees("limpet: for limpet mcp\r\n")
			tm.sees("limpet: a program asks for a password, with these words:\r\n")
			tm.sees(`  | Pass\x1b[2Jword: ` + "\r\n")
			tm.sees("Beware: this is not the system's own sudo, ssh or git")
			tm.sees("Password, which is not shown")
			const secret = "correct horse"
			tm.types(secret + "\r")
			got := <-asks
			assert.False(t, got.failed)
			assert.Contains(t, got.text, "14", "with a newline")
			asks = calls(t, c.ClientSession, "run_command", runs(`"$SUDO_ASKPASS" 'Password: '; echo status $?`))
			tm.sees("Password, which is not shown")
			tm.types(ctrlC)
			got = <-asks
			assert.Contains(t, got.text, "status 1")
			tm.types(ctrlC)
			tm.exits(codeSignal + int(syscall.SIGINT))
			assert.NotContains(t, tm.seen+tm.unread, secret)
			found, _ := exec.Command("grep", "-rlF", secret, p.state, p.runtime, p.home).Output() // It fails if it finds nothing.
			assert.Empty(t, string(found))
			c.leaves()
			if args != nil {
				p.closeKept()
			}
			p.gone("closed")
		})
	}
}

func TestNothingAsksForPasswordsUnlessAPersonSaysSo(t *testing.T) {
	p := newMCPPlace(t)
	c := p.stdio()
	assert.Contains(t, (<-calls(t, c.ClientSession, "run_command", runs(`echo "${SUDO_ASKPASS-none}"`))).text, "none")
	c.leaves()
	p.gone("closed")
}

// A client that gives its calls up soon is answered before that, also where a call waits behind the question of another one.
func TestQuestionsWaitNoLongerThanTheirClients(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	c := p.stdio("--approve", "ask", "--approve-wait", "300ms")
	all := []<-chan answer{calls(t, c.ClientSession, "run_command", runs("touch one")), calls(t, c.ClientSession, "run_command", runs("touch two")), calls(t, c.ClientSession, "run_command", runs("touch three"))}
	for _, one := range all {
		got := <-one
		assert.True(t, got.failed)
		assert.Contains(t, got.text, "it writes files; there is nobody to ask: nobody has answered within 300ms")
	}
	c.leaves()
	p.gone("closed")
}
