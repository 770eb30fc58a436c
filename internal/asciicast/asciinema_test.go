package asciicast_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/asciicast"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/tty"
)

// asciinema returns what the real one prints.
func asciinema(t *testing.T, args ...string) (string, error) {
	t.Helper()
	path, err := exec.LookPath("asciinema")
	if err != nil {
		t.Skip("no asciinema")
	}
	// It wants UTF-8, and a place for its settings.
	env := append(os.Environ(), "LC_ALL=C.UTF-8", "TERM=xterm-256color", "ASCIINEMA_CONFIG_HOME="+t.TempDir())
	about := exec.Command(path, "--version")
	about.Env = env
	if version, err := about.Output(); !strings.HasPrefix(string(version), "asciinema 2.") {
		t.Skipf("no asciinema 2, whose cat prints a recording: %s %v", version, err)
	}
	master, slave, err := tty.Open(tty.Size{Rows: 24, Cols: 80})
	require.NoError(t, err)
	defer master.Close()
	defer slave.Close()
	cmd := exec.CommandContext(testenv.Context(t), path, args...)
	// Its keys are read from /dev/tty.
	cmd.Stdin = slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Env = env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	t.Logf("asciinema %s: %v %s", args[0], err, stderr.String())
	return string(out), err
}

func TestAsciinemaPlaysIt(t *testing.T) {
	testenv.Slow(t)
	h := asciicast.Header{Cols: 100, Rows: 30, Started: time.Now(), Title: "a \"title\"", Command: "bash", Env: map[string]string{"SHELL": "/bin/bash"}}
	const printed = "one €\r\n\x1b[1;31mtwo\x1b[0m \U0001f600 \xe2\x82 \xff\r\n"
	recording := record(t, h, func(w *asciicast.Writer) {
		for i, c := range []byte(printed) {
			require.NoError(t, w.Output(time.Duration(i)*time.Second, []byte{c}))
			if i == 5 {
				require.NoError(t, w.Resize(time.Duration(i)*time.Second, 80, 24))
				require.NoError(t, w.Marker(time.Duration(i)*time.Second, "here"))
			}
		}
	})
	want := string([]rune(printed))
	file := filepath.Join(t.TempDir(), "a.cast")
	require.NoError(t, os.WriteFile(file, []byte(recording), 0o600))

	for _, args := range [][]string{{"cat", file}, {"play", "-i", "0.01", file}} {
		got, err := asciinema(t, args...)
		require.NoError(t, err)
		assert.Equal(t, want, got, args[0])
	}
}

func TestAsciinemaPlaysWhatAKillHasLeft(t *testing.T) {
	recording := record(t, asciicast.Header{}, func(w *asciicast.Writer) {
		require.NoError(t, w.Output(0, []byte("before\r\n")))
		require.NoError(t, w.Output(0, []byte("after\r\n")))
	})
	file := filepath.Join(t.TempDir(), "a.cast")
	whole := recording[:strings.LastIndex(strings.TrimSuffix(recording, "\n"), "\n")+1]
	require.NoError(t, os.WriteFile(file, []byte(whole), 0o600))
	got, err := asciinema(t, "cat", file)
	require.NoError(t, err)
	assert.Equal(t, "before\r\n", got)
}
