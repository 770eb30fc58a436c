package keys_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/tty"
	"github.com/limpet-sh/limpet/terminal/keys"
)

// screen is a program in a terminal, and what it has printed.
type screen struct {
	t      *testing.T
	master *os.File
	mu     sync.Mutex
	text   bytes.Buffer
}

// start runs bash in a terminal of its own, in dir, until the test ends.
func start(t *testing.T, dir string, args ...string) *screen {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash")
	}
	if exec.Command(bash, "-c", "((BASH_VERSINFO >= 5))").Run() != nil {
		t.Skip("this bash is of before 2019, when readline had fewer keys")
	}
	master, slave, err := tty.Open(tty.Size{Rows: 24, Cols: 80})
	require.NoError(t, err)
	s := &screen{t: t, master: master}
	cmd := exec.Command(bash, args...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TERM=xterm-256color", "INPUTRC=/dev/null", "LC_ALL=C.UTF-8", `PS1=\#> `}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	require.NoError(t, slave.Close())
	var reading sync.WaitGroup
	reading.Go(func() {
		b := make([]byte, 4096)
		for {
			n, err := master.Read(b)
			s.mu.Lock()
			s.text.Write(b[:n])
			s.mu.Unlock()
			if err != nil {
				return // EIO when nobody has the terminal any more, or it is closed.
			}
		}
	})
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // It may have ended.
		_ = cmd.Wait()         // Killed.
		assert.NoError(t, master.Close())
		reading.Wait()
	})
	return s
}

func (s *screen) printed() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) await(text string) {
	s.t.Helper()
	defer func() {
		if s.t.Failed() {
			s.t.Logf("printed: %q", s.printed())
		}
	}()
	testenv.Await(s.t, text, func() bool { return strings.Contains(s.printed(), text) })
}

// enter types, to a program that has asked for those modes.
func (s *screen) enter(m keys.Modes, inputs ...keys.Input) {
	s.t.Helper()
	for _, in := range inputs {
		_, err := s.master.Write(in.Encode(m))
		require.NoError(s.t, err)
	}
}

// parse is Parse of what must be right.
func parse(t *testing.T, args ...string) []keys.Input {
	t.Helper()
	inputs, err := keys.Parse(args...)
	require.NoError(t, err)
	return inputs
}

func TestAProgramReadsWhatWasTyped(t *testing.T) {
	s := start(t, t.TempDir(), "-c", "stty raw -echo && echo ready && exec cat -v")
	s.await("ready")
	for _, row := range [][2]string{
		{"Ctrl-C", "^C"}, {"Ctrl-Space", "^@"}, {"Ctrl-\\", "^\\"}, {"Ctrl-Z", "^Z"}, {"Ctrl-D", "^D"}, {"Ctrl-S", "^S"}, {"Enter", "^M"},
		{"Backspace", "^?"}, {"Ctrl-Backspace", "^H"}, {"Esc", "^["}, {"Alt-x", "^[x"}, {"Up", "^[[A"}, {"Ctrl-Shift-Up", "^[[1;6A"},
		{"F1", "^[OP"}, {"F5", "^[[15~"}, {"Shift-Tab", "^[[Z"}, {"Ctrl-Alt-Del", "^[[3;7~"},
	} {
		s.enter(keys.Modes{}, parse(t, "<", row[0], ">")...)
		s.await("<" + row[1] + ">")
	}
	s.enter(keys.Modes{AppCursor: true, AppKeypad: true}, parse(t, "app", "Up", "KP5", "Enter")...)
	s.await("app^[OA^[Ou^M")
	s.enter(keys.Modes{BracketedPaste: true}, keys.Paste("a\n\x1b[201~b\x03"))
	s.await("^[[200~a^M [201~b ^[[201~")
}

func TestReadlineDoesWhatItsKeysSay(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, "--norc", "--noprofile", "-i")
	out := filepath.Join(dir, "out")
	for i, row := range []struct {
		args []string
		want string
	}{
		{[]string{"echo one >>out", "Enter"}, "one\n"},
		{[]string{"Up", "Up", "Enter"}, "one\ndone\none\n"},
		{[]string{"three >out", "Ctrl-A", "echo ", "Enter"}, "three\n"},
		{[]string{"cho four >out", "Home", "e", "End", "x", "Backspace", "Enter"}, "four\n"},
		{[]string{"echo fxive >out", "Alt-b", "Alt-b", "Right", "Delete", "Enter"}, "five\n"},
		{[]string{"echo six bad", "Ctrl-W", ">out", "Enter"}, "six\n"},
		{[]string{"echo seven bad >out", "Ctrl-Left", "Left", "Left", "Alt-Backspace", "Enter"}, "seven\n"},
	} {
		s.await(fmt.Sprintf("%d> ", i*2+1)) // Between its lines the keys would be the terminal driver's.
		s.enter(keys.Modes{}, parse(t, row.args...)...)
		s.await(fmt.Sprintf("%d> ", i*2+2))
		s.enter(keys.Modes{}, parse(t, "echo done >>out", "Enter")...)
		testenv.Await(t, row.want, func() bool {
			b, _ := os.ReadFile(out) // Not there yet is waited out.
			return string(b) == row.want+"done\n"
		})
	}
}

func TestReadlineRunsNoPaste(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, "--norc", "--noprofile", "-i")
	s.await("> ")
	if !strings.Contains(s.printed(), "\x1b[?2004h") {
		t.Skip("this bash asks for no marks around a paste")
	}
	m := keys.Modes{BracketedPaste: true}
	s.enter(m, keys.Paste("echo a\n\x1b[201~\ntouch ran\n"))
	s.await("touch ran")
	s.enter(m, parse(t, "Ctrl-U", "echo done >done", "Enter")...)
	testenv.AwaitFile(t, filepath.Join(dir, "done"))
	assert.NoFileExists(t, filepath.Join(dir, "ran"))

	// That is the marks' doing.
	s.enter(keys.Modes{}, keys.Paste("touch ran\n"))
	testenv.Await(t, "the file", func() bool {
		_, err := os.Stat(filepath.Join(dir, "ran"))
		return err == nil
	})
}
