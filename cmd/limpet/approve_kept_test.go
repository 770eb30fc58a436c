package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// inShared runs limpet in a directory, and returns its exit code and what it said.
func inShared(t *testing.T, dir string, args ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(testenv.Context(t), "limpet", args...)
	cmd.Dir = dir
	said, _ := cmd.CombinedOutput() // The exit code says so.
	return cmd.ProcessState.ExitCode(), string(said)
}

// sharedDir is a directory for a session that others use.
func sharedDir(t *testing.T) string {
	t.Helper()
	home := testenv.TempDir(t)
	t.Setenv("XDG_STATE_HOME", home)
	t.Cleanup(func() { require.NoError(t, exec.Command("limpet", "session", "close", "shared").Run()) })
	return home
}

func TestInASessionThatOthersUseItsStateDecides(t *testing.T) {
	home := sharedDir(t)
	passes := []string{"run", "--approve", "deny", "-s", "shared", "ls", "ls"}
	code, said := inShared(t, home, passes...)
	require.Zero(t, code, said)
	code, said = inShared(t, home, "run", "-s", "shared", "ls() { touch made; }")
	require.Zero(t, code, said)
	code, said = inShared(t, home, passes...)
	require.Equal(t, codeCannot, code, said)
	require.Contains(t, said, "ls")
	require.NoFileExists(t, filepath.Join(home, "made"))
	code, said = inShared(t, home, "run", "-s", "shared", "unset -f ls")
	require.Zero(t, code, said)
	code, said = inShared(t, home, passes...)
	require.Zero(t, code, said)
}

func TestWithVariablesOfItsOwnAScriptInASessionThatOthersUseAsks(t *testing.T) {
	home := sharedDir(t)
	code, said := inShared(t, home, "run", "--approve", "deny", "-s", "shared", "--env", "X=y", "ls")
	require.Equal(t, codeCannot, code, said)
}

// An answer is for the state that the session had.
func TestASessionThatChangesWhileAPersonThinksIsAskedAboutAnew(t *testing.T) {
	home := sharedDir(t)
	tm := onTerminal(t, home, "xterm", "run", "-n", "--approve", "ask", "-s", "shared", "touch made")
	tm.asksAbout("touch made")
	code, said := inShared(t, home, "run", "-s", "shared", "touch() { command touch other; }")
	require.Zero(t, code, said)
	tm.types("y")
	tm.sees("  | touch made\r\n")
	tm.sees("any other key: no")
	tm.types("n")
	tm.exits(codeCannot)
	require.NoFileExists(t, filepath.Join(home, "made"))
	require.NoFileExists(t, filepath.Join(home, "other"))
}

func TestAScriptWithAnIDThatAPersonHasLetRunTwiceRunsOnce(t *testing.T) {
	home := sharedDir(t)
	for range 2 {
		tm := onTerminal(t, home, "xterm", "run", "-n", "--approve", "ask", "-s", "shared", "--id", "one", "echo ran >>runs")
		tm.sees("any other key: no")
		tm.types("y")
		tm.exits(0)
	}
	runs, err := os.ReadFile(filepath.Join(home, "runs"))
	require.NoError(t, err)
	require.Equal(t, "ran\n", string(runs))
}
