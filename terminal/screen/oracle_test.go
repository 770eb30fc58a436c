package screen_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal/screen"
)

// tmuxScreen is what tmux shows of what a program prints.
type tmuxScreen struct {
	text     string
	col, row int
}

// tmux runs servers of its own, on a socket in a directory of the test.
type tmux struct {
	t      *testing.T
	socket string
	dir    string
}

func newTmux(t *testing.T) *tmux {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux")
	}
	dir, err := os.MkdirTemp("", "scr") // t.TempDir is too long for a socket.
	require.NoError(t, err)
	m := &tmux{t: t, dir: dir, socket: filepath.Join(dir, "s")}
	m.run("-u", "new-session", "-d", "sleep", "300") // The server lives as long as a session.
	m.run("set", "-g", "status", "off")
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", m.socket, "kill-server").Run() // There may be none.
		_ = os.RemoveAll(dir)
	})
	return m
}

func (m *tmux) run(args ...string) string {
	m.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-S", m.socket, "-f", "/dev/null"}, args...)...)
	cmd.Env = append(os.Environ(), "TMUX=", "LC_ALL=C.UTF-8", "TERM=xterm-256color")
	out, err := cmd.Output()
	require.NoError(m.t, err, "tmux %q", args)
	return string(out)
}

// show prints the script in a window of its own.
func (m *tmux) show(script []byte, size screen.Size) tmuxScreen {
	m.t.Helper()
	file := filepath.Join(m.dir, "in")
	require.NoError(m.t, os.WriteFile(file, script, 0o600))
	done := filepath.Join(m.dir, "done")
	_ = os.Remove(done)
	// The terminal must not turn newlines into more.
	command := fmt.Sprintf("stty raw -echo; cat %s; touch %s; exec sleep 60", file, done)
	m.run("-u", "new-session", "-d", "-s", "w", "-x", fmt.Sprint(size.Cols), "-y", fmt.Sprint(size.Rows), "sh", "-c", command)
	require.Eventually(m.t, func() bool { _, err := os.Stat(done); return err == nil }, testenv.Patience, time.Millisecond)
	var got tmuxScreen
	// cat has written, tmux reads soon: wait until two looks are the same.
	require.Eventually(m.t, func() bool {
		now := tmuxScreen{text: m.run("-u", "capture-pane", "-p", "-t", "w")}
		_, err := fmt.Sscan(m.run("display", "-p", "-t", "w", "#{cursor_x} #{cursor_y}"), &now.col, &now.row)
		require.NoError(m.t, err)
		same := now == got
		got = now
		return same
	}, testenv.Patience, 20*time.Millisecond)
	m.run("kill-session", "-t", "w")
	lines := strings.Split(got.text, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	got.text = strings.TrimRight(strings.Join(lines, "\n"), "\n")
	return got
}

// TestScreensAreThoseOfTmux prints the same to tmux.
func TestScreensAreThoseOfTmux(t *testing.T) {
	testenv.Slow(t)
	m := newTmux(t)
	for _, c := range append(scripts(t), captures(t)...) {
		if c.differs {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			m.t = t
			want := m.show(c.script, c.size)
			if want.col == c.size.Cols { // tmux counts the column behind the last.
				want.col--
			}
			text, col, row := played(c)
			assert.Equal(t, want, tmuxScreen{text, col, row}, "%q", c.script)
			if !strings.HasSuffix(c.name, ".raw") {
				return
			}
			e := screen.New(c.size, nil)
			_, _ = e.Write(c.script)
			assert.Equal(t, want, m.show(e.Screen().ANSI(), c.size), "painted anew")
		})
	}
}
