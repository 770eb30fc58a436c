package terminal_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

// These tests use programs as a person does: they type keys, wait for what comes to be on
// the screen, and look at it. programs_shell_test.go has bash, programs_editors_test.go vim
// and nano, programs_secrets_test.go what asks for passwords.

// installed returns the first of some programs that there is. Without any the test is
// skipped.
func installed(t testing.TB, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no " + names[0])
	return ""
}

// desk is a registry whose programs know nobody: the home directory is an empty one, which
// they run in.
func desk(t testing.TB) (r *terminal.Registry, dir string) {
	t.Helper()
	dir = testenv.TempDir(t)
	env := []string{"HOME=" + dir, "LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH")}
	return open(t, &terminal.Options{Dir: dir, Env: env}), dir
}

// until waits until the screen is as it should be, and returns it. See is for what a pattern
// can say.
func until(t testing.TB, term *terminal.Terminal, what string, is func(terminal.Snapshot) bool) terminal.Snapshot {
	t.Helper()
	var s terminal.Snapshot
	holds := func() bool {
		var err error
		s, err = term.Screen()
		require.NoError(t, err)
		return is(s)
	}
	defer func() {
		if t.Failed() {
			t.Logf("on the screen is:\n%s", s.Text())
		}
	}()
	testenv.Await(t, what, holds)
	return s
}

// lastLine is the last row of the screen, where many programs have their status.
func lastLine(s terminal.Snapshot) string { return s.Line(s.Rows - 1) }

func lines(n int, also ...string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
		for _, text := range also {
			if i == n/2 {
				b.WriteString(text + "\n")
			}
		}
	}
	return b.String()
}

func TestLessShowsSearchesAndLeavesTheScreenAsItWas(t *testing.T) {
	less := installed(t, "less")
	r, dir := desk(t)
	file := filepath.Join(dir, "text")
	require.NoError(t, os.WriteFile(file, []byte(lines(1000, "a needle")), 0o600))
	term := bash(t, r)
	send(t, term, "echo before", "Enter")
	see(t, term, `(?m)^before\n> $`)
	send(t, term, less+" text", "Enter")

	s := until(t, term, "the first page", func(s terminal.Snapshot) bool { return lastLine(s) == "text" })
	assert.True(t, s.Alternate)
	assert.Equal(t, "line 1", s.Line(0))
	assert.Equal(t, "line 23", s.Line(22))
	for col := range len("text") {
		assert.True(t, s.Cells[23][col].Style.Reverse, "the status is not in reverse video")
	}
	assert.False(t, s.Cells[23][len("text")].Style.Reverse)

	send(t, term, "/needle", "Enter")
	s = until(t, term, "what is searched for", func(s terminal.Snapshot) bool { return s.Line(0) == "a needle" })
	assert.True(t, s.Cells[0][2].Style.Reverse, "it is not marked")
	assert.False(t, s.Cells[0][0].Style.Reverse)

	send(t, term, "G")
	s = until(t, term, "the end", func(s terminal.Snapshot) bool { return strings.Contains(lastLine(s), "(END)") })
	assert.Equal(t, "line 1000", s.Line(22))

	// It was told what it does not find, and says so in place of the status.
	before := term.Info().Bytes
	send(t, term, "/no such text", "Enter")
	w := wait(t, term, terminal.WaitOptions{Text: "Pattern not found", From: before})
	assert.Equal(t, terminal.WaitMatched, w.Reason)
	send(t, term, "Enter")
	w = wait(t, term, terminal.WaitOptions{Text: "Pattern not found", Gone: true})
	assert.Equal(t, terminal.WaitGone, w.Reason)

	send(t, term, "q")
	s = see(t, term, `^> echo before\nbefore\n> .*less text\n> $`)
	assert.False(t, s.Alternate)
	lines, err := term.Scrollback()
	require.NoError(t, err)
	assert.Empty(t, lines, "what was on the other screen has no scrollback")
}

func TestTopRefreshesUntilItIsQuit(t *testing.T) {
	testenv.Slow(t)
	top := installed(t, "top")
	testenv.NeedProc(t) // Others have other ones.
	r, _ := desk(t)
	term := start(t, r, top, "-d", "0.2")
	first := see(t, term, `(?s)^top - .*load average:.*\n +PID +USER .*COMMAND`)
	row := -1
	for i := range first.Rows {
		if strings.Contains(first.Line(i), " PID ") {
			row = i
		}
	}
	require.Positive(t, row)
	assert.True(t, first.Cells[row][strings.Index(first.Line(row), "PID")].Style.Reverse, "the header is not in reverse video")
	until(t, term, "another picture", func(s terminal.Snapshot) bool {
		return s.Text() != first.Text() && strings.HasPrefix(s.Line(0), "top - ") && strings.Contains(s.Text(), "COMMAND")
	})
	send(t, term, "q")
	assert.Equal(t, terminal.Succeeded, ended(t, term).State)
}

func TestAPythonREPLIsTalkedTo(t *testing.T) {
	testenv.Slow(t)
	python := installed(t, "python3")
	r, _ := desk(t)
	term := start(t, r, python, "-q")
	w := wait(t, term, terminal.WaitOptions{Prompt: true})
	require.Equal(t, terminal.WaitPrompt, w.Reason)
	assert.Equal(t, ">>>", w.Match)

	send(t, term, "6*7", "Enter")
	see(t, term, `(?m)^42\n>>> $`)

	send(t, term, "def f(x):", "Enter")
	see(t, term, `(?m)^\.\.\. *$`)
	send(t, term, " return x * 3", "Enter", "Enter") // It may have indented it by itself.
	see(t, term, `return x \* 3\n(\.\.\. *\n)?>>> $`)
	send(t, term, "f('ab')", "Enter")
	see(t, term, `(?m)^'ababab'\n>>> $`)

	send(t, term, "print('never'")
	see(t, term, `print\('never'\)?$`)
	send(t, term, "Ctrl-C")
	see(t, term, `KeyboardInterrupt\n>>> $`)
	send(t, term, "1+1", "Enter")
	see(t, term, `(?m)^2\n>>> $`)

	send(t, term, "while True: pass", "Enter", "Enter")
	see(t, term, `(?m)while True: pass\n(\.\.\. *\n?)*$`)
	send(t, term, "Ctrl-C")
	see(t, term, `(?s)Traceback.*KeyboardInterrupt\n>>> $`)

	send(t, term, "exit(3)", "Enter")
	info := ended(t, term)
	assert.Equal(t, terminal.Exit{Code: 3}, *info.Exit)
	s, err := term.Screen()
	require.NoError(t, err)
	assert.NotRegexp(t, `(?m)^never`, s.Text())
}

// A tmux in the terminal is a server that has left it, with terminals of its own.
func TestTmuxSplitsDetachesAndIsGone(t *testing.T) {
	tmux := installed(t, "tmux")
	testenv.NeedProc(t)
	const name = "limpet-test"
	for _, end := range []string{"by kill-server", "by the end of the terminal"} {
		t.Run(end, func(t *testing.T) {
			r, dir := desk(t)
			// By default tmux takes keys that follow others within a millisecond for a paste, and not for its own.
			conf := filepath.Join(dir, "tmux.conf")
			require.NoError(t, os.WriteFile(conf, []byte("set -g assume-paste-time 0\n"), 0o600))
			spec := func(args ...string) terminal.Spec {
				return terminal.Spec{
					Argv: append([]string{tmux, "-L", name, "-f", conf}, args...),
					Env:  []string{"TMUX_TMPDIR=" + dir, "SHELL=/bin/sh", "ENV="},
				}
			}
			term := startSpec(t, r, spec("new-session"))
			see(t, term, `(?m)^[$#]`) // It is a login shell, whose prompt is the system's.
			send(t, term, "echo left-$((6*7))", "Enter")
			see(t, term, `(?m)^left-42`)
			send(t, term, "Ctrl-B", "%")
			see(t, term, `(?m)^left-42 +│`)
			see(t, term, `│[$#]`)
			send(t, term, "echo right-$((7*7)); tty", "Enter")
			s := see(t, term, `(?m)│right-49`)
			assert.Regexp(t, `(?m)^left-42 +│`, s.Text(), "both are to be seen")
			assert.Contains(t, lastLine(s), "[0]", "the status line")
			assert.Equal(t, "2", s.Cells[23][0].Style.Bg.String(), "it is green")
			require.NoError(t, term.Resize(terminal.Size{Cols: 100, Rows: 30}))
			until(t, term, "the status line at the new end", func(s terminal.Snapshot) bool {
				return strings.Contains(lastLine(s), "[0]") && s.Rows == 30
			})
			send(t, term, "Ctrl-B", "d")
			assert.Equal(t, terminal.Succeeded, ended(t, term).State)
			assert.Contains(t, output(t, term), "[detached (from session 0)]")
			require.NotEmpty(t, testenv.Marked(r.Mark()), "the server is to live on")

			again := startSpec(t, r, spec("attach"))
			see(t, again, `(?m)^left-42 +│.*right-49`)
			send(t, again, "Ctrl-B", "d")
			ended(t, again)
			if end == "by kill-server" {
				ended(t, startSpec(t, r, spec("kill-server")))
			} else {
				require.NoError(t, term.Close())
			}
			testenv.AwaitNone(t, r.Mark(), "ended "+end)
		})
	}
}

func TestColorsAndWideCharactersAreCells(t *testing.T) {
	r, dir := desk(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "日本"), 0o700))
	term := startSpec(t, r, terminal.Spec{Line: `printf '\033]2;a title — 題\007'
		ls --color=always; echo xabcx | grep --color=always abc
		printf '\360\237\230\200e\314\201|\n'; printf '\033[38;5;208mP\033[48;2;1;2;3mT\033[0m\033[4;9mU\033[0m\n'`})
	info := ended(t, term)
	require.Equal(t, terminal.Succeeded, info.State)
	s, err := term.Screen()
	require.NoError(t, err)
	assert.Equal(t, "a title — 題", s.Title)
	assert.Equal(t, "日本\nxabcx\n😀e\u0301|\nPTU", s.Text())

	type look struct {
		text   string
		width  int
		fg, bg string
		bold   bool
	}
	cells := func(row int) (list []look) {
		for _, c := range s.Cells[row][:5] {
			list = append(list, look{c.Text, c.Width, c.Style.Fg.String(), c.Style.Bg.String(), c.Style.Bold})
		}
		return list
	}
	const plain = "default"
	assert.Equal(t, []look{{"日", 2, "4", plain, true}, {"", 0, "4", plain, true}, {"本", 2, "4", plain, true}, {"", 0, "4", plain, true}, {" ", 1, plain, plain, false}}, cells(0))
	assert.Equal(t, []look{{"x", 1, plain, plain, false}, {"a", 1, "1", plain, true}, {"b", 1, "1", plain, true}, {"c", 1, "1", plain, true}, {"x", 1, plain, plain, false}}, cells(1))
	assert.Equal(t, []look{{"😀", 2, plain, plain, false}, {"", 0, plain, plain, false}, {"e\u0301", 1, plain, plain, false}, {"|", 1, plain, plain, false}, {" ", 1, plain, plain, false}}, cells(2))
	assert.Equal(t, []look{{"P", 1, "208", plain, false}, {"T", 1, "208", "#010203", false}, {"U", 1, plain, plain, false}}, cells(3)[:3])
	assert.True(t, s.Cells[3][2].Style.Strike)
	assert.NotZero(t, s.Cells[3][2].Style.Underline)
}

// Without an echo, what is waited for is what is printed, and not what was typed.
func TestWaitsOfOneConversation(t *testing.T) {
	testenv.Slow(t)
	term := bash(t, open(t, nil))
	send(t, term, "stty -echo; PS1='next? '", "Enter")
	wait(t, term, terminal.WaitOptions{PromptPattern: `^next\? $`})
	w := wait(t, term, terminal.WaitOptions{Prompt: true})
	assert.Equal(t, terminal.WaitPrompt, w.Reason)
	assert.Equal(t, "next?", w.Match)

	send(t, term, "echo done", "Enter")
	w = wait(t, term, terminal.WaitOptions{Text: "done"})
	assert.Equal(t, terminal.WaitMatched, w.Reason)
	// What was there before counts no more, until something is printed.
	seen := term.Info().Bytes
	waited := make(chan terminal.Waited)
	go func() {
		w, err := term.Wait(testenv.Context(t), terminal.WaitOptions{Text: "done", From: max(seen, 1)})
		assert.NoError(t, err)
		waited <- w
	}()
	w = wait(t, term, terminal.WaitOptions{Silence: 1}) // Which is at once.
	assert.Equal(t, terminal.WaitSilent, w.Reason)
	send(t, term, "echo more", "Enter")
	w = <-waited
	assert.Equal(t, terminal.WaitMatched, w.Reason)
	assert.Greater(t, w.Info.Bytes, seen)

	send(t, term, `printf '\033[H\033[2J'`, "Enter")
	w = wait(t, term, terminal.WaitOptions{Pattern: regexp.QuoteMeta("done"), Gone: true})
	assert.Equal(t, terminal.WaitGone, w.Reason)
	send(t, term, "exit 5", "Enter")
	w, err := term.Wait(testenv.Context(t), terminal.WaitOptions{Pattern: "never"})
	require.NoError(t, err)
	assert.Equal(t, terminal.WaitExited, w.Reason)
	assert.Equal(t, 5, w.Info.Exit.Code)
}
