package host_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
)

func TestCutsAtRandomMoments(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	everyWay(t, func(t *testing.T, m machine) {
		c := box{m.target, exec.Command, testenv.TempDir(t)}
		c.cutAtRandomMoments(t, testenv.Repeats(2, 20, 200), m.signals)
		testenv.AwaitNone(t, m.mark, "cut at random moments, and closed")
	})
}

// everyWay runs a check with a machine that is reached by a sh, and in ./test all with one that is reached by ssh, too. What connects to it, and
// what runs there, carries a mark.
func everyWay(t *testing.T, check func(t *testing.T, m machine)) {
	t.Helper()
	t.Run("exec", func(t *testing.T) {
		m := machineOf(t, marked(t), "sh")
		m.mark = marked(t)
		check(t, m)
	})
	t.Run("ssh", func(t *testing.T) {
		testenv.OnlyAll(t)
		s := startSSHD(t, "AcceptEnv "+markName)
		s.client(t, "  SendEnv "+markName)
		check(t, machine{home: s.state, target: "ssh://there", mark: marked(t)})
	})
}

const markName = "LIMPET_TEST_MARK"

// marked returns an entry of the environment that every process carries which is started from now on, until the end of the test.
func marked(t *testing.T) string {
	t.Helper()
	if os.Getenv(markName) == "" {
		t.Setenv(markName, rand.Text())
	}
	return markName + "=" + os.Getenv(markName)
}

// signals returns what signals the limpet at the end of a connection, or, if it is ssh that connects, one of the three that carry it, the
// same each time: ssh here, sshd, and limpet there. It may be gone.
func (m machine) signals(connect int) func(syscall.Signal) {
	limpet, err := proc.Read(connect)
	if err != nil {
		return func(syscall.Signal) {}
	}
	carry := []proc.Stat{limpet}
	for _, st := range testenv.Children() {
		if strings.HasPrefix(m.target, "ssh:") && filepath.Base(proc.Program(st.PID)) == "ssh" {
			carry = append(carry, st)
		}
	}
	if st, err := proc.Read(limpet.PPID); err == nil && strings.HasPrefix(filepath.Base(proc.Program(st.PID)), "sshd") {
		carry = append(carry, st)
	}
	id := carry[mathrand.IntN(len(carry))].ID()
	return func(sig syscall.Signal) { _ = proc.Signal(id, sig) } // As said.
}

// kill ends one of those that carry a connection.
func (m machine) kill(connect int) { m.signals(connect)(syscall.SIGKILL) }

// cutAtRandomMoments cuts the connection at random moments, while a command reads and writes. It has run once, has got all of its input, and
// all that it has printed is there.
func (c box) cutAtRandomMoments(t *testing.T, rounds int, signals func(connect int) func(syscall.Signal)) {
	t.Helper()
	random := mathrand.New(mathrand.NewPCG(uint64(time.Now().UnixNano()), 3))
	var cuts atomic.Int64
	h := dial(t, c.target, &host.Options{Times: short, Lost: func(error) { cuts.Add(1) }})
	s, err := h.Session(testenv.Context(t), "cuts", &keeper.Spec{})
	require.NoError(t, err)
	ran := c.dir + "/ran-at-random"
	var want strings.Builder
	for i := range 20000 {
		fmt.Fprintln(&want, i+1)
	}
	for round := range rounds {
		input := make([]byte, 300<<10)
		_, err := rand.Read(input)
		require.NoError(t, err)
		script := fmt.Sprintf("echo %d >>%s; sha256sum; sleep 0.0%d; seq 20000", round, ran, random.IntN(10))
		type cutting struct {
			after time.Duration
			how   int
		}
		plan := make([]cutting, 1+random.IntN(3))
		for i := range plan {
			plan[i] = cutting{time.Duration(random.IntN(60)) * time.Millisecond, random.IntN(4)}
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			for _, next := range plan {
				time.Sleep(next.after)
				signal := signals(connectOf(h)) // What is stopped is what goes on.
				switch next.how {
				case 0:
					signal(syscall.SIGTERM)
				case 1:
					signal(syscall.SIGSTOP)
					time.Sleep(20 * time.Millisecond)
					signal(syscall.SIGCONT)
				default:
					signal(syscall.SIGKILL)
				}
			}
		}()
		var out bytes.Buffer
		res, err := s.Do(testenv.Context(t), command.Request{Script: script, Stdin: bytes.NewReader(input), Stdout: &out})
		<-over
		what := fmt.Sprintf("round %d, %d cuts", round, cuts.Load())
		require.NoError(t, err, what)
		assert.Equal(t, 0, res.ExitCode, what)
		assert.Equal(t, fmt.Sprintf("%x  -\n", sha256.Sum256(input))+want.String(), out.String(), what)
		b, err := c.in("cat", ran).Output()
		require.NoError(t, err)
		assert.Equal(t, 1, strings.Count("\n"+string(b), fmt.Sprintf("\n%d\n", round)), "%s: it ran once", what)
	}
	t.Logf("%d commands, %d cuts", rounds, cuts.Load())
	assert.Positive(t, cuts.Load())
	testenv.Await(t, "the session to be closed", func() bool { // The last cut may come as late as that: then it is not known whether it was.
		err = h.Close(testenv.Context(t), s)
		if !errors.Is(err, host.ErrLost) && !errors.Is(err, session.ErrNotFound) {
			require.NoError(t, err)
		}
		return !errors.Is(err, host.ErrLost)
	})
	require.NoError(t, h.Disconnect())
}

// awaitNoLimpet waits until no limpet is left in a container, or a pod: all sessions are closed, and nobody is connected.
func (c box) awaitNoLimpet(t *testing.T) {
	t.Helper()
	var list []byte
	defer func() {
		if t.Failed() {
			t.Logf("what runs there:\n%s", list)
		}
	}()
	testenv.Await(t, "the end of all limpets there", func() bool {
		var err error
		list, err = c.in("ps", "-o", "pid,ppid,stat,args").Output()
		require.NoError(t, err)
		return !strings.Contains(string(list), "limpet")
	})
}

// switched is a target whose sh is what a file says.
func switched(t *testing.T) (target string, to func(script string)) {
	t.Helper()
	file := filepath.Join(testenv.TempDir(t), "how")
	return "exec:sh " + file, func(script string) { require.NoError(t, os.WriteFile(file, []byte(script), 0o600)) }
}

// cut dials a machine, cuts the connection, and returns what the next call says when the target is another.
func cut(t *testing.T, then string, opts *host.Options) error {
	t.Helper()
	m := machineOf(t, "sh")
	target, to := switched(t)
	to("exec " + strings.TrimPrefix(m.target, "exec:"))
	h := dial(t, target, opts)
	s, err := h.Session(testenv.Context(t), "s", &keeper.Spec{})
	require.NoError(t, err)
	to(then)
	require.NoError(t, syscall.Kill(connectOf(h), syscall.SIGKILL))
	began := time.Now()
	_, err = s.Run(testenv.Context(t), "echo never >>"+m.home+"/ran")
	require.Error(t, err)
	assert.Less(t, time.Since(began), 15*time.Second)
	assert.NoFileExists(t, m.home+"/ran")
	return err
}

func TestAnotherMachineOfThatNameIsNotTakenForIt(t *testing.T) {
	testenv.Slow(t)
	other := machineOf(t, "sh")
	err := cut(t, "exec "+strings.TrimPrefix(other.target, "exec:"), nil)
	require.ErrorIs(t, err, host.ErrLost)
	assert.ErrorContains(t, err, "another machine, or container, answers there")
}

func TestWhatDoesNotHealIsNotTriedAgain(t *testing.T) {
	testenv.Slow(t)
	for _, said := range []string{"me@there: Permission denied (publickey).", "Host key verification failed.", "Error response from daemon: No such container: web"} {
		tries := filepath.Join(testenv.TempDir(t), "tries")
		err := cut(t, "echo >>"+tries+"; echo '"+said+"' >&2; exit 255", nil)
		require.ErrorIs(t, err, host.ErrLost)
		assert.ErrorContains(t, err, said)
		b, err := os.ReadFile(tries)
		require.NoError(t, err)
		assert.Less(t, len(b), 6, "a few calls, each of which tries once")
	}
}

func TestReconnectingIsBounded(t *testing.T) {
	testenv.Slow(t)
	err := cut(t, "exit 1", &host.Options{Reconnect: time.Second})
	require.ErrorIs(t, err, host.ErrLost)
	assert.ErrorContains(t, err, "cannot be had again")
}

// Whoever waits for a connection can give up, and then nobody dials any more.
func TestReconnectingEndsWithThoseWhoWait(t *testing.T) {
	testenv.Slow(t)
	m := machineOf(t, "sh")
	target, to := switched(t)
	to("exec " + strings.TrimPrefix(m.target, "exec:"))
	h := dial(t, target, nil)
	tries := filepath.Join(testenv.TempDir(t), "tries")
	to("echo >>" + tries + "; exit 1")
	require.NoError(t, syscall.Kill(connectOf(h), syscall.SIGKILL))
	ctx, cancel := context.WithTimeout(testenv.Context(t), time.Second)
	defer cancel()
	_, err := h.List(ctx, false)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	to("exec " + strings.TrimPrefix(m.target, "exec:"))
	_, err = h.List(testenv.Context(t), false)
	require.NoError(t, err)
	require.NoError(t, h.Disconnect())
	_, err = h.List(testenv.Context(t), false)
	require.ErrorIs(t, err, session.ErrClosed)
}
