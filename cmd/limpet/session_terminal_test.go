package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// Where there is a terminal, programs in the session may ask for passwords there: by the process that keeps it.
func TestManyAtATerminalMakeOneSession(t *testing.T) {
	testenv.Slow(t)
	home := sharedDir(t)
	for round := range 5 {
		tm := programOnTerminal(t, home, "xterm", "bash", "-c", `for i in 1 2 3 4 5; do limpet run -n -s shared 'x+=.' & done; wait; limpet run -s shared 'echo "[$x]"'; x=$?; [[ $1 == 4 ]] || limpet session close shared; exit $x`, "bash", fmt.Sprint(round))
		tm.sees("[.....]")
		tm.exits(0)
		require.Equal(t, 1, strings.Count(tm.seen, "is new"), "%d: %s", round, tm.seen)
	}
}

func TestREPLOfASessionByNameLeavesItsCommandWhenTheTerminalIsGone(t *testing.T) {
	home := sharedDir(t)
	tm := onTerminal(t, home, "xterm", "repl", "-s", "shared")
	tm.sees("$ ")
	tm.types("echo >begun; until [[ -e go ]]; do sleep 0.01; done; x=over\r")
	testenv.Await(t, "the command", func() bool { _, err := os.Stat(filepath.Join(home, "begun")); return err == nil })
	require.NoError(t, tm.cmd.Process.Signal(syscall.SIGHUP))
	tm.exits(codeSignal + int(syscall.SIGHUP))
	tm.isAsBefore()
	require.NoError(t, os.WriteFile(filepath.Join(home, "go"), nil, 0o600))
	code, said := inShared(t, home, "run", "-s", "shared", "echo $x")
	require.Equal(t, "over\n", said, fmt.Sprint(code))

	// SIGTERM stops it.
	tm = onTerminal(t, home, "xterm", "repl", "-s", "shared")
	tm.sees("$ ")
	tm.types("echo >again; sleep 1000; x=never\r")
	testenv.Await(t, "the command", func() bool { _, err := os.Stat(filepath.Join(home, "again")); return err == nil })
	require.NoError(t, tm.cmd.Process.Signal(syscall.SIGTERM))
	tm.exits(codeSignal + int(syscall.SIGTERM))
	tm.isAsBefore()
	_, said = inShared(t, home, "run", "-s", "shared", "echo $x")
	require.Equal(t, "over\n", said)
}
