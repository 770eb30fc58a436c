package host_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/pipe"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// way is what lies between ssh and a server. As TCP makes it, a packet that is lost comes late, and with it all that is behind.
type way struct {
	delay time.Duration // one way
	late  float64       // how many of the pieces come late, of 1
	rate  int           // bytes a second; 0: any
	idle  time.Duration // after which a connection is cut; 0: never

	cuts atomic.Int64
}

// lies has the client of an sshd go that way. It ends with the test.
func (w *way) lies(t *testing.T, s *sshd) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close() // It ends the Accept.
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { w.carry(c, s.port) })
		}
	})
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	s.clientOf(t, port, "  HostKeyAlias [127.0.0.1]:"+s.port)
}

// carry carries both directions of a connection, until one ends.
func (w *way) carry(near net.Conn, port string) {
	far, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		_ = near.Close() // The client sees that.
		return
	}
	end := sync.OnceFunc(func() { _, _ = near.Close(), far.Close() }) // They are through.
	var quiet *time.Timer
	if w.idle > 0 {
		quiet = time.AfterFunc(w.idle, func() {
			w.cuts.Add(1)
			end()
		})
		defer quiet.Stop()
	}
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			defer end()
			w.pass(way[0], way[1], quiet)
		})
	}
	both.Wait()
}

// pass passes on what comes, in its order, when it is due.
func (w *way) pass(from io.Reader, to io.Writer, quiet *time.Timer) {
	type piece struct {
		b   []byte
		due time.Time
	}
	pieces := make(chan piece, 1000)
	var writing sync.WaitGroup
	writing.Go(func() {
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.b); err != nil {
				break
			}
		}
		for range pieces { // Nobody gets it.
		}
	})
	defer writing.Wait()
	defer close(pieces)
	var free time.Time // when the line is
	for {
		b := make([]byte, 16<<10)
		n, err := from.Read(b)
		if quiet != nil && n > 0 {
			quiet.Reset(w.idle)
		}
		if err != nil {
			return
		}
		now := time.Now()
		if w.rate > 0 {
			if free.Before(now) {
				free = now
			}
			free = free.Add(time.Duration(n) * time.Second / time.Duration(w.rate))
			time.Sleep(time.Until(free) - 50*time.Millisecond) // So much lies in its queues.
			now = free
		}
		due := now.Add(w.delay)
		if rand.Float64() < w.late {
			due = due.Add(2 * w.delay) // It was sent again.
		}
		pieces <- piece{b[:n], due}
	}
}

// A long way with losses costs time, and nothing else.
func TestALongWayWithLosses(t *testing.T) {
	testenv.OnlyAll(t)
	s := startSSHD(t)
	w := &way{delay: 150 * time.Millisecond, late: 0.05}
	h := dial(t, "ssh://there", nil) // Limpet is brought, by a short way.
	require.NoError(t, h.Disconnect())
	w.lies(t, s)
	h = dial(t, "ssh://there", nil)
	k, err := h.Session(testenv.Context(t), "s", &keeper.Spec{})
	require.NoError(t, err)
	_, err = k.Run(testenv.Context(t), "x=1")
	require.NoError(t, err)
	var took []time.Duration
	for range 5 {
		began := time.Now()
		_, err = k.Run(testenv.Context(t), "true")
		require.NoError(t, err)
		took = append(took, time.Since(began))
	}
	t.Logf("true takes %v, and the way there and back 300ms", took)
	input := make([]byte, 700<<10)
	for i := range input {
		input[i] = byte(rand.Uint32())
	}
	var out bytes.Buffer
	res, err := k.Do(testenv.Context(t), command.Request{Script: "tee >(sha256sum >&2)", Stdin: bytes.NewReader(input), Stdout: &out})
	require.NoError(t, err)
	assert.Equal(t, sha256.Sum256(input), sha256.Sum256(out.Bytes()))
	assert.Contains(t, res.Stderr.String(), fmt.Sprintf("%x", sha256.Sum256(input)))
}

// Beside much output, on a narrow way and to somebody who reads slowly, others get their answers, and all of it arrives.
func TestANarrowWay(t *testing.T) {
	testenv.OnlyAll(t)
	s := startSSHD(t)
	w := &way{rate: 8 << 20}
	h := dial(t, "ssh://there", nil)
	require.NoError(t, h.Disconnect())
	w.lies(t, s)
	h = dial(t, "ssh://there", nil)
	loud, err := h.Session(testenv.Context(t), "loud", &keeper.Spec{})
	require.NoError(t, err)
	quiet, err := h.Session(testenv.Context(t), "quiet", &keeper.Spec{})
	require.NoError(t, err)
	sum := sha256.New()
	lines := testenv.Repeats(200000, 1000000, 2000000) // Less than is kept for a reader who is slow.
	ended := make(chan error, 1)
	go func() {
		_, err := loud.Do(testenv.Context(t), command.Request{Script: "seq " + strconv.Itoa(lines), Stdout: &slowly{Writer: sum}})
		ended <- err
	}()
	var slowest time.Duration
	for over := false; !over; {
		select {
		case err = <-ended:
			over = true
		case <-time.After(20 * time.Millisecond):
			began := time.Now()
			_, err := quiet.Run(testenv.Context(t), "true")
			require.NoError(t, err)
			slowest = max(slowest, time.Since(began))
		}
	}
	require.NoError(t, err)
	want, err := exec.Command("bash", "-c", "seq "+strconv.Itoa(lines)+" | sha256sum").Output()
	require.NoError(t, err)
	assert.Equal(t, strings.Fields(string(want))[0], fmt.Sprintf("%x", sum.Sum(nil)))
	t.Logf("the slowest true beside it took %v", slowest)
}

// slowly is a Writer that takes its time.
type slowly struct {
	io.Writer
	n int
}

func (w *slowly) Write(p []byte) (int, error) {
	if w.n += len(p); w.n > 1<<20 {
		w.n = 0
		time.Sleep(20 * time.Millisecond)
	}
	return w.Writer.Write(p)
}

// What cuts connections on which nothing is said does not cut one whose ends ask each other more often than that, and else costs
// nothing but a new one.
func TestAWayThatCutsWhatIsIdle(t *testing.T) {
	testenv.OnlyAll(t)
	s := startSSHD(t)
	h := dial(t, "ssh://there", nil)
	require.NoError(t, h.Disconnect())
	for _, ping := range []time.Duration{200 * time.Millisecond, 30 * time.Second} {
		w := &way{idle: time.Second}
		w.lies(t, s)
		h := dial(t, "ssh://there", &host.Options{Times: pipe.Times{Ping: ping, Silence: time.Minute}})
		k, err := h.Session(testenv.Context(t), "s", &keeper.Spec{})
		require.NoError(t, err)
		res, err := k.Run(testenv.Context(t), "echo $((x += 1)); sleep 2.5; echo $x")
		require.NoError(t, err)
		assert.Regexp(t, `^([12])\n[12]\n$`, res.Stdout.String())
		if ping < w.idle {
			assert.Zero(t, w.cuts.Load(), "they ask")
		} else {
			assert.Positive(t, w.cuts.Load())
		}
	}
}
