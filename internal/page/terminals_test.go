package page_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// withTerminals returns a page of a session with real terminals.
func withTerminals(t *testing.T, opts *page.Options) (*served, *terminal.Registry) {
	t.Helper()
	r, err := terminal.Open(testenv.TempDir(t), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	server, err := remote.Serve(r)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	s := newStand()
	s.terminals = r
	p := serveWith(t, s, opts)
	t.Cleanup(func() {
		p.stop()
		assert.True(t, s.is(func() bool { return s.open == 0 }), "each viewer disconnects its session")
	})
	return p, r
}

func startOn(t *testing.T, r *terminal.Registry, line string) *terminal.Terminal {
	t.Helper()
	one, err := r.Start(testenv.Context(t), terminal.Spec{Line: line})
	require.NoError(t, err)
	return one
}

// socket is a browser that shows a terminal.
type socket struct {
	t    *testing.T
	c    *websocket.Conn
	next int64 // the offset behind what it was sent
}

// dial opens the WebSocket, as the page does, unless change says otherwise.
func (p *served) dial(change func(http.Header)) (*websocket.Conn, *http.Response, error) {
	header := http.Header{"Origin": {"http://" + p.addr}, "Sec-Fetch-Site": {"same-origin"}}
	if change != nil {
		change(header)
	}
	c, answer, err := websocket.Dial(testenv.Context(p.t), "ws://"+p.addr+"/api/terminal", &websocket.DialOptions{HTTPClient: p.client, HTTPHeader: header})
	if err == nil {
		c.SetReadLimit(1 << 20)
		p.t.Cleanup(func() { _ = c.CloseNow() }) // It may be closed.
	}
	return c, answer, err
}

// watch shows a terminal. More is what the first message has besides.
func (p *served) watch(id string, more map[string]any) *socket {
	p.t.Helper()
	c, _, err := p.dial(nil)
	require.NoError(p.t, err)
	s := &socket{t: p.t, c: c}
	first := map[string]any{"token": token, "session": "build", "terminal": id}
	for name, value := range more {
		first[name] = value
	}
	s.says(first)
	return s
}

func (s *socket) says(m map[string]any) {
	s.t.Helper()
	b, err := json.Marshal(m)
	require.NoError(s.t, err)
	require.NoError(s.t, s.c.Write(testenv.Context(s.t), websocket.MessageText, b))
}

func (s *socket) types(keys string) {
	s.t.Helper()
	require.NoError(s.t, s.c.Write(testenv.Context(s.t), websocket.MessageBinary, []byte(keys)))
}

// heard is a message of the server.
type heard struct {
	Kind, Why, Error string
	Terminal         struct{ ID, Command, State string }
	Resumed, Typing  bool
	Offset           int64
	Cols, Rows       int
	ANSI             []byte
	printed          []byte
}

// hears waits for a message.
func (s *socket) hears() (h heard) {
	s.t.Helper()
	h, err := s.read(testenv.Context(s.t))
	require.NoError(s.t, err)
	return h
}

func (s *socket) read(ctx context.Context) (h heard, err error) {
	kind, b, err := s.c.Read(ctx)
	if err != nil {
		return h, err
	}
	if kind == websocket.MessageBinary {
		h.Kind, h.printed, h.Offset = "output", b[8:], int64(binary.BigEndian.Uint64(b))
	} else if err := json.Unmarshal(b, &h); err != nil {
		return h, err
	}
	if h.Kind == "output" || h.Kind == "screen" {
		s.next = h.Offset
	}
	return h, nil
}

// awaits waits for a message of a kind, and says of all output that it was seen.
func (s *socket) awaits(kind string) heard {
	s.t.Helper()
	for {
		h := s.hears()
		if h.Kind == "output" || h.Kind == "screen" {
			s.says(map[string]any{"kind": "seen", "offset": h.Offset})
		}
		if h.Kind == kind {
			return h
		}
	}
}

// reads waits until a text has come, as output or on a screen.
func (s *socket) reads(text string) {
	s.t.Helper()
	for last := ""; !strings.Contains(last, text); {
		h := s.hears()
		last = last[max(len(last)-len(text), 0):] + string(h.ANSI) + string(h.printed) // All that came, looked through for each message, took minutes.
		s.says(map[string]any{"kind": "seen", "offset": s.next})
	}
}

func TestTerminalsAreListed(t *testing.T) {
	p, r := withTerminals(t, nil)
	one := startOn(t, r, "echo one; exec sleep 1000")
	two := startOn(t, r, "exit 3")
	_, err := two.Wait(testenv.Context(t), terminal.WaitOptions{})
	require.NoError(t, err)
	var list struct {
		Terminals []struct {
			ID, Command, State, Exit, Screen string
			Ended                            bool
			Cols, Rows                       int
		}
	}
	_, err = one.Wait(testenv.Context(t), terminal.WaitOptions{Text: "one", Timeout: testenv.Patience})
	require.NoError(t, err)
	p.get("/api/terminals?session=build", &list)
	require.Len(t, list.Terminals, 2)
	assert.Equal(t, one.ID(), list.Terminals[0].ID)
	assert.Equal(t, "echo one; exec sleep 1000", list.Terminals[0].Command)
	assert.Equal(t, 80, list.Terminals[0].Cols)
	assert.False(t, list.Terminals[0].Ended)
	assert.Equal(t, "one", list.Terminals[0].Screen)
	assert.True(t, list.Terminals[1].Ended)
	assert.Equal(t, "exit code 3", list.Terminals[1].Exit)
	assert.Equal(t, http.StatusNotFound, p.ask("/api/terminals?session=nosuch", nil).StatusCode)
	assert.Equal(t, http.StatusBadRequest, p.ask("/api/terminals", nil).StatusCode)
}

// The small pictures of a list are of what is on the screens now, are bounded, and no more than a few.
func TestAListHasTheScreensOfItsLastTerminals(t *testing.T) {
	testenv.Slow(t)
	p, r := withTerminals(t, nil)
	first := startOn(t, r, "exec sleep 1000")
	var last *terminal.Terminal
	for range 12 {
		last = startOn(t, r, `echo before; read x; printf '\033[2J\033[H\033[31mafter\033[0m\n'; head -c 100000 /dev/zero | tr '\0' x; read x`)
	}
	_, err := last.Wait(testenv.Context(t), terminal.WaitOptions{Text: "before", Timeout: testenv.Patience})
	require.NoError(t, err)
	screens := func() map[string]string {
		var list struct{ Terminals []struct{ ID, Screen string } }
		p.get("/api/terminals?session=build", &list)
		all := make(map[string]string)
		for _, one := range list.Terminals {
			all[one.ID] = one.Screen
		}
		return all
	}
	testenv.Await(t, "the screen", func() bool { return screens()[last.ID()] == "before" })
	assert.Empty(t, screens()[first.ID()], "it is too old")
	require.NoError(t, last.Resize(terminal.Size{Cols: 400, Rows: 100}))
	_, err = last.Write([]byte("\r"))
	require.NoError(t, err)
	testenv.Await(t, "what is on it then", func() bool { return strings.Contains(screens()[last.ID()], "xxx") })
	assert.LessOrEqual(t, len(screens()[last.ID()]), 8<<10)
	assert.NotContains(t, screens()[last.ID()], "\x1b")
}

func TestATerminalIsShownFromItsScreenOn(t *testing.T) {
	p, r := withTerminals(t, nil)
	one := startOn(t, r, `printf '\033]2;a title\007before'; read x; printf '\033[c\033[6nafter'; exit 3`)
	_, err := one.Wait(testenv.Context(t), terminal.WaitOptions{Text: "before", Timeout: testenv.Patience})
	require.NoError(t, err)
	s := p.watch(one.ID(), nil)
	h := s.hears()
	assert.Equal(t, "hello", h.Kind)
	assert.Equal(t, one.ID(), h.Terminal.ID)
	assert.False(t, h.Resumed)
	assert.False(t, h.Typing)
	h = s.hears()
	assert.Equal(t, "screen", h.Kind)
	assert.Equal(t, 80, h.Cols)
	assert.Equal(t, 24, h.Rows)
	assert.Contains(t, string(h.ANSI), "before")
	assert.Contains(t, string(h.ANSI), "a title")
	_, err = one.Write([]byte("\r"))
	require.NoError(t, err)
	var all []byte
	for h = s.hears(); h.Kind == "output"; h = s.hears() {
		all = append(all, h.printed...)
	}
	assert.Contains(t, string(all), "after")
	assert.NotContains(t, string(all), "\x1b[c", "what asks a terminal was answered where the terminal is")
	assert.Equal(t, "over", h.Kind)
	assert.Equal(t, "ended", h.Why)
	_, err = s.read(testenv.Context(t))
	assert.Equal(t, websocket.StatusNormalClosure, websocket.CloseStatus(err))

	s = p.watch(one.ID(), nil)
	assert.Contains(t, string(s.awaits("screen").ANSI), "after", "one that has ended shows what it has left")
	assert.Equal(t, "ended", s.awaits("over").Why)
}

func TestATerminalGoesOnWhereTheConnectionWasLost(t *testing.T) {
	p, r := withTerminals(t, nil)
	one := startOn(t, r, `for i in 1 2 3; do read x; printf '[%s]' $i; done; exec sleep 1000`)
	s := p.watch(one.ID(), nil)
	_, err := one.Write([]byte("\r"))
	require.NoError(t, err)
	s.reads("[1]")
	require.NoError(t, s.c.CloseNow())
	_, err = one.Write([]byte("\r"))
	require.NoError(t, err)
	_, err = one.Wait(testenv.Context(t), terminal.WaitOptions{Text: "[2]", Timeout: testenv.Patience})
	require.NoError(t, err)

	s = p.watch(one.ID(), map[string]any{"from": s.next, "cols": 80, "rows": 24})
	assert.True(t, s.hears().Resumed)
	h := s.hears()
	assert.Equal(t, "output", h.Kind)
	assert.Contains(t, string(h.printed), "[2]")
	assert.NotContains(t, string(h.printed), "[1]")
	for _, other := range []map[string]any{
		{"from": s.next, "cols": 81, "rows": 24}, {"from": s.next + 1000, "cols": 80, "rows": 24}, {"from": -5, "cols": 80, "rows": 24},
	} {
		s := p.watch(one.ID(), other)
		assert.False(t, s.hears().Resumed, other)
		assert.Equal(t, "screen", s.hears().Kind)
	}
}

func TestASocketWithoutTheTokenShowsNothing(t *testing.T) {
	p, r := withTerminals(t, &page.Options{Typing: true})
	one := startOn(t, r, "echo secret; exec sleep 1000")
	for name, change := range map[string]func(http.Header){
		"another origin":          func(h http.Header) { h.Set("Origin", "http://evil.example") },
		"another port":            func(h http.Header) { h.Set("Origin", "http://127.0.0.1:1") },
		"an opaque origin":        func(h http.Header) { h.Set("Origin", "null") },
		"another site, no origin": func(h http.Header) { h.Del("Origin"); h.Set("Sec-Fetch-Site", "cross-site") },
	} {
		_, answer, err := p.dial(change)
		require.Error(t, err, name)
		assert.Equal(t, http.StatusForbidden, answer.StatusCode, name)
	}
	for name, first := range map[string]string{
		"no token":     `{"session":"build","terminal":"` + one.ID() + `"}`,
		"another":      `{"token":"` + strings.Repeat("A", 26) + `","session":"build","terminal":"` + one.ID() + `"}`,
		"no JSON":      `secret`,
		"another kind": `{"kind":"take"}`,
	} {
		c, _, err := p.dial(nil)
		require.NoError(t, err)
		require.NoError(t, c.Write(testenv.Context(t), websocket.MessageText, []byte(first)))
		_, _, err = c.Read(testenv.Context(t))
		assert.EqualValues(t, 4401, websocket.CloseStatus(err), name)
	}
	c, _, err := p.dial(nil)
	require.NoError(t, err)
	_ = c.Write(testenv.Context(t), websocket.MessageText, bytes.Repeat([]byte(" "), 100<<10)) // It may be closed before all of it is sent.
	_, _, err = c.Read(testenv.Context(t))
	require.Error(t, err, "a message that is too long ends the connection")
	assert.NotErrorIs(t, err, context.DeadlineExceeded)
	for _, names := range [][2]string{{"../x", one.ID()}, {"build", "../" + one.ID()}} {
		c, _, err := p.dial(nil)
		require.NoError(t, err)
		s := &socket{t: t, c: c}
		s.says(map[string]any{"token": token, "session": names[0], "terminal": names[1]})
		_, err = s.read(testenv.Context(t))
		assert.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err))
	}
	s := p.watch("term-nosuch-aaaaaaaa", nil)
	assert.Equal(t, "ended", s.awaits("over").Why)
}

func TestNothingIsTypedUnlessThatIsAllowed(t *testing.T) {
	p, r := withTerminals(t, nil)
	one := startOn(t, r, "read x; echo [$x]; exec sleep 1000")
	s := p.watch(one.ID(), nil)
	s.types("typed\r")
	assert.Contains(t, s.awaits("refused").Error, "--allow-typing")
	s.says(map[string]any{"kind": "take"})
	assert.Contains(t, s.awaits("refused").Error, "--allow-typing")
	s.says(map[string]any{"kind": "size", "cols": 100, "rows": 30})
	assert.Contains(t, s.awaits("refused").Error, "--allow-typing")
	assert.Equal(t, terminal.DefaultSize, one.Info().Size)
	_, err := one.Write([]byte("other\r"))
	require.NoError(t, err)
	s.reads("[other]")
}

func TestWhoeverHasTakenATerminalOverTypesAndNobodyElse(t *testing.T) {
	p, r := withTerminals(t, &page.Options{Typing: true})
	one := startOn(t, r, `while read x; do stty size; echo "[$x]"; done`)
	first, second := p.watch(one.ID(), nil), p.watch(one.ID(), nil)
	assert.True(t, first.hears().Typing)
	first.types("too early\r")
	first.says(map[string]any{"kind": "take"})
	first.awaits("taken")
	first.says(map[string]any{"kind": "size", "cols": 100, "rows": 30})
	h := first.awaits("screen")
	for h.Cols != 100 {
		h = first.awaits("screen")
	}
	assert.Equal(t, 30, h.Rows)
	first.types("one\r")
	first.reads("[one]")
	second.reads("[one]")

	second.says(map[string]any{"kind": "take"})
	second.awaits("taken")
	assert.Contains(t, first.awaits("back").Error, "another page")
	first.types("no more\r")
	first.says(map[string]any{"kind": "size", "cols": 50, "rows": 10})
	second.types("two\r")
	second.reads("[two]")
	second.says(map[string]any{"kind": "size", "cols": 0, "rows": 10})
	assert.NotEmpty(t, second.awaits("refused").Error)
	second.says(map[string]any{"kind": "back"})
	assert.Empty(t, second.awaits("back").Error)
	assert.Equal(t, terminal.DefaultSize, one.Info().Size, "it has the size again that it had before")
	second.types("nor this\r")

	first.says(map[string]any{"kind": "take"})
	first.awaits("taken")
	first.says(map[string]any{"kind": "size", "cols": 90, "rows": 20})
	first.types("three\r")
	first.reads("[three]")
	require.NoError(t, first.c.CloseNow())
	testenv.Await(t, "the size from before", func() bool { return one.Info().Size == terminal.DefaultSize })
	c, err := one.Output(0, 1<<20)
	require.NoError(t, err)
	out := string(c.Data)
	assert.Contains(t, out, "30 100")
	assert.Contains(t, out, "20 90")
	for _, never := range []string{"too early", "no more", "nor this"} {
		assert.NotContains(t, out, never)
	}
}

// A size that somebody else has set meanwhile stays.
func TestASizeOfSomebodyElseIsLeftAsItIs(t *testing.T) {
	testenv.Slow(t)
	p, r := withTerminals(t, &page.Options{Typing: true})
	one := startOn(t, r, "exec sleep 1000")
	s := p.watch(one.ID(), nil)
	s.says(map[string]any{"kind": "take"})
	s.awaits("taken")
	s.says(map[string]any{"kind": "size", "cols": 100, "rows": 30})
	for s.awaits("screen").Cols != 100 {
	}
	other := terminal.Size{Cols: 120, Rows: 40}
	require.NoError(t, one.Resize(other))
	for s.awaits("screen").Cols != 120 { // It is noticed, and shown.
	}
	s.says(map[string]any{"kind": "back"})
	s.awaits("back")
	assert.Equal(t, other, one.Info().Size)
}

// A browser that reads slowly holds up neither the program nor other browsers, is sent no more than a bound, and gets a screen then.
func TestASlowBrowserGetsAScreen(t *testing.T) {
	p, r := withTerminals(t, nil)
	one := startOn(t, r, `read x; head -c 8000000 /dev/zero | tr '\0' x; echo; echo end; read x; echo later; exec sleep 1000`)
	slow, quick := p.watch(one.ID(), nil), p.watch(one.ID(), nil)
	slow.awaits("screen")
	quick.awaits("screen")
	_, err := one.Write([]byte("\r"))
	require.NoError(t, err)
	quick.reads("end")
	var sent int
	for sent < 512<<10 {
		h := slow.hears()
		if h.Kind == "screen" {
			break // The server was so late itself that there is no more.
		}
		if h.Kind == "output" {
			sent += len(h.printed)
		}
	}
	testenv.Await(t, "all of the output", func() bool { return one.Info().LastLine == "end" })
	assert.Less(t, sent, 1<<20)

	slow = p.watch(one.ID(), map[string]any{"from": 1, "cols": 80, "rows": 24}) // Long gone from the buffer.
	assert.False(t, slow.hears().Resumed)
	assert.Contains(t, string(slow.awaits("screen").ANSI), "end")
	_, err = one.Write([]byte("\r"))
	require.NoError(t, err)
	slow.reads("later")
}

func TestAGapIsFollowedByAScreen(t *testing.T) {
	p, r := withTerminals(t, nil)
	one := startOn(t, r, `read x; head -c 8000000 /dev/zero | tr '\0' x; echo; echo end; exec sleep 1000`)
	s := p.watch(one.ID(), nil)
	s.awaits("screen")
	_, err := one.Write([]byte("\r"))
	require.NoError(t, err)
	var sent int64
	for sent < 512<<10 { // Until it is sent no more.
		if h := s.hears(); h.Kind == "output" {
			sent += int64(len(h.printed))
		}
	}
	testenv.Await(t, "all of the output", func() bool { return one.Info().LastLine == "end" })
	s.says(map[string]any{"kind": "seen", "offset": s.next})
	h := s.awaits("screen")
	assert.Contains(t, string(h.ANSI), "end")
	assert.Greater(t, h.Offset, int64(8000000))
}

// A hundred browsers that vanish leave nothing.
func TestBrowsersThatVanishLeaveNothing(t *testing.T) {
	p, r := withTerminals(t, &page.Options{Typing: true})
	one := startOn(t, r, "exec yes")
	var browsers sync.WaitGroup
	for range 100 {
		browsers.Go(func() {
			c, _, err := p.dial(nil)
			if !assert.NoError(t, err) {
				return
			}
			s := &socket{t: t, c: c}
			b, err := json.Marshal(map[string]any{"token": token, "session": "build", "terminal": one.ID()})
			assert.NoError(t, err)
			assert.NoError(t, c.Write(testenv.Context(t), websocket.MessageText, b))
			_, err = s.read(testenv.Context(t))
			assert.NoError(t, err)
			_ = c.CloseNow() // That is what is tried.
		})
	}
	browsers.Wait()
	require.NoError(t, one.Close())
	s := p.watch(one.ID(), nil)
	assert.Equal(t, "hello", s.awaits("hello").Kind, "there is room again")
	_, err := s.read(testenv.Context(t))
	assert.False(t, errors.Is(err, context.DeadlineExceeded))
}
