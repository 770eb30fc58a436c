package main

import (
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A prompt that is waited for is one with a status, or follows output: the
// editor may show a line that is being typed again, and its prompt with it.

func TestREPLCtrlCStopsTheCommandOnly(t *testing.T) {
	home := t.TempDir()
	bell, err := newBell(filepath.Join(home, "bell"))
	require.NoError(t, err)
	defer bell.close()
	for _, name := range []string{"xterm", "dumb"} {
		t.Run(name, func(t *testing.T) {
			tm := onTerminal(t, home, name, "repl")
			tm.sees("~ $ ")
			tm.types("x=kept; f() { echo \"<$x>\"; }\r")
			tm.types("(echo >bell; exec sleep 50)\r")
			require.NoError(t, bell.wait())
			tm.types(ctrlBackslash) // It is nothing to limpet.
			tm.types(ctrlC)
			tm.sees("limpet: command stopped: got SIGINT (the shell kept its state, 1 process signalled)\r\n")
			tm.sees("~ [130] $ ")
			tm.types("f; false\r")
			tm.sees("<kept>\r\n")
			tm.sees("~ [1] $ ")
			tm.types(ctrlD)
			tm.exits(1)
			tm.isAsBefore()
		})
	}
}

func TestREPLCtrlCAtThePrompt(t *testing.T) {
	for _, name := range []string{"xterm", "dumb"} {
		t.Run(name, func(t *testing.T) {
			tm := onTerminal(t, t.TempDir(), name, "repl")
			tm.sees("~ $ ")
			tm.types(ctrlC)
			tm.sees("\r\n~ $ ")
			tm.types("if true\r") // A statement that is not complete is dropped as well.
			tm.sees("> ")
			tm.types(ctrlC)
			tm.sees("\r\n~ $ ")
			tm.types("nonsense" + ctrlC)
			tm.sees("\r\n~ $ ")
			tm.types("echo $((6 * 7))\r")
			tm.sees("42\r\n~ $ ")
			tm.types(ctrlD)
			tm.exits(0)
			tm.isAsBefore()
		})
	}
}

func TestREPLPromptSaysWhere(t *testing.T) {
	for _, name := range []string{"xterm", "dumb"} {
		t.Run(name, func(t *testing.T) {
			tm := onTerminal(t, t.TempDir(), name, "repl")
			tm.sees(greeting + "\r\n")
			tm.sees("~ $ ")
			tm.types("mkdir src; cd src; echo in\r")
			tm.sees("in\r\n~/src $ ")
			tm.types("false\r")
			tm.sees("~/src [1] $ ")
			tm.types("if true\r")
			tm.sees("> ")
			tm.types("then echo yes; fi\r")
			tm.sees("yes\r\n~/src $ ")
			tm.types("cd /; echo out\r")
			tm.sees("out\r\n/ $ ")
			tm.types(ctrlD)
			tm.exits(0)
		})
	}
}

// Under a shell with jobs of its own: the kernel lets no terminal stop a
// program that has nobody to continue it.
func TestREPLCtrlZDoesNothing(t *testing.T) {
	for _, name := range []string{"xterm", "dumb"} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			bell, err := newBell(filepath.Join(home, "bell"))
			require.NoError(t, err)
			defer bell.close()
			tm := programOnTerminal(t, home, name, "bash", "-mc", `limpet repl; echo "left: $?"`)
			tm.sees("~ $ ")
			tm.types("x=kept; (echo >bell; exec sleep 50)\r")
			require.NoError(t, bell.wait())
			tm.types(ctrlZ)
			tm.types(ctrlC)
			tm.sees("limpet: command stopped: got SIGINT (the shell kept its state, 1 process signalled)\r\n")
			tm.sees("~ [130] $ ")
			tm.types(ctrlZ)
			tm.types("echo \"<$x>\"\r")
			tm.sees("<kept>\r\n~ $ ")
			tm.types("bash -c 'trap -p'; (exit 7)\r")
			tm.sees("~ [7] $ ")
			require.NotContains(t, tm.seen, "SIGTSTP") // Commands do not ignore it.
			tm.types("exit 3\r")
			tm.sees("left: 3\r\n")
			tm.exits(0)
		})
	}
}

func TestREPLWarnsOnALineOfItsOwn(t *testing.T) {
	for _, name := range []string{"xterm", "dumb"} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(home, "rt"), 0o700))
			tm := onTerminal(t, home, name, "repl", "--runtime-dir", "rt")
			tm.sees("~ $ ")
			tm.types("mv rt/limpet-*/*/*/ gone; false\r")
			tm.sees("~ [1] $ ")
			tm.types("echo $((6 * 7))\r")
			tm.sees("\r\n42\r\n~ $ ")
			require.Contains(t, tm.seen, "\r\nlimpet: the runtime directory was deleted under a live session (recreated=true)\r\n")
			tm.types(ctrlD)
			tm.exits(0)
		})
	}
}

func TestREPLHistory(t *testing.T) {
	tm := onTerminal(t, t.TempDir(), "xterm", "repl")
	tm.sees("~ $ ")
	tm.types("i=$((i + 1)); echo \"[$i]\"; false\r")
	tm.sees("[1]\r\n~ [1] $ ")
	tm.types(arrowUp + "\r")
	tm.sees("[2]\r\n~ [1] $ ")
	tm.types("exit 3\r")
	tm.exits(3)
	tm.isAsBefore()
}

func TestREPLEndsBySignal(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signalName(sig), func(t *testing.T) {
			if signal.Ignored(sig) {
				t.Skip("it is ignored, as under nohup")
			}
			home := t.TempDir()
			bell, err := newBell(filepath.Join(home, "bell"))
			require.NoError(t, err)
			defer bell.close()

			tm := onTerminal(t, home, "xterm", "repl") // At the prompt.
			tm.sees("~ $ ")
			require.NoError(t, tm.cmd.Process.Signal(sig))
			tm.sees("\r\nlimpet: got " + signalName(sig) + "\r\n")
			tm.exits(codeSignal + int(sig))
			tm.isAsBefore()

			tm = onTerminal(t, home, "xterm", "repl") // While a command runs.
			tm.sees("~ $ ")
			tm.types("(echo >bell; exec sleep 50)\r")
			require.NoError(t, bell.wait())
			require.NoError(t, tm.cmd.Process.Signal(sig))
			tm.sees("limpet: command stopped: got " + signalName(sig))
			tm.exits(codeSignal + int(sig))
			tm.isAsBefore()
		})
	}
}

func TestRunCtrlC(t *testing.T) {
	home := t.TempDir()
	bell, err := newBell(filepath.Join(home, "bell"))
	require.NoError(t, err)
	defer bell.close()
	tm := onTerminal(t, home, "xterm", "run", "echo >bell; sleep 50", "echo later >later")
	require.NoError(t, bell.wait())
	tm.types(ctrlC)
	tm.sees("limpet: command stopped: got SIGINT")
	tm.exits(codeSignal + int(syscall.SIGINT))
	require.NoFileExists(t, filepath.Join(home, "later"))
}
