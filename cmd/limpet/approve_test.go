package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// asksAbout waits until the question about touch is on the terminal.
func (tm *seat) asksAbout(script string) {
	tm.t.Helper()
	tm.sees("limpet: may this run in ")
	tm.sees("  | " + script + "\r\n")
	tm.sees("it writes files (ask.write)")
	tm.sees("any other key: no")
}

func TestRunAsksAtTheTerminal(t *testing.T) {
	testenv.Slow(t)
	for name, c := range map[string]struct {
		keys string
		ran  bool
	}{
		"yes": {"y", true}, "for the session": {"s", true}, "no": {"n", false}, "enter": {"\r", false}, "escape": {"\x1b", false},
		"interrupt": {ctrlC, false}, "a paste": {"yes", false}, "an arrow": {arrowUp, false},
	} {
		t.Run(name, func(t *testing.T) {
			home := testenv.TempDir(t)
			tm := onTerminal(t, home, "xterm", "run", "--approve", "ask", "touch made; echo ran")
			tm.asksAbout("touch made; echo ran")
			require.NoFileExists(t, filepath.Join(home, "made"))
			tm.types(c.keys)
			if c.ran {
				tm.sees("ran\r\n")
				tm.exits(0)
				require.FileExists(t, filepath.Join(home, "made"))
			} else {
				tm.sees("limpet: not approved: touch made: it writes files; the answer was no")
				tm.exits(codeCannot)
				require.NoFileExists(t, filepath.Join(home, "made"))
			}
			tm.isAsBefore()
		})
	}
}

func TestWhatChangesNothingAsksNobody(t *testing.T) {
	tm := onTerminal(t, testenv.TempDir(t), "xterm", "run", "--approve", "ask", "echo a | wc -l")
	tm.sees("1\r\n")
	tm.exits(0)
}

// Keys that were typed before the question are not for it.
func TestNobodyAnswersBeforeTheQuestion(t *testing.T) {
	home := testenv.TempDir(t)
	fifo := filepath.Join(home, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	tm := onTerminal(t, home, "xterm", "run", "--approve", "ask", "cat fifo", "touch made")
	tm.types("yyy")
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0) // It waits until cat reads.
	require.NoError(t, err)
	require.NoError(t, f.Close())
	tm.asksAbout("touch made")
	tm.types("n")
	tm.exits(codeCannot)
	require.NoFileExists(t, filepath.Join(home, "made"))
}

func TestASignalEndsAQuestion(t *testing.T) {
	home := testenv.TempDir(t)
	tm := onTerminal(t, home, "xterm", "run", "--approve", "ask", "touch made")
	tm.asksAbout("touch made")
	require.NoError(t, tm.cmd.Process.Signal(syscall.SIGTERM))
	tm.exits(codeSignal + int(syscall.SIGTERM))
	tm.isAsBefore()
	require.NoFileExists(t, filepath.Join(home, "made"))
}

func TestAFileIsShown(t *testing.T) {
	home := testenv.TempDir(t)
	require.NoError(t, os.WriteFile(filepath.Join(home, "x.sh"), []byte("touch made\x1b[2J\n"), 0o600))
	tm := onTerminal(t, home, "xterm", "run", "--approve", "ask", "-f", "x.sh")
	tm.sees("  | bash x.sh\r\n")
	tm.sees("The file has:")
	tm.sees(`  | touch made\x1b[2J` + "\r\n")
	tm.sees("any other key: no")
	tm.types("y")
	tm.exits(0)
}

// The file that was shown is the one that runs.
func TestAFileThatChangesWhileItIsShownIsAskedAboutAnew(t *testing.T) {
	home := testenv.TempDir(t)
	file := filepath.Join(home, "x.sh")
	require.NoError(t, os.WriteFile(file, []byte("echo one\n"), 0o600))
	tm := onTerminal(t, home, "xterm", "run", "--approve", "ask", "-f", "x.sh")
	tm.sees("  | echo one\r\n")
	tm.sees("any other key: no")
	require.NoError(t, os.WriteFile(file, []byte("touch made\n"), 0o600))
	tm.types("y")
	tm.sees("  | touch made\r\n")
	tm.sees("any other key: no")
	tm.types("n")
	tm.exits(codeCannot)
	require.NoFileExists(t, filepath.Join(home, "made"))
}

func TestAFileThatIsTooLongIsNotAskedAbout(t *testing.T) {
	home := testenv.TempDir(t)
	require.NoError(t, os.WriteFile(filepath.Join(home, "x.sh"), bytes.Repeat([]byte("# line\n"), 10000), 0o600))
	tm := onTerminal(t, home, "xterm", "run", "--approve", "ask", "-f", "x.sh")
	tm.sees("which is too long for a question")
	tm.exits(codeFailed)
}

// Output that does not end its line is not in front of the question.
func TestAQuestionBeginsALine(t *testing.T) {
	tm := onTerminal(t, testenv.TempDir(t), "xterm", "run", "--approve", "ask", "printf open", "touch made")
	tm.sees("open\r\nlimpet: may this run in ")
	tm.sees("any other key: no")
	tm.types("n")
	tm.exits(codeCannot)
}

// What starts a job, or a program on a terminal, asks before that.
func TestJobsAndTerminalsAskBeforeTheyStart(t *testing.T) {
	testenv.Slow(t)
	const stays = "tail -f /dev/null | tee made"
	for name, args := range map[string][]string{
		"a job": {"jobs", "start", stays}, "a program": {"term", "start", "tee", "made"}, "a line": {"term", "start", "--line", stays},
	} {
		t.Run(name, func(t *testing.T) {
			home := testenv.TempDir(t)
			t.Setenv("XDG_STATE_HOME", home)
			t.Setenv("GORACE", "atexit_sleep_ms=0")
			script := stays
			if name == "a program" {
				script = "tee made"
			}
			with := append(args[:2:2], append([]string{"--approve", "ask"}, args[2:]...)...)
			tm := onTerminal(t, home, "xterm", with...)
			tm.asksAbout(script)
			tm.types("n")
			tm.sees("not approved: tee made: it writes files; the answer was no")
			tm.exits(codeCannot)
			require.NoFileExists(t, filepath.Join(home, "made"))
			tm = onTerminal(t, home, "xterm", with...)
			tm.asksAbout(script)
			tm.types("y")
			tm.exits(0)
			testenv.Await(t, "what was started", func() bool {
				_, err := os.Stat(filepath.Join(home, "made"))
				return err == nil
			})
			out, err := exec.Command("limpet", args[0], "stop", "--all").CombinedOutput()
			require.NoError(t, err, "%s", out)
		})
	}
}

// A person is asked before anything is typed to a job or a terminal.
func TestWhatIsTypedIsAskedAbout(t *testing.T) {
	testenv.Slow(t)
	for name, c := range map[string]struct{ start, types, stdin, shown, lands string }{
		"keys":           {"term start --line 'tee made'", "term send ID 'rm a' Enter", "", "'rm a' Enter", "rm a\n"},
		"a text":         {"term start --line 'tee made'", "term send --text --enter ID -", "one\ntwo", "one", "one\ntwo\n"},
		"text and keys":  {"term start --line 'tee made'", "term send ID a - Enter", "Enter", "a text:Enter Enter", "aEnter\n"},
		"a line":         {"jobs start --stdin 'tee made'", "jobs submit ID 'rm a'", "", "rm a", "rm a\n"},
		"bytes":          {"jobs start --stdin 'tee made'", "jobs write ID 'rm a'", "", "rm a", "rm a"},
		"standard input": {"jobs start --stdin 'tee made'", "jobs write ID", "one\ntwo\n", "one", "one\ntwo\n"},
	} {
		t.Run(name, func(t *testing.T) {
			home := testenv.TempDir(t)
			t.Setenv("XDG_STATE_HOME", home)
			t.Setenv("GORACE", "atexit_sleep_ms=0")
			made := filepath.Join(home, "made")
			limpet := func(command string) string {
				cmd := exec.Command("bash", "-c", "limpet "+command)
				cmd.Dir = home
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s: %s", command, out)
				return strings.TrimSpace(string(out))
			}
			id := limpet(c.start)
			noun, typing, _ := strings.Cut(strings.ReplaceAll(c.types, "ID", id), " ")
			verb, words, _ := strings.Cut(typing, " ")
			require.NoError(t, os.WriteFile(filepath.Join(home, "in"), []byte(c.stdin), 0o600))
			line := "limpet " + noun + " " + verb + " --approve MODE " + words
			if c.stdin != "" {
				line += " <in"
			}
			for key, says := range map[string]string{"n": "the answer was no", "deny": "there is nobody to ask", "y": "yes\r\n"} {
				mode := "ask"
				if key == "deny" {
					mode = "deny"
				}
				tm := programOnTerminal(t, home, "xterm", "bash", "-c", strings.Replace(line, "MODE", mode, 1))
				if key != "deny" {
					tm.sees("limpet: may this be typed to " + id + "?")
					tm.sees("  | " + c.shown + "\r\n")
					if name == "a line" || name == "a text" || name == "standard input" {
						tm.sees("With Enter at the end.")
					}
					tm.sees("\r\ny: yes   r: no, with a reason   any other key: no")
					tm.types(key)
				}
				tm.sees(says)
				if key != "y" {
					tm.exits(codeCannot)
					continue
				}
				tm.exits(0)
			}
			testenv.Await(t, "what was typed, once", func() bool {
				got, err := os.ReadFile(made)
				return err == nil && string(got) == c.lands
			})
			limpet(noun + " stop --all")
		})
	}
}

// What stands in variables of the command line and in startup files is looked at, and what came of it asks.
func TestVariablesAndStartupFilesAreLookedAt(t *testing.T) {
	testenv.Slow(t)
	home := testenv.TempDir(t)
	require.NoError(t, os.Symlink("/bin/true", filepath.Join(home, "ls")))
	rc := filepath.Join(home, "rc")
	require.NoError(t, os.WriteFile(rc, []byte("wc() { :; }\n"), 0o600))
	with := []string{"run", "--approve", "ask", "--env", "PATH=" + home + ":" + os.Getenv("PATH"), "--init", rc}
	tm := onTerminal(t, home, "xterm", append(with, "cat </dev/null; echo over")...)
	tm.sees("over")
	tm.exits(0)
	for script, why := range map[string]string{"ls": "PATH was changed here: ls is", "echo | wc": "wc is a function here"} {
		tm := onTerminal(t, home, "xterm", append(with, script)...)
		tm.sees(why)
		tm.types("n")
		tm.exits(codeCannot)
	}
}

func TestREPLAsks(t *testing.T) {
	home := testenv.TempDir(t)
	tm := onTerminal(t, home, "xterm", "repl", "--approve", "ask")
	tm.sees("~ $ ")
	tm.types("touch made\n")
	tm.asksAbout("touch made")
	tm.types("s")
	tm.sees("yes, and whenever it comes again")
	tm.sees("~ $ ")
	require.FileExists(t, filepath.Join(home, "made"))
	tm.types("touch made\n")
	tm.sees("~ $ ")
	tm.types("touch other\n")
	tm.asksAbout("touch other")
	tm.types("n")
	tm.sees("the answer was no")
	tm.sees("~ [126] $ ")
	tm.types(ctrlD)
	tm.exits(codeCannot)
	require.NoFileExists(t, filepath.Join(home, "other"))
}
