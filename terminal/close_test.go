package terminal_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/terminal"
)

func TestCloseHangsUpThenAsksThenKills(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	// Whoever obeys does so in time, however busy the machine is.
	r := open(t, &terminal.Options{Ladder: interrupt.Ladder{{Signal: syscall.SIGHUP, Grace: time.Second}, {Signal: syscall.SIGTERM, Grace: 3 * time.Second}}})
	for _, test := range []struct {
		name, script, said string
		exit               terminal.Exit
	}{
		{"one that obeys a hangup", `trap 'echo hup; exit 3' HUP`, "hup", terminal.Exit{Code: 3}},
		{"one that obeys a request", `trap 'echo hup' HUP; trap 'echo term; exit 4' TERM`, "hup\r\nterm", terminal.Exit{Code: 4}},
		{"one that obeys nothing", `trap 'echo hup' HUP; trap 'echo term' TERM`, "hup\r\nterm", terminal.Exit{Code: -1, Signal: syscall.SIGKILL}},
	} {
		term := startSpec(t, r, terminal.Spec{Line: test.script + "\necho ready; while :; do read -rt 0.01 x; done"})
		see(t, term, "ready")
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { assert.NoError(t, term.Close()) })
		}
		all.Wait()
		require.NoError(t, term.Close())
		info := term.Info()
		assert.Equal(t, terminal.Cancelled, info.State, test.name)
		assert.Equal(t, "it was closed", info.Why)
		require.NotNil(t, info.Exit)
		assert.Equal(t, test.exit, *info.Exit, test.name)
		assert.Equal(t, "ready\r\n"+test.said+"\r\n", output(t, term), test.name)
		assert.Empty(t, testenv.Marked(r.Mark()), test.name)
	}
}

func TestCloseEndsAllThatWasStarted(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	r := open(t, nil)
	term := bash(t, r)
	send(t, term, `(setsid sleep 1000 &); nohup sleep 1001 >/dev/null 2>&1 & trap '' HUP TERM; bash -c 'trap "" HUP TERM INT; sleep 1002; sleep 1003'`, "Enter")
	testenv.Await(t, "five processes", func() bool { return len(testenv.Marked(r.Mark())) == 5 })
	require.NoError(t, term.Close())
	assert.Empty(t, testenv.Marked(r.Mark()))
	assert.Zero(t, testenv.Zombies())
}

func TestCloseLeavesNoDescriptor(t *testing.T) {
	testenv.NeedProc(t)
	r := open(t, &terminal.Options{Grace: time.Hour})
	require.NoError(t, start(t, r, "cat").Close()) // What is made once is there.
	fds := testenv.FDs(t)
	for range 10 {
		term := start(t, r, "cat")
		_, err := term.Screen()
		require.NoError(t, err)
		require.NoError(t, term.Close())
	}
	assert.Equal(t, fds, testenv.FDs(t))
}

// Whoever is told that a terminal is made can have it, before it runs.
func TestATerminalCanBeClosedWhileItStarts(t *testing.T) {
	r := open(t, nil)
	closed := make(chan error, 1)
	r.Observe(func(c terminal.Change) {
		if c.To == terminal.Starting {
			term, err := r.Get(c.ID)
			assert.NoError(t, err)
			assert.False(t, term.Info().Elsewhere)
			closed <- term.Close()
		}
	})
	term := start(t, r, "cat")
	require.NoError(t, <-closed)
	assert.Equal(t, terminal.Cancelled, ended(t, term).State)
}

// A program that has ended may have left something on purpose: that goes with the registry, or
// by a Close.
func TestWhatAProgramHasLeftGoesWithTheRegistry(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	r, err := terminal.Open(filepath.Join(t.TempDir(), "terminals"), nil)
	require.NoError(t, err)
	for range 2 {
		term := startSpec(t, r, terminal.Spec{Line: "trap '' HUP; setsid sleep 1000 & echo done"})
		info := ended(t, term)
		assert.Equal(t, terminal.Succeeded, info.State)
		testenv.Await(t, "what was left", func() bool { return len(testenv.Marked(r.Mark())) == 1 })
		if t.Failed() {
			break
		}
		require.NoError(t, term.Close())
		assert.Empty(t, testenv.Marked(r.Mark()))
		assert.Equal(t, terminal.Succeeded, term.Info().State, "it had ended by itself")
	}
	ended(t, startSpec(t, r, terminal.Spec{Line: "trap '' HUP; setsid sleep 1000 & echo done"}))
	require.NoError(t, r.Close())
	assert.Empty(t, testenv.Marked(r.Mark()))
}

func TestNothingIsLeftOfManyTerminals(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	const together = 8
	total := testenv.Repeats(60, 300, 1500)
	dir := filepath.Join(t.TempDir(), "terminals")
	r, err := terminal.Open(dir, &terminal.Options{KeepEnded: 20, Grace: 1})
	require.NoError(t, err)
	ended(t, startSpec(t, r, terminal.Spec{Line: "exit"})) // What is made once is there.
	testenv.Await(t, "it to leave memory", func() bool { return terminal.InMemory(r) == 0 })
	fds := testenv.FDs(t)
	lines := []string{"echo hello", "read -r x; echo $x; exit 4", "cat", "yes | head -c 300000", "kill -HUP $$", "sleep 0.01 & wait; stty size"}
	states := []terminal.State{terminal.Succeeded, terminal.Failed, terminal.Cancelled, terminal.Succeeded, terminal.Failed, terminal.Succeeded}
	work := make(chan int)
	var all sync.WaitGroup
	for range together {
		all.Go(func() {
			for i := range work {
				kind := i % len(lines)
				term, err := r.Start(testenv.Context(t), terminal.Spec{Line: lines[kind]})
				if !assert.NoError(t, err) {
					continue
				}
				_, err = term.Screen()
				assert.NoError(t, err)
				switch kind {
				case 1:
					_, err := term.Write([]byte("typed\r"))
					assert.NoError(t, err)
				case 2:
					assert.NoError(t, term.Close())
				}
				<-term.Done()
				assert.Equal(t, states[kind], term.Info().State, lines[kind])
			}
		})
	}
	for i := range total {
		work <- i
	}
	close(work)
	all.Wait()
	testenv.Await(t, "all to leave memory", func() bool { return terminal.InMemory(r) == 0 })
	// A terminal leaves memory first, and is released and old ones are pruned then.
	testenv.Await(t, fmt.Sprintf("no more than %d descriptors", fds), func() bool { return testenv.FDs(t) <= fds })
	assert.Zero(t, testenv.Zombies())
	assert.Empty(t, testenv.Marked(r.Mark()))
	require.NoError(t, r.Close())
	infos, err := openIn(t, dir, &terminal.Options{KeepEnded: 20}).List()
	require.NoError(t, err)
	assert.Len(t, infos, 20)
}
