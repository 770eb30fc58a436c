package tty_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/tty"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func open(t *testing.T, size tty.Size) (master, slave *os.File) {
	t.Helper()
	master, slave, err := tty.Open(size)
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = master.Close() // The test may have.
		_ = slave.Close()  // As above.
	})
	return master, slave
}

func TestAReadOfTheMasterEndsAtItsDeadlineAndWithAClose(t *testing.T) {
	master, _ := open(t, tty.Size{Rows: 24, Cols: 80})
	require.NoError(t, master.SetReadDeadline(time.Now()))
	_, err := master.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.NoError(t, master.SetReadDeadline(time.Time{}))
	ended := make(chan error)
	go func() {
		_, err := master.Read(make([]byte, 1))
		ended <- err
	}()
	require.NoError(t, master.Close())
	require.ErrorIs(t, <-ended, os.ErrClosed)
}

func TestTheSizeIsThatOfTheTerminal(t *testing.T) {
	master, slave := open(t, tty.Size{Rows: 30, Cols: 100})
	rows, cols, err := pty.Getsize(slave)
	require.NoError(t, err)
	assert.Equal(t, []int{30, 100}, []int{rows, cols})
	require.NoError(t, tty.Resize(master, tty.Size{Rows: 1, Cols: 2}))
	rows, cols, err = pty.Getsize(slave)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2}, []int{rows, cols})
	require.NoError(t, master.SetReadDeadline(time.Now()), "it can be waited for as before")
	_, err = master.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
}

func TestLinesAreFollowedWhereTheTerminalCollectsThem(t *testing.T) {
	master, slave := open(t, tty.Size{Rows: 24, Cols: 80})
	for _, test := range []struct {
		before        int
		typed         string
		rest, longest int
	}{
		{0, "", 0, 0}, {3, "abc", 6, 6}, {0, "abc\nde", 2, 3}, {0, "abc\rd", 1, 3}, {0, "abc\x04", 0, 3}, {0, "ab\x00c", 4, 4},
		{0, "abc\x15d", 1, 3}, {0, "abc\x03d", 1, 3}, {0, "abc\x7f\x7fd", 2, 3}, {0, "\x7f\x7f", 0, 0},
	} {
		rest, longest := tty.ReadLineMode(master).Count(test.before, []byte(test.typed))
		assert.Equal(t, []int{test.rest, test.longest}, []int{rest, longest}, "%q", test.typed)
	}
	cmd := exec.Command("stty", "raw")
	cmd.Stdin = slave
	require.NoError(t, cmd.Run())
	rest, longest := tty.ReadLineMode(master).Count(3, []byte("abc"))
	assert.Zero(t, rest+longest)
	require.NoError(t, master.Close())
	rest, longest = tty.ReadLineMode(master).Count(3, []byte("abc"))
	assert.Zero(t, rest+longest)
}

func TestTheForegroundIsTheGroupThatHasTheTerminal(t *testing.T) {
	master, slave := open(t, tty.Size{Rows: 24, Cols: 80})
	group, _ := tty.Foreground(master)
	assert.LessOrEqual(t, group, 0)
	cmd := exec.Command("cat")
	cmd.Stdin, cmd.Stdout = slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	group, err := tty.Foreground(master)
	require.NoError(t, err)
	assert.Equal(t, cmd.Process.Pid, group)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // It was killed.
}
