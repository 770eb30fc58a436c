package terminal_test

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

// What left memory is read from the log, and is the same.
func TestATerminalThatLeftMemoryIsReplayedFromItsLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "terminals")
	r := openIn(t, dir, &terminal.Options{Grace: time.Hour, BufferLimit: 64 << 10})
	for _, line := range []string{
		"echo hello; exit 3",
		// More than is kept; it ends in the alternate screen, at another size.
		`seq 100000; stty rows 10 cols 40; printf '\033[?1049h\033[2;3Hon the other screen'; kill -KILL $$`,
		"true",
	} {
		term := startSpec(t, r, terminal.Spec{Line: line})
		if strings.HasPrefix(line, "seq") {
			require.NoError(t, term.Resize(terminal.Size{Cols: 40, Rows: 10}))
		}
		before := ended(t, term)
		screen, err := term.Screen()
		require.NoError(t, err)
		lines, err := term.Scrollback()
		require.NoError(t, err)
		raw := output(t, term)

		other := openIn(t, dir, nil) // It is as another program.
		terminal.Retire(term)
		again, err := r.Get(term.ID())
		require.NoError(t, err)
		elsewhere, err := other.Get(term.ID())
		require.NoError(t, err)
		for _, past := range []*terminal.Terminal{term, again, elsewhere} {
			<-past.Done()
			assert.Equal(t, raw, output(t, past))
			s, err := past.Screen()
			require.NoError(t, err)
			assert.Equal(t, screen, s)
			l, err := past.Scrollback()
			require.NoError(t, err)
			assert.Equal(t, lines, l)
			info := past.Info()
			assert.Equal(t, before.State, info.State)
			assert.Equal(t, before.Exit, info.Exit)
			assert.Equal(t, before.Bytes, info.Bytes)
			assert.Equal(t, before.LastLine, info.LastLine)
			v, err := past.Attach(info.Kept)
			require.NoError(t, err)
			var all strings.Builder
			for {
				c, err := v.Next(testenv.Context(t))
				if err == io.EOF {
					break
				}
				require.NoError(t, err)
				assert.Zero(t, c.Missed)
				all.Write(c.Data)
			}
			assert.Equal(t, raw, all.String())
			require.NoError(t, past.Close())
		}
	}
}

func TestOutputLeavesMemoryAfterTheGrace(t *testing.T) {
	r := open(t, &terminal.Options{Grace: time.Millisecond})
	term := startSpec(t, r, terminal.Spec{Line: "echo hello"})
	ended(t, term)
	testenv.Await(t, "it to leave memory", func() bool { return terminal.InMemory(r) == 0 })
	assert.Equal(t, "hello\r\n", output(t, term))
}

func TestForgottenTerminalsAreGone(t *testing.T) {
	r := open(t, nil)
	term := startSpec(t, r, terminal.Spec{Line: "echo hello; read -r x"})
	see(t, term, "hello")
	require.ErrorIs(t, r.Forget(term.ID()), terminal.ErrRunning)
	send(t, term, "Enter")
	ended(t, term)
	require.NoError(t, r.Forget(term.ID()))
	require.ErrorIs(t, r.Forget(term.ID()), terminal.ErrNotFound)
	_, err := r.Get(term.ID())
	require.ErrorIs(t, err, terminal.ErrNotFound)
	_, err = term.Screen()
	require.ErrorIs(t, err, terminal.ErrNotFound)
	for _, id := range []string{"", "x", "../x", "term-", "term-../x", "term-nope"} {
		_, err := r.Get(id)
		require.ErrorIs(t, err, terminal.ErrNotFound, id)
	}
	entries, err := os.ReadDir(r.Dir())
	require.NoError(t, err)
	require.Len(t, entries, 1, "the lock alone")
}

func TestOldTerminalsAreForgotten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "terminals")
	r := openIn(t, dir, &terminal.Options{Grace: 1, KeepEnded: 3})
	var last []string
	for range 8 {
		term := startSpec(t, r, terminal.Spec{Line: "echo hello"})
		ended(t, term)
		last = append(last, term.ID())
		testenv.Await(t, "it to leave memory", func() bool { return terminal.InMemory(r) == 0 })
	}
	infos, err := openIn(t, dir, &terminal.Options{KeepEnded: 3, Grace: 1}).List()
	require.NoError(t, err)
	var ids []string
	for _, i := range infos {
		ids = append(ids, i.ID)
	}
	assert.Equal(t, last[5:], ids)
	infos, err = openIn(t, dir, &terminal.Options{KeepFor: 1, Grace: 1}).List()
	require.NoError(t, err)
	assert.Empty(t, infos)
}

// The program that has terminals is killed: see TestMain.
func TestTerminalsOfAProgramThatWasKilledAreLost(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	dir := filepath.Join(t.TempDir(), "terminals")
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), ownerVar+"=1")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	said, err := io.ReadAll(io.LimitReader(out, int64(len("ready\n"))))
	require.NoError(t, err)
	require.Equal(t, "ready\n", string(said))

	r := openIn(t, dir, nil)
	infos, err := r.List()
	require.NoError(t, err)
	require.Len(t, infos, 4)
	for _, i := range infos {
		assert.Equal(t, i.State == terminal.Running, i.Elsewhere)
		assert.Equal(t, cmd.Process.Pid, i.OwnerPID)
	}
	running, ended := infos[0], infos[3]
	require.Equal(t, terminal.Running, running.State)
	require.Equal(t, terminal.Failed, ended.State)
	term, err := r.Get(running.ID)
	require.NoError(t, err)
	_, err = term.Screen()
	require.ErrorIs(t, err, terminal.ErrElsewhere)
	_, err = term.Write([]byte("x"))
	require.ErrorIs(t, err, terminal.ErrElsewhere)
	require.ErrorIs(t, term.Close(), terminal.ErrElsewhere)
	require.ErrorIs(t, r.Forget(running.ID), terminal.ErrRunning)
	require.True(t, testenv.Alive(running.PID))

	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // It was killed.
	testenv.Await(t, "what ran to be ended", func() bool {
		return !slices.ContainsFunc(infos[:3], func(i terminal.Info) bool { return testenv.Alive(i.PID) })
	})
	var lost []terminal.Change
	told := make(chan terminal.Change, 10)
	r.Observe(func(c terminal.Change) { told <- c })
	infos, err = r.List()
	require.NoError(t, err)
	require.Len(t, infos, 4)
	for _, i := range infos[:3] {
		assert.Equal(t, terminal.Lost, i.State)
		assert.Contains(t, i.Why, "is gone")
		assert.False(t, i.Ended.IsZero())
		lost = append(lost, <-told)
	}
	assert.Equal(t, terminal.Failed, infos[3].State)
	assert.Equal(t, terminal.Lost, lost[0].To)
	assert.Equal(t, terminal.Lost, term.Info().State)
	_, err = term.Write([]byte("x"))
	require.ErrorIs(t, err, terminal.ErrEnded)
	require.NoError(t, term.Close())
	s, err := term.Screen()
	require.NoError(t, err)
	assert.Empty(t, s.Text(), "nothing of it was written down")
	require.NoError(t, r.Forget(running.ID))
	again, err := openIn(t, dir, nil).List()
	require.NoError(t, err)
	require.Len(t, again, 3)
	assert.Equal(t, terminal.Lost, again[0].State)
}

// The program may end between a Get and what is done with it. Nobody watches the record.
func TestAnEndThatIsFoundInTheRecordEndsAWait(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "terminals")
	r, other := openIn(t, dir, nil), openIn(t, dir, nil) // The other one is as another program.
	term := startSpec(t, r, terminal.Spec{Line: "read -r x; echo hello; exit 3"})
	var got []*terminal.Terminal
	for range 3 {
		past, err := other.Get(term.ID())
		require.NoError(t, err)
		require.True(t, past.Info().Elsewhere)
		got = append(got, past)
	}
	send(t, term, "Enter")
	ended(t, term)

	w := wait(t, got[0], terminal.WaitOptions{})
	assert.Equal(t, terminal.WaitExited, w.Reason)
	assert.Equal(t, 3, w.Info.Exit.Code)
	assert.Equal(t, terminal.Failed, got[1].Info().State)
	<-got[1].Done()
	<-got[0].Done()
	w = wait(t, got[2], terminal.WaitOptions{Pattern: "hello"})
	assert.Equal(t, terminal.WaitMatched, w.Reason)
}
