package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

// terms are the terminals of a test, which are stopped at its end.
type terms struct {
	t           *testing.T
	home, state string
}

func newTerms(t *testing.T) *terms {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	home := t.TempDir()
	ts := &terms{t: t, home: home, state: filepath.Join(home, "terminals")}
	t.Cleanup(func() { ts.limpet("stop", "--all") })
	return ts
}

// limpet runs limpet term, and returns what it has printed.
func (ts *terms) limpet(args ...string) string {
	ts.t.Helper()
	out, err := exec.Command("limpet", ts.args(args...)...).CombinedOutput()
	require.NoError(ts.t, err, "%q: %s", args, out)
	return strings.TrimSuffix(string(out), "\n")
}

func (ts *terms) args(args ...string) []string {
	return append([]string{"term", args[0], "--state", ts.state}, args[1:]...)
}

func (ts *terms) start(line string) string {
	ts.t.Helper()
	return ts.limpet("start", "--dir", ts.home, "--line", line)
}

// sit attaches a person.
func (ts *terms) sit(args ...string) *seat {
	ts.t.Helper()
	return onTerminal(ts.t, ts.home, "xterm", ts.args(append([]string{"attach"}, args...)...)...)
}

const prompting = `export PS1='> ' PROMPT_COMMAND=; exec bash --noprofile --norc`

// prompted is where the cursor is painted then: blanks at the end of a line are not.
const prompted = "\x1b[1;3H"

func TestAttachDetachAndAttachAgain(t *testing.T) {
	testenv.Slow(t)
	ts := newTerms(t)
	id := ts.start(prompting)
	ts.limpet("wait", "--prompt", "--timeout", "1m", id)
	tm := ts.sit(id)
	tm.sees(prompted)
	tm.types("x=kept; echo $((6 * 7))\r")
	tm.sees("42\r\n")
	tm.types(ctrlBackslash)
	tm.sees("[detached from " + id + "]\r\n")
	tm.exits(0)
	tm.isAsBefore()
	assert.Contains(t, tm.seen, leave)

	tm = ts.sit(id)
	tm.sees("42") // What was there is painted.
	tm.types("echo \"<$x>\"; stty size; exit 7\r")
	tm.sees("<kept>") // As it comes, or in the last screen: the program may have ended before attach follows it.
	tm.sees("24 80")
	tm.sees("[" + id + ": exit 7]\r\n")
	tm.exits(7)
	tm.isAsBefore()

	tm = ts.sit(id) // The last screen, and how it ended.
	tm.sees("<kept>")
	tm.sees("[" + id + ": exit 7]\r\n")
	tm.exits(7)
	tm.isAsBefore()
	tm = ts.sit("--replay", id)
	tm.sees("<kept>\r\n24 80\r\n")
	tm.exits(7)
}

func TestVimThroughAttach(t *testing.T) {
	vim, err := exec.LookPath("vim")
	if err != nil {
		vim, err = exec.LookPath("vim.tiny")
	}
	if err != nil {
		t.Skip("no vim")
	}
	ts := newTerms(t)
	require.NoError(t, os.WriteFile(filepath.Join(ts.home, "file"), []byte("first line\nsecond line\n"), 0o600))
	id := ts.start("exec " + vim + " -u NONE -N -i NONE --cmd 'set t_RV=' file")
	ts.limpet("wait", "--text", "second line", "--timeout", "1m", id)
	tm := ts.sit(id)
	tm.sees("second line")
	tm.types("ochanged\x1b")
	tm.sees("changed")
	tm.types("\x1b[27;5;92~") // The detach key, where the program has asked for keys as sequences.
	tm.sees("[detached from")
	tm.exits(0)
	tm.isAsBefore()

	tm = ts.sit(id)
	tm.sees("changed")
	require.NoError(t, pty.Setsize(tm.user, &pty.Winsize{Rows: 30, Cols: 100}))
	ts.limpet("wait", "--pattern", `(\n~.*){26}`, "--timeout", "1m", id)
	assert.Contains(t, ts.limpet("list"), "100x30")
	tm.types(":wq\r")
	tm.sees("[" + id + ": exit 0]\r\n")
	tm.exits(0)
	tm.isAsBefore()
	b, err := os.ReadFile(filepath.Join(ts.home, "file"))
	require.NoError(t, err)
	assert.Equal(t, "first line\nchanged\nsecond line\n", string(b))
}

func TestAttachGivesTheTerminalBackWhateverHappens(t *testing.T) {
	testenv.Slow(t)
	// Full screen, mouse, paste, focus, no cursor, colors, and in the middle of a string.
	const dirty = `printf '\e[?1049h\e[?1000;1006;2004;1004h\e[?25l\e[31mdirty\e]2;unended'; exec cat >/dev/null`
	for _, row := range []struct {
		name string
		ends func(ts *terms, id string, tm *seat)
		says string
		code int
	}{
		{"SIGTERM", func(_ *terms, _ string, tm *seat) { _ = tm.cmd.Process.Signal(syscall.SIGTERM) }, "[detached from", 128 + 15},
		{"stop", func(ts *terms, id string, _ *seat) { ts.limpet("stop", id) }, ": cancelled: ended by", 128 + 1},
		{"kill", func(ts *terms, id string, _ *seat) { ts.kill(id) }, ": lost: ", codeFailed},
		{"detach", func(_ *terms, _ string, tm *seat) { tm.types(ctrlBackslash) }, "[detached from", 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			ts := newTerms(t)
			id := ts.start(dirty)
			ts.limpet("wait", "--text", "dirty", "--timeout", "1m", id)
			tm := ts.sit(id)
			tm.sees("dirty")
			row.ends(ts, id, tm)
			tm.sees(leave)
			tm.sees(row.says)
			tm.sees("]\r\n")
			tm.exits(row.code)
			tm.isAsBefore()
		})
	}
}

// kill kills the host of a terminal, and waits until it has ended: before that, whoever looks at
// the terminal takes it for one that runs, and asks its host.
func (ts *terms) kill(id string) {
	r, err := terminal.Open(ts.state, nil)
	require.NoError(ts.t, err)
	defer r.Close()
	one, err := r.Get(id)
	require.NoError(ts.t, err)
	pid := one.Info().OwnerPID
	require.NoError(ts.t, syscall.Kill(pid, syscall.SIGKILL))
	testenv.Await(ts.t, "the end of the host", func() bool { return !testenv.Alive(pid) })
}

func TestAKilledHostLeavesALostTerminal(t *testing.T) {
	ts := newTerms(t)
	id := ts.start(`echo $$ >pid; exec tail -f /dev/null`)
	ts.limpet("wait", "--silence", "100ms", id)
	ts.kill(id)
	require.Contains(t, ts.limpet("list"), "lost") // Of a record alone: whoever asks a host sweeps.
	b, err := os.ReadFile(filepath.Join(ts.home, "pid"))
	require.NoError(t, err)
	assert.Eventually(t, func() bool { // The guard ends it.
		return exec.Command("kill", "-0", strings.TrimSpace(string(b))).Run() != nil
	}, patience, 10*time.Millisecond)
	sockets, err := filepath.Glob(filepath.Join(ts.state, "*.sock"))
	require.NoError(t, err)
	assert.Len(t, sockets, 1)
	other := ts.start("exec tail -f /dev/null") // Whoever serves sweeps, too.
	sockets, err = filepath.Glob(filepath.Join(ts.state, "*.sock"))
	require.NoError(t, err)
	assert.Len(t, sockets, 1)
	ts.limpet("stop", other)
}

func TestAHostClosesItsTerminalWhenToldToEnd(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		ts := newTerms(t)
		id := ts.start(`trap 'echo bye; exit 5' HUP; echo ready; while :; do read -r; done`)
		ts.limpet("wait", "--text", "ready", "--timeout", "1m", id)
		r, err := terminal.Open(ts.state, nil)
		require.NoError(t, err)
		one, err := r.Get(id)
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(one.Info().OwnerPID, sig))
		require.Eventually(t, func() bool { return one.Info().State == terminal.Cancelled }, patience, time.Millisecond, sig)
		require.NoError(t, r.Close())
		assert.Contains(t, ts.limpet("log", id), "bye")
	}
}

func TestTwoPeopleAtOneTerminal(t *testing.T) {
	testenv.Slow(t)
	ts := newTerms(t)
	id := ts.start(prompting)
	ts.limpet("wait", "--prompt", "--timeout", "1m", id)
	one := ts.sit(id)
	one.sees(prompted)
	two := onTerminal(t, ts.home, "xterm", ts.args("attach", "--read-only", id)...)
	two.sees(prompted)
	two.types("exit 9\r") // Nobody gets it.
	one.types("echo $((6 * 7))\r")
	one.sees("42\r\n")
	two.sees("42\r\n")
	require.NoError(t, pty.Setsize(one.user, &pty.Winsize{Rows: 10, Cols: 40}))
	testedUntil(t, func() bool { return strings.Contains(ts.limpet("list"), "40x10") })
	require.NoError(t, pty.Setsize(two.user, &pty.Winsize{Rows: 11, Cols: 41}))
	two.types(ctrlC)
	two.sees("[detached from")
	two.exits(0)
	two.isAsBefore()
	assert.Contains(t, ts.limpet("list"), "40x10") // Who only looks changes nothing.
	one.types("exit\r")
	one.sees(": exit 0]")
	one.exits(0)
}

func testedUntil(t *testing.T, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, patience, 5*time.Millisecond)
}

func TestDetachWorksWhenNothingElseDoes(t *testing.T) {
	testenv.Slow(t)
	ts := newTerms(t)
	id := ts.start(prompting)
	ts.limpet("wait", "--prompt", "--timeout", "1m", id)
	tm := ts.sit("--detach-key", "ctrl-]", id)
	tm.sees(prompted)
	r, err := terminal.Open(ts.state, nil)
	require.NoError(t, err)
	defer r.Close()
	one, err := r.Get(id)
	require.NoError(t, err)
	host := one.Info().OwnerPID
	require.NoError(t, syscall.Kill(host, syscall.SIGSTOP))
	defer func() { _ = syscall.Kill(host, syscall.SIGCONT) }() // It has ended, unless the test failed.
	tm.types("echo hanging\r\x1d")
	tm.sees("[detached from")
	tm.exits(0)
	tm.isAsBefore()
	require.NoError(t, syscall.Kill(host, syscall.SIGCONT))
}

func TestStartAttaches(t *testing.T) {
	ts := newTerms(t)
	tm := onTerminal(t, ts.home, "xterm", ts.args("start", "--attach", "--line", "stty size; exit 4")...)
	tm.sees("24 80")
	tm.sees(": exit 4]")
	tm.exits(4)
	tm.isAsBefore()

	tm = onTerminal(t, ts.home, "xterm", ts.args("screen", "--format", "png", "stty")...)
	tm.sees("a png is nothing for a terminal")
	tm.exits(2)
}

func TestQueriesAreNotShownToThePerson(t *testing.T) {
	testenv.Slow(t)
	ts := newTerms(t)
	id := ts.start(`read -rs; printf 'a\e[6n\e[c\e]11;?\e\\z'; exec cat >/dev/null`)
	tm := ts.sit(id)
	ts.limpet("wait", "--silence", "200ms", id)
	tm.types("\r")
	tm.sees("az")
	tm.types(ctrlBackslash)
	tm.exits(0)
	tm = onTerminal(t, ts.home, "xterm", ts.args("log", id)...)
	tm.sees("az")
	tm.exits(0)
}

func TestTheDetachKeyIsFoundInItsForms(t *testing.T) {
	for typed, want := range map[string]int{
		"ab\x1cc": 2, "\x1b[27;5;92~": 0, "x\x1b[92;5u": 1, "x\x1b[92;5:1u\x1c": 1, "abc": -1, "\x1b[27;5;93~": -1,
	} {
		assert.Equal(t, want, keyIn([]byte(typed), 0x1c), "%q", typed)
	}
	assert.Equal(t, 0, keyIn([]byte("\x1b[27;5;97~"), 1), "ctrl-a")
	assert.Equal(t, -1, keyIn([]byte("\x1c"), -1))
}

func TestTheTableOfTerminalsFitsTheTerminal(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	list := []terminal.Info{
		{ID: "term-vim-aaaaaaaa", Argv: []string{"vim", "a\x1b[31mb"}, State: terminal.Running, Created: now.Add(-90 * time.Second), Size: terminal.DefaultSize, Session: "s\t1", LastLine: strings.Repeat("x", 100)},
		{ID: "term-bbbbbbbb", Line: "true", State: terminal.Failed, Exit: &terminal.Exit{Code: -1, Signal: 9}, Created: now.Add(-26 * time.Hour), Size: terminal.DefaultSize},
		{ID: "term-cccccccc", Line: "true", State: terminal.Lost, Created: now, Size: terminal.DefaultSize},
	}
	assert.Equal(t, `ID                 STATE    AGE      SIZE   SESSION  COMMAND      LAST LINE
term-vim-aaaaaaaa  running  1m30s    80x24  s 1      vim a?[31mb  xxxxxxxxxxx...
term-bbbbbbbb      SIGKILL  26h0m0s  80x24  -        true
term-cccccccc      lost     0s       80x24  -        true
`, termTable(list, now, 80))
}

func TestWhatAnotherMachineSaysOfATerminalIsPlain(t *testing.T) {
	info := plainly(terminal.Info{ID: "../../x", State: "\x1b[31mred", Bytes: 7}, "term-x")
	assert.Equal(t, terminal.Info{ID: "term-x", State: "?[31mred", Bytes: 7}, info)
	for id, want := range map[string]bool{"term-x": true, "term-../x": false, "term-": false, "x": false, "term-\x1b": false} {
		assert.Equal(t, want, terminal.ValidID(id), "%q", id)
	}
}
