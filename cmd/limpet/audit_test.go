package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/audit"
)

// audited are the lines of a file.
func audited(t *testing.T, path string) (all []audit.Entry) {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
		var e audit.Entry
		require.NoError(t, json.Unmarshal(s.Bytes(), &e), s.Text())
		all = append(all, e)
	}
	return all
}

func kinds(all []audit.Entry) (kinds []string) {
	for _, e := range all {
		kinds = append(kinds, strings.TrimSpace(e.Kind+" "+e.Action))
	}
	return kinds
}

// What an agent does, and what a person answers, is written down, with who it was and without secrets.
func TestWhatAnAgentDoesIsWrittenDown(t *testing.T) {
	for name, args := range map[string][]string{"here": nil, "kept": {"--keep"}} {
		t.Run(name, func(t *testing.T) {
			p := newMCPPlace(t)
			t.Setenv("XDG_STATE_HOME", p.state)
			file := filepath.Join(p.home, "audit.jsonl")
			c := p.stdio(append([]string{"--audit", file, "--audit-required", "--approve", "ask"}, args...)...)
			assert.False(t, (<-calls(t, c.ClientSession, "run_command", runs("echo AKIAABCDEFGHIJKLMNOP; pwd"))).failed)
			waits := calls(t, c.ClientSession, "run_command", runs("touch one"))
			tm := onTerminal(t, p.home, "xterm", "approvals", "answer", "--wait")
			tm.sees("  | touch one\r\n")
			tm.types("y")
			assert.False(t, (<-waits).failed)
			tm.types(ctrlC)
			tm.exits(130)
			c.leaves()
			if name == "kept" {
				p.closeKept()
			}
			p.gone("closed")

			all := audited(t, file)
			assert.Equal(t, []string{"open", "begin run", "end run", "question", "answer", "begin run", "end run", "close"}, kinds(all))
			begin, end, answer := all[1], all[2], all[4]
			assert.Regexp(t, `^limpet mcp for \S+ \S+$`, begin.From)
			assert.Equal(t, p.dir, begin.Dir)
			assert.Equal(t, "echo [masked: AWS key]; pwd", begin.Script)
			assert.Equal(t, begin.ID, end.ID)
			assert.Equal(t, 0, *end.ExitCode)
			assert.Equal(t, "[masked: AWS key]\n"+p.dir+"\n", end.Stdout.Head)
			assert.Equal(t, "yes", answer.Answer)
			assert.Equal(t, "touch one", answer.Script)
			for _, e := range all {
				assert.NotZero(t, e.PID)
				assert.NotEmpty(t, e.User)
				assert.NotEmpty(t, e.Session)
			}
		})
	}
}

// The keeper of a session by name writes down what is done there, whoever does it.
func TestWhatIsDoneInASessionByNameIsWrittenDown(t *testing.T) {
	p := newMCPPlace(t)
	file := filepath.Join(p.home, "audit.jsonl")
	p.limpet("run", "-s", "b", "--audit", file, "cd /usr", "x=1")
	p.limpet("run", "-s", "b", "echo $x; pwd")
	assert.Equal(t, []string{"open", "begin run", "end run", "begin run", "end run", "begin run", "end run"}, kinds(audited(t, file)))
	assert.Equal(t, "/usr", audited(t, file)[5].Dir)

	for text, args := range map[string][]string{
		"--audit says how a session is made, and session \"b\" is there": {"-s", "b", "--audit", file, "true"},
		"--audit-required means nothing without --audit":                 {"-s", "c", "--audit-required", "true"},
		"--audit cannot go with --on":                                    {"-s", "c", "--on", "exec:sh", "--audit", file, "true"},
		"no such file or directory":                                      {"-s", "c", "--audit", filepath.Join(p.home, "none", "f"), "true"},
	} {
		cmd := p.command(append([]string{"run"}, args...)...)
		out, err := cmd.CombinedOutput()
		require.Error(t, err, "%s", out)
		assert.Contains(t, string(out), text)
	}
	p.closeKept()
	all := audited(t, file)
	assert.Equal(t, "close", all[len(all)-1].Kind)
}

// What runs in a shell of limpet's own is written down by limpet.
func TestWhatRunIsToldIsWrittenDown(t *testing.T) {
	p := newMCPPlace(t)
	file := filepath.Join(p.home, "audit.jsonl")
	p.limpet("run", "--audit", file, "cd /usr", "pwd; API_KEY=abc123")
	cmd := p.command("run", "--audit", file, "--approve", "deny", "touch x")
	require.Error(t, cmd.Run())
	all := audited(t, file)
	assert.Equal(t, []string{"begin run", "end run", "begin run", "end run", "refused run"}, kinds(all))
	assert.Equal(t, "/usr", all[2].Dir)
	assert.Equal(t, "/usr\n", all[3].Stdout.Head)
	assert.Equal(t, "pwd; API_KEY=[masked: value of a variable]", all[2].Script)
	assert.Contains(t, all[4].Error, "not approved")

	repl := p.command("repl", "--audit", file)
	repl.Stdin = strings.NewReader("echo typed\nexit 3\n")
	require.Error(t, repl.Run())
	all = audited(t, file)[5:]
	assert.Equal(t, []string{"begin run", "end run", "begin run", "end run"}, kinds(all))
	assert.Equal(t, "typed\n", all[1].Stdout.Head)
	assert.Equal(t, 3, *all[3].ExitCode)

	require.NoError(t, os.Chmod(file, 0o644))
	out, err := p.command("run", "--audit", file, "touch "+p.dir+"/ran").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "chmod 600")
	assert.NoFileExists(t, p.dir+"/ran")
}

// Where what must be written down cannot be, nothing runs, and the error says what to do about it.
func TestWhatMustBeWrittenDownIsRefusedWhereItCannotBe(t *testing.T) {
	p := newMCPPlace(t)
	dir := filepath.Join(p.home, "audit")
	c := p.stdio("--audit", dir+"/", "--audit-required")
	assert.False(t, (<-calls(t, c.ClientSession, "run_command", runs("true"))).failed)
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	require.NoError(t, os.Chmod(files[0], 0o644))
	refused := <-calls(t, c.ClientSession, "run_command", runs("touch "+p.dir+"/ran"))
	assert.True(t, refused.failed)
	assert.Contains(t, refused.text, "chmod 600")
	assert.NoFileExists(t, p.dir+"/ran")
	require.NoError(t, os.Chmod(files[0], 0o600))
	assert.False(t, (<-calls(t, c.ClientSession, "run_command", runs("true"))).failed)
	c.leaves()
	p.gone("closed")
}
