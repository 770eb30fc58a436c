package transporttest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/shell"
)

// 26. Starting is bounded: a bash that hangs, or is none, or an init file that
// hangs, is an error that names it, and leaves nothing behind.
func boundedStart(t *testing.T, s suite) {
	dir := s.tempDir(t)
	script := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o700))
		s.give(t, path)
		return path
	}
	mark := "echo " + ipc.SessionVar + "=$" + ipc.SessionVar + " >" + filepath.Join(dir, "mark") + "\n"
	for _, c := range []struct {
		name string
		opts shell.Options
		says string
	}{
		{"hangs", shell.Options{Bash: script("hangs", "#!/bin/sh\n"+mark+"exec sleep 1000\n")}, "in time"},
		{"hangs with a child", shell.Options{Bash: script("child", "#!/bin/sh\n"+mark+"sleep 1000\n:\n")}, "in time"},
		{"stubborn", shell.Options{Bash: script("stubborn", "#!/bin/sh\n"+mark+"trap '' INT TERM HUP\nwhile :; do sleep 1; done\n")}, "in time"},
		{"ends", shell.Options{Bash: script("ends", "#!/bin/sh\necho what it said >&2; exit 3\n")}, "what it said"},
		{"is no program", shell.Options{Bash: script("text", "just text")}, "text"},
		{"init file hangs", shell.Options{InitFiles: []string{script("init", mark+"sleep 1000\n")}}, "init"},
		{"init file ends bash", shell.Options{InitFiles: []string{script("init2", "exit 4\n")}}, "init2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_ = os.Remove(filepath.Join(dir, "mark")) // There is none before the first.
			c.opts.RuntimeDir = s.runtimeDir(t)
			out := filepath.Join(s.tempDir(t), "out")
			// A program of its own: this one's shells have brought up what a first
			// shell needs.
			program := s.again(t, roleStart, out, c.opts.Bash, strings.Join(c.opts.InitFiles, ":"), c.opts.RuntimeDir)
			began := time.Now()
			require.NoError(t, program.Start())
			t.Cleanup(func() {
				_ = program.Process.Kill() // It has ended if all is well.
				_ = program.Wait()         // As above.
			})
			said := testenv.AwaitFile(t, out)
			t.Logf("failed after %v: %s", time.Since(began).Round(time.Millisecond), said)
			assert.Contains(t, said, "StartError")
			assert.Contains(t, said, c.opts.Bash, "it names what hangs")
			assert.Contains(t, said, c.says)
			checkEmpty(t, c.opts.RuntimeDir)
			if entry, err := os.ReadFile(filepath.Join(dir, "mark")); err == nil {
				left := testenv.Marked(string(entry[:len(entry)-1]))
				assert.Empty(t, left, "still runs: %s", testenv.Describe(left))
			}
		})
	}
	_, err := shell.Start(t.Context(), &shell.Options{Bash: filepath.Join(dir, "nosuch"), Transport: s.transport})
	var start *shell.StartError
	require.ErrorAs(t, err, &start)
	_, err = shell.Start(t.Context(), &shell.Options{Dir: filepath.Join(dir, "nosuch"), Transport: s.transport})
	var missing *shell.DirError
	assert.ErrorAs(t, err, &missing)
}

// 26. Starting is safe from SIGTTIN and SIGTTOU: a program in the background
// of a terminal, even of one with tostop, starts a shell and uses it.
func backgroundOfTerminal(t *testing.T, s suite) {
	out := filepath.Join(s.tempDir(t), "out")
	helper := s.again(t, roleTerminal, out)
	// Under set -m bash gives the job a group of its own, in the background.
	script := `stty tostop; set -m; "$@" >/dev/null 2>&1 & wait $!`
	cmd := exec.Command("bash", append([]string{"--norc", "-c", script, "leader"}, helper.Args...)...)
	cmd.Env = helper.Env
	terminal, err := pty.Start(cmd)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // It has ended if all is well.
		_ = cmd.Wait()         // As above.
		_ = terminal.Close()   // Nothing was written to it.
	})
	assert.Equal(t, "background, hello from bash, 124", testenv.AwaitFile(t, out))
}
