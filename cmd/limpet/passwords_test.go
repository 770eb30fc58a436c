package main

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

const (
	secret = "s3cret-of-nobody"

	// asksFor is a script that says whether it has got the secret.
	asksFor = `x=$("$SUDO_ASKPASS" "Password: "); [ "$x" = ` + secret + ` ] && echo right`

	passwordPrompt = "Password, which is not shown (Enter alone or Ctrl-C: no): "
)

// atPasswordPrompt has limpet on a terminal at the question of a script that is no program of the system's.
func (tm *seat) asksForPassword(words string) {
	tm.t.Helper()
	tm.sees("limpet: a program asks for a password, with these words:\r\n  | " + words + "\r\n")
	tm.sees("It runs as bash")
	tm.sees("Beware: this is not the system's own sudo, ssh or git, and can do what it likes with the answer.\r\n")
	tm.sees(passwordPrompt)
}

// shownNowhere checks that the secret was not on the terminal. The script that asks for it is not shown.
func (tm *seat) shownNowhere() {
	tm.t.Helper()
	assert.NotContains(tm.t, tm.seen+tm.unread, secret)
}

func TestRunAsksForPasswords(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	for name, keys := range map[string]string{
		"typed": secret + "\r", "with a newline": secret + "\n", "after Ctrl-U": "wrong\x15" + secret + "\r", "with backspaces": "s3é\x7f\x08\x7f" + secret + "x\x7f\r",
	} {
		t.Run(name, func(t *testing.T) {
			tm := onTerminal(t, testenv.TempDir(t), "xterm", "run", asksFor)
			tm.asksForPassword("Password: ")
			tm.types(keys)
			tm.sees("\r\nright\r\n")
			tm.exits(0)
			tm.isAsBefore()
			tm.shownNowhere()
		})
	}
}

func TestNoPasswordIsAnAnswerToo(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	for name, keys := range map[string]string{"enter": "\r", "interrupt": "half" + ctrlC, "end of file": "half" + ctrlD, "quit": ctrlBackslash, "nothing left": "x\x7f\r"} {
		t.Run(name, func(t *testing.T) {
			tm := onTerminal(t, testenv.TempDir(t), "xterm", "run", `"$SUDO_ASKPASS" "Password: "`)
			tm.asksForPassword("Password: ")
			tm.types(keys)
			tm.sees("no\r\nlimpet: no password: the answer was no\r\n")
			tm.exits(1)
			tm.isAsBefore()
		})
	}
}

func TestTheWordsOfAProgramGiveNoOrdersToTheTerminal(t *testing.T) {
	testenv.NeedProc(t)
	tm := onTerminal(t, testenv.TempDir(t), "xterm", "run", `"$SUDO_ASKPASS" $'\e[2Jlimpet: \u202ex\nsecond'; :`)
	tm.sees(`  | \x1b[2Jlimpet: \u202ex` + "\r\n  | second\r\n")
	tm.sees(passwordPrompt)
	tm.types(ctrlC)
	tm.exits(0)
}

func TestWhoAsksAgainSaysSo(t *testing.T) {
	testenv.NeedProc(t)
	tm := onTerminal(t, testenv.TempDir(t), "xterm", "run", `until [ "$("$SUDO_ASKPASS" p)" = `+secret+` ]; do :; done; echo right`)
	tm.asksForPassword("p")
	tm.types("wrong\r")
	tm.sees("It asks again: the last answer was probably wrong.\r\n" + passwordPrompt)
	tm.types(secret + "\r")
	tm.sees("right\r\n")
	tm.exits(0)
}

// Keys that were typed before the question, and behind the answer, are not for it.
func TestOnlyWhatIsTypedAtTheQuestionIsThePassword(t *testing.T) {
	testenv.NeedProc(t)
	home := testenv.TempDir(t)
	require.NoError(t, syscall.Mkfifo(filepath.Join(home, "fifo"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(home, "asks"), []byte("cat fifo; "+asksFor+"\n"), 0o600))
	tm := onTerminal(t, home, "xterm", "repl")
	tm.sees("~ $ ")
	tm.types(". ./asks\n")
	tm.sees("asks\r\n")
	tm.types("before")
	f, err := os.OpenFile(filepath.Join(home, "fifo"), os.O_WRONLY, 0) // It waits until cat reads.
	require.NoError(t, err)
	require.NoError(t, f.Close())
	tm.sees(passwordPrompt)
	tm.types(secret + "\rtouch behind\r")
	tm.sees("right\r\n")
	tm.sees("~ $ ")
	tm.types(ctrlD)
	tm.exits(0)
	require.NoFileExists(t, filepath.Join(home, "behind"))
}

// A program in the background of a prompt does not get the line that is typed there.
func TestNobodyIsAskedWhileACommandIsTyped(t *testing.T) {
	testenv.NeedProc(t)
	home := testenv.TempDir(t)
	tm := onTerminal(t, home, "xterm", "repl")
	tm.sees("~ $ ")
	tm.types("(until [ -e go ]; do sleep .01; done; $SUDO_ASKPASS p 2>err; :) &\n")
	tm.sees(":) &")
	tm.sees("~ $ ")
	require.NoError(t, os.WriteFile(filepath.Join(home, "go"), nil, 0o600))
	said := testenv.AwaitFile(t, filepath.Join(home, "err"))
	assert.Equal(t, "limpet: no password: nobody is asked while a command is typed at limpet's prompt; run the command without & there", said)
	tm.types("echo $((6 * 7))\n")
	tm.sees("42\r\n")
	tm.sees("~ $ ")
	tm.types(ctrlD)
	tm.exits(0)
}

// An upgrade replaces the file of a limpet that runs.
func TestThePasswordComesFromAProgramWhoseFileIsGone(t *testing.T) {
	testenv.NeedProc(t)
	home := testenv.TempDir(t)
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	file := filepath.Join(home, "limpet")
	require.NoError(t, os.WriteFile(file, self, 0o700))
	tm := programOnTerminal(t, home, "xterm", file, "run", "rm limpet; "+asksFor)
	tm.asksForPassword("Password: ")
	tm.types(secret + "\r")
	tm.sees("right\r\n")
	tm.exits(0)
}

// The line that is typed next is not in the way of a question, nor is the answer typed at the prompt.
func TestThePromptWaitsForAQuestion(t *testing.T) {
	testenv.NeedProc(t)
	home := testenv.TempDir(t)
	require.NoError(t, syscall.Mkfifo(filepath.Join(home, "fifo"), 0o600))
	tm := onTerminal(t, home, "xterm", "repl")
	tm.sees("~ $ ")
	tm.types("($SUDO_ASKPASS p >out; :) & cat fifo; echo >over\n")
	tm.asksForPassword("p")
	f, err := os.OpenFile(filepath.Join(home, "fifo"), os.O_WRONLY, 0) // It waits until cat reads.
	require.NoError(t, err)
	require.NoError(t, f.Close())
	testenv.AwaitFile(t, filepath.Join(home, "over"))
	time.Sleep(20 * time.Millisecond) // For a prompt that comes too early.
	tm.types(secret + "\r")
	tm.sees("~ $ ")
	assert.Equal(t, secret, testenv.AwaitFile(t, filepath.Join(home, "out")))
	tm.types(ctrlD)
	tm.exits(0)
	tm.shownNowhere()
}

func TestASignalEndsAPasswordQuestion(t *testing.T) {
	testenv.NeedProc(t)
	tm := onTerminal(t, testenv.TempDir(t), "xterm", "run", asksFor)
	tm.asksForPassword("Password: ")
	require.NoError(t, tm.cmd.Process.Signal(syscall.SIGTERM))
	tm.exits(codeSignal + int(syscall.SIGTERM))
	tm.isAsBefore()
}

// What runs beside the asker cannot write over the question.
func TestOutputWaitsForTheAnswer(t *testing.T) {
	testenv.NeedProc(t)
	home := testenv.TempDir(t)
	tm := onTerminal(t, home, "xterm", "run", `(until [ -e go ]; do sleep 0.01; done; echo noise; echo >made) & `+asksFor+`; wait`)
	tm.asksForPassword("Password: ")
	require.NoError(t, os.WriteFile(filepath.Join(home, "go"), nil, 0o600))
	testenv.AwaitFile(t, filepath.Join(home, "made"))
	tm.types(secret + "\r")
	tm.sees("\r\nnoise\r\n") // The first is that of the answer.
	tm.sees("right\r\n")
	tm.exits(0)
}

// In a session that stays the one who runs a command there is asked, and nobody when that one is gone.
func TestASessionAsksWhoeverRunsACommandThere(t *testing.T) {
	testenv.NeedProc(t)
	home := testenv.TempDir(t)
	t.Setenv("XDG_STATE_HOME", home)
	for range 2 {
		tm := onTerminal(t, home, "xterm", "run", "-s", "asking", asksFor)
		tm.asksForPassword("Password: ")
		tm.types(secret + "\r")
		tm.sees("right\r\n")
		tm.exits(0)
		tm.shownNowhere()
	}
	out, err := exec.Command("limpet", "run", "-s", "asking", `"$SUDO_ASKPASS" p`).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "limpet: no password: nobody can be asked, as limpet has no terminal")
	require.NoError(t, exec.Command("limpet", "session", "close", "asking").Run())
}

// Programs get the answer. It is not in anything that limpet writes: files, the protocol that LIMPET_DEBUG prints, the terminal,
// arguments and environments.
func TestAPasswordIsWrittenNowhere(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	home, state, run := testenv.TempDir(t), testenv.TempDir(t), testenv.TempDir(t)
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("XDG_RUNTIME_DIR", run)
	t.Setenv("LIMPET_DEBUG", "1")
	hash := `[ "$("$SUDO_ASKPASS" p | sha256sum | wc -c)" -gt 64 ] && echo got it; history; set | grep -c .; cat fifo`
	for _, args := range [][]string{{"run", hash}, {"run", "-s", "quiet", hash}} {
		require.NoError(t, syscall.Mkfifo(filepath.Join(home, "fifo"), 0o600))
		tm := onTerminal(t, home, "xterm", args...)
		tm.sees(passwordPrompt)
		tm.types(secret + "\r")
		tm.sees("got it\r\n")
		for _, root := range []string{home, state, run} {
			assert.NotZero(t, grepped(t, root)+1)
		}
		assert.NotZero(t, grepped(t, run), "a shell has files")
		for _, process := range testenv.Children() {
			for _, name := range []string{"cmdline", "environ"} {
				b, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(process.PID), name)) // It may have ended.
				assert.NotContains(t, string(b), secret)
			}
		}
		f, err := os.OpenFile(filepath.Join(home, "fifo"), os.O_WRONLY, 0) // It waits until cat reads.
		require.NoError(t, err)
		require.NoError(t, f.Close())
		tm.exits(0)
		tm.shownNowhere()
		require.NoError(t, os.Remove(filepath.Join(home, "fifo")))
		grepped(t, state)
		grepped(t, home)
	}
	require.NoError(t, exec.Command("limpet", "session", "close", "quiet").Run())
	assert.NotZero(t, grepped(t, state), "a session has a record")
}

// grepped counts the files below a directory, none of which has the secret.
func grepped(t *testing.T, root string) (files int) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil // It is gone, or no file.
		}
		b, _ := os.ReadFile(path) // As above.
		files++
		assert.False(t, strings.Contains(string(b), secret), path)
		return nil
	}))
	return files
}
