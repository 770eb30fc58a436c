package page_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
)

func TestTheListSaysWhatIsKnown(t *testing.T) {
	s := newStand()
	p := serve(t, s)
	var got struct {
		Sessions []struct {
			Name, ID, State, Dir, Running, Policy string
			Answers                               bool
			Jobs, Terminals                       int
			Checkpoints                           []string
			Ended                                 *struct{ Why, Dir string }
			ForkedFrom                            *keeper.Parent `json:"forked_from"`
		}
	}
	p.get("/api/sessions", &got)
	require.Len(t, got.Sessions, 3)
	ended, build, mute := got.Sessions[0], got.Sessions[1], got.Sessions[2]
	assert.Equal(t, "closed", ended.Ended.Why)
	assert.Equal(t, "/old", ended.Ended.Dir)
	assert.Nil(t, build.Ended)
	assert.True(t, build.Answers)
	assert.Equal(t, "/src", build.Dir)
	assert.Equal(t, []string{"clean"}, build.Checkpoints)
	assert.Equal(t, "read-only", build.Policy)
	assert.Equal(t, 1, build.Jobs)
	assert.Equal(t, 2, build.Terminals)
	assert.Len(t, build.Running, 2048, "a script may be long")
	assert.False(t, mute.Answers)
	assert.Nil(t, mute.Ended)
	assert.Equal(t, &keeper.Parent{ID: "k8", Name: "the.parent"}, build.ForkedFrom)
	assert.Nil(t, ended.ForkedFrom, "what cannot be a session is none")
	assert.Nil(t, mute.ForkedFrom)
}

func TestAnAnswerIsSharedByThoseWhoAskAtOnce(t *testing.T) {
	s := newStand()
	p := serve(t, s)
	var all sync.WaitGroup
	began := time.Now()
	for range 50 {
		all.Go(func() {
			answer := p.ask("/api/sessions", nil)
			_, err := io.Copy(io.Discard, answer.Body)
			assert.NoError(t, err)
		})
	}
	all.Wait()
	seconds := int(time.Since(began)/time.Second) + 1
	assert.True(t, s.is(func() bool { return s.lists <= seconds }), "the sessions are asked once a second at most, but were %d times in %d s", s.lists, seconds)
}

func TestEventsComeAsTheyHappenAndAreResumed(t *testing.T) {
	s := newStand()
	p := serve(t, s)
	s.puts(session.Event{Seq: 1, Kind: session.BeginEvent, Session: "build", Command: 1, Script: "make", Dir: "/src"})
	w := p.stream("")
	hello := w.next()
	assert.Equal(t, "hello", hello.Kind)
	assert.Equal(t, "k1", hello.Keeper)
	assert.False(t, hello.Resumed)
	assert.Equal(t, "make", w.next().Script)
	s.puts(session.Event{Seq: 2, Kind: session.OutputEvent, Command: 1, Text: []byte("\xff<b>\x1b[31m"), Stderr: true})
	out := w.next()
	assert.Equal(t, "\xff<b>\x1b[31m", string(out.Text), "the bytes as they are")
	assert.True(t, out.Stderr)
	s.puts(session.Event{Seq: 3, Kind: session.EndEvent, Command: 1, ExitCode: 2, Elapsed: 1500 * time.Millisecond, Error: "timeout", Receipt: &session.Receipt{
		User: 20 * time.Millisecond, System: 10 * time.Millisecond, NotKept: []string{"descriptor 9"},
		Leftover: []session.LeftProcess{{PID: 7, Command: "sleep 9"}}, MoreLeftover: 3,
	}})
	end := w.next()
	assert.Equal(t, 2, end.ExitCode)
	assert.Equal(t, 1500.0, end.Elapsed)
	assert.Equal(t, "timeout", end.Error)
	assert.Equal(t, 30.0, end.CPU)
	assert.Equal(t, []string{"left running: 7 (sleep 9), and 3 more", "not kept: descriptor 9"}, end.Notes)
	require.NoError(t, w.body.Close())

	w = p.stream("&keeper=k1&after=2")
	assert.True(t, w.next().Resumed)
	assert.EqualValues(t, 3, w.next().Seq)
	require.NoError(t, w.body.Close())

	w = p.stream("&keeper=k0&after=2")
	assert.False(t, w.next().Resumed, "the number is that of another session")
	assert.EqualValues(t, 1, w.next().Seq)

	s.change(func() { s.ended = true })
	for w.next().Seq < 3 {
	}
	over := w.next()
	assert.Equal(t, "over", over.Kind)
	assert.Equal(t, "ended", over.Why)
	_, err := w.in.ReadByte()
	assert.ErrorIs(t, err, io.EOF)
}

func TestASessionThatIsNotThereHasEnded(t *testing.T) {
	p := serve(t, newStand())
	answer := p.ask("/api/events?session=nosuch", nil)
	w := &stream{t, answer.Body, bufio.NewReader(answer.Body)}
	over := w.next()
	assert.Equal(t, "over", over.Kind)
	assert.Equal(t, "ended", over.Why)
	assert.Equal(t, http.StatusNotFound, p.ask("/api/jobs?session=nosuch", nil).StatusCode)
}

func TestNumbersThatBeginAnewEndTheStream(t *testing.T) {
	s := newStand()
	p := serve(t, s)
	s.puts(session.Event{Seq: 7, Kind: session.BeginEvent})
	w := p.stream("")
	w.next()
	assert.EqualValues(t, 7, w.next().Seq)
	s.change(func() { s.events = []session.Event{{Seq: 8}, {Seq: 1}} })
	assert.EqualValues(t, 8, w.next().Seq)
	assert.Equal(t, "moved", w.next().Why)
}

func TestWhatIsLostIsTold(t *testing.T) {
	s := newStand()
	p := serve(t, s)
	s.puts(session.Event{Seq: 1, Kind: session.BeginEvent})
	first := p.stream("")
	first.next()
	assert.EqualValues(t, 1, first.next().Seq)
	const more = 5000 // than are remembered
	for i := range more {
		s.puts(session.Event{Seq: int64(i) + 2, Kind: session.OutputEvent, Text: []byte("x")})
	}
	for seq := int64(1); seq < more+1; { // Whoever reads all the time gets the last one, too, in order.
		one := first.next()
		require.Greater(t, one.Seq, seq)
		seq = one.Seq
	}
	late := p.stream("&keeper=k1&after=1")
	assert.True(t, late.next().Resumed)
	assert.EqualValues(t, more+2-2048, late.next().Seq, "the gap shows in the numbers")
}

func TestHostileEventsAreBounded(t *testing.T) {
	s := newStand()
	p := serve(t, s)
	s.puts(
		session.Event{Seq: 1, Kind: session.BeginEvent, Script: strings.Repeat("é", 1<<20), Cut: 7, Session: "</script>"},
		session.Event{Seq: 2, Kind: session.OutputEvent, Text: []byte(strings.Repeat("\x1b[31m\xff\x00", 10<<20/7))},
		session.Event{Seq: 3, Kind: session.EndEvent, Error: strings.Repeat("\xff", 1<<20), Receipt: &session.Receipt{Denied: strings.Repeat("\xff", 1<<20)}},
	)
	w := p.stream("")
	w.next()
	begin := w.next()
	assert.LessOrEqual(t, len(begin.Script), 32<<10+4)
	assert.Equal(t, 2<<20-32<<10+7, begin.Cut)
	assert.Equal(t, "</script>", begin.Session)
	out := w.next()
	assert.Len(t, out.Text, 256<<10)
	assert.EqualValues(t, 10<<20/7*7-256<<10, out.Missed)
	end := w.next()
	assert.LessOrEqual(t, len(end.Error), 3*4<<10)
	require.Len(t, end.Notes, 1)
	assert.LessOrEqual(t, len(end.Notes[0]), 3*4<<10)
}

func TestViewersThatVanishLeaveNothing(t *testing.T) {
	s := newStand()
	p := serve(t, s)
	s.puts(session.Event{Seq: 1, Kind: session.BeginEvent})
	const viewers = 100
	watching := make([]*stream, viewers)
	for i := range watching {
		watching[i] = p.stream("")
		watching[i].next()
	}
	s.puts(session.Event{Seq: 2, Kind: session.EndEvent})
	for _, w := range watching {
		assert.EqualValues(t, 1, w.next().Seq)
		assert.EqualValues(t, 2, w.next().Seq)
	}
	testenv.Await(t, "the feed to wait", func() bool { return s.is(func() bool { return s.watchers == 1 }) })
	assert.True(t, s.is(func() bool { return s.open == 1 }), "they share one connection to the session")
	for _, w := range watching {
		require.NoError(t, w.body.Close())
	}
	testenv.Await(t, "the feed to end", func() bool { return s.is(func() bool { return s.watchers == 0 && s.open == 0 }) })
}

func TestTooManyViewersAreRefused(t *testing.T) {
	s := newStand()
	p := serve(t, s)
	for range 128 {
		p.stream("")
	}
	assert.Equal(t, http.StatusServiceUnavailable, p.ask("/api/events?session=build", nil).StatusCode)
	var got any
	p.get("/api/sessions", &got)
}

func TestTooManyConnectionsAreClosed(t *testing.T) {
	p := serve(t, newStand())
	asks := func() (net.Conn, error) {
		c, err := net.Dial("tcp", p.addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() }) // It may be closed.
		_, err = fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", p.addr)
		if err == nil {
			_, err = c.Read(make([]byte, 1))
		}
		return c, err
	}
	var last net.Conn
	for range 512 {
		c, err := asks()
		require.NoError(t, err)
		last = c
	}
	_, err := asks()
	require.Error(t, err)
	require.NoError(t, last.Close())
	testenv.Await(t, "room for another one", func() bool {
		_, err := asks()
		return err == nil
	})
}

// A browser that does not read costs others nothing: they get what comes meanwhile.
func TestASlowBrowserSlowsNobody(t *testing.T) {
	s := newStand()
	p := serve(t, s)
	slow, err := net.Dial("tcp", p.addr)
	require.NoError(t, err)
	defer slow.Close()
	_, err = fmt.Fprintf(slow, "GET /api/events?session=build HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", p.addr, token)
	require.NoError(t, err)
	_, err = slow.Read(make([]byte, 1))
	require.NoError(t, err)
	w := p.stream("")
	w.next()
	for i := range 80 { // 21 MiB as base64: no buffer of a connection has so much.
		s.puts(session.Event{Seq: int64(i) + 1, Kind: session.OutputEvent, Text: make([]byte, 200<<10)})
		require.EqualValues(t, i+1, w.next().Seq)
	}
}

func TestTheEndOfServeEndsEverything(t *testing.T) {
	s := newStand()
	p := serve(t, s)
	w := p.stream("")
	w.next()
	idle, err := net.Dial("tcp", p.addr) // Nothing is ever said on it.
	require.NoError(t, err)
	defer idle.Close()
	p.stop()
	_, err = io.ReadAll(w.in)
	_ = err // Whether the stream was cut or ended does not matter.
	assert.True(t, s.is(func() bool { return s.open == 0 && s.watchers == 0 }))
	_, err = net.Dial("tcp", p.addr)
	require.Error(t, err)
	_, err = idle.Read(make([]byte, 1))
	require.Error(t, err)
}
