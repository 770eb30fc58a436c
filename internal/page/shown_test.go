package page_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

// shown is a browser that shows a terminal by a stream.
type shown struct {
	t  *testing.T
	in *bufio.Reader
}

// hears waits for a message.
func (s *shown) hears() heard {
	s.t.Helper()
	h, err := s.read()
	require.NoError(s.t, err)
	return h
}

// read is hears, of a stream that may be cut.
func (s *shown) read() (h heard, err error) {
	s.t.Helper()
	b, err := s.in.ReadBytes('\n')
	if err != nil {
		return h, err
	}
	require.NoError(s.t, json.Unmarshal(b, &h), "%s", b)
	var printed struct{ Text []byte }
	require.NoError(s.t, json.Unmarshal(b, &printed), "%s", b)
	h.printed = printed.Text
	return h, nil
}

func streamPath(id string) string { return "/api/terminal?session=build&id=" + id }

func (p *served) shows(id string) *shown {
	p.t.Helper()
	answer := p.ask(streamPath(id), nil)
	require.Equal(p.t, http.StatusOK, answer.StatusCode)
	return &shown{p.t, bufio.NewReader(answer.Body)}
}

func TestAStreamShowsATerminal(t *testing.T) {
	testenv.Slow(t)
	p, r := withTerminals(t, &page.Options{Typing: true})
	one := startOn(t, r, `printf before; read x; printf '\377\033[c\033[6nafter'; exit 3`)
	_, err := one.Wait(testenv.Context(t), terminal.WaitOptions{Text: "before", Timeout: testenv.Patience})
	require.NoError(t, err)
	s := p.shows(one.ID())
	h := s.hears()
	assert.Equal(t, "hello", h.Kind)
	assert.Equal(t, one.ID(), h.Terminal.ID)
	assert.False(t, h.Typing, "nothing can be typed by a stream")
	h = s.hears()
	assert.Equal(t, "screen", h.Kind)
	assert.Equal(t, 80, h.Cols)
	assert.Contains(t, string(h.ANSI), "before")
	require.NoError(t, one.Resize(terminal.Size{Cols: 100, Rows: 30}))
	for h = s.hears(); h.Kind != "screen" || h.Cols != 100; h = s.hears() { // It is noticed, and shown.
	}
	_, err = one.Write([]byte("\r"))
	require.NoError(t, err)
	var all []byte
	for h = s.hears(); h.Kind != "over"; h = s.hears() {
		all = append(append(all, h.ANSI...), h.printed...)
		assert.GreaterOrEqual(t, h.Offset, int64(0))
	}
	assert.Contains(t, string(all), "after")
	assert.NotContains(t, string(all), "\x1b[6n", "what asks a terminal was answered where the terminal is")
	assert.Equal(t, "ended", h.Why)
	_, err = s.in.ReadByte()
	assert.ErrorIs(t, err, io.EOF)
}

// A stream has the token in its header, as everything but a WebSocket has, and no header makes a request a WebSocket that is none.
func TestAStreamWithoutTheTokenShowsNothing(t *testing.T) {
	p, r := withTerminals(t, nil)
	one := startOn(t, r, "echo secret; exec sleep 1000")
	for name, row := range map[string]struct {
		path   string
		status int
		change func(*http.Request)
	}{
		"no token":          {streamPath(one.ID()), http.StatusUnauthorized, func(r *http.Request) { r.Header.Del("Authorization") }},
		"another token":     {streamPath(one.ID()), http.StatusUnauthorized, func(r *http.Request) { r.Header.Set("Authorization", "Bearer x") }},
		"half a WebSocket":  {streamPath(one.ID()), http.StatusUpgradeRequired, func(r *http.Request) { r.Header.Del("Authorization"); r.Header.Set("Upgrade", "websocket") }},
		"another protocol":  {streamPath(one.ID()), http.StatusUnauthorized, func(r *http.Request) { r.Header.Del("Authorization"); r.Header.Set("Upgrade", "h2c") }},
		"another site":      {streamPath(one.ID()), http.StatusForbidden, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }},
		"another origin":    {streamPath(one.ID()), http.StatusForbidden, func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }},
		"no session":        {"/api/terminal?id=" + one.ID(), http.StatusBadRequest, nil},
		"no terminal":       {"/api/terminal?session=build", http.StatusBadRequest, nil},
		"a path for an ID":  {"/api/terminal?session=build&id=../x", http.StatusBadRequest, nil},
		"a path for a name": {"/api/terminal?session=../x&id=" + one.ID(), http.StatusBadRequest, nil},
	} {
		answer := p.ask(row.path, row.change)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err, name)
		assert.Equal(t, row.status, answer.StatusCode, name)
		assert.NotContains(t, string(body), "secret", name)
	}
	h := p.shows("term-nosuch-00000000").hears()
	assert.Equal(t, "over", h.Kind)
	assert.Equal(t, "ended", h.Why)
}

// A browser that reads nothing holds up neither the program nor the end of the page, and gets a screen instead of what it has missed.
func TestASlowStreamGetsAScreen(t *testing.T) {
	p, r := withTerminals(t, nil)
	const printed = 8_000_000
	one := startOn(t, r, fmt.Sprintf(`read x; head -c %d /dev/zero | tr '\0' x; echo; echo end; exec sleep 1000`, printed))
	open := func() *shown {
		c, err := net.Dial("tcp", p.addr)
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() }) // It may be closed.
		// Else the kernel may take all of the output, as much as net.ipv4.tcp_rmem allows, and nothing is missed.
		require.NoError(t, c.(*net.TCPConn).SetReadBuffer(64<<10))
		require.NoError(t, c.SetReadDeadline(time.Now().Add(testenv.Patience)))
		_, err = fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", streamPath(one.ID()), p.addr, token)
		require.NoError(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, answer.StatusCode)
		return &shown{t, bufio.NewReader(answer.Body)}
	}
	slow, never := open(), open()
	for _, s := range []*shown{slow, never} {
		for s.hears().Kind != "screen" {
		}
	}
	_, err := one.Write([]byte("\r"))
	require.NoError(t, err)
	testenv.Await(t, "all of the output", func() bool { return one.Info().LastLine == "end" })
	sent, screens := 0, 0
	// The screen may be painted while the program prints: then its end comes as output.
	for ctx, last := testenv.Context(t), ""; !strings.Contains(last, "end"); {
		h, err := slow.read()
		require.NoError(t, ctx.Err(), "no screen: %d bytes of output were sent", sent)
		if err != nil {
			slow = open() // It took longer than 30 s: the connection was cut, and the browser comes back.
			continue
		}
		sent += len(h.printed)
		last = last[max(len(last)-len("end"), 0):] + string(h.ANSI) + string(h.printed)
		if h.Kind == "screen" {
			screens++
			assert.Greater(t, h.Offset, int64(sent), "it is painted behind a gap")
			if bytes.Contains(h.ANSI, []byte("end")) {
				assert.Greater(t, h.Offset, int64(printed))
			}
		}
	}
	assert.Positive(t, screens)
	assert.Less(t, sent, printed)
	p.stop() // The other one has still not read.
}

func TestStreamsCountAsViewers(t *testing.T) {
	p, r := withTerminals(t, nil)
	one := startOn(t, r, "exec sleep 1000")
	for range 128 {
		p.shows(one.ID())
	}
	assert.Equal(t, http.StatusServiceUnavailable, p.ask(streamPath(one.ID()), nil).StatusCode)
}

// A share link shows by a stream what it shows by a WebSocket, and nobody types by it. The stream ends with the link.
func TestAStreamIsOfWhatAShareLinkIsFor(t *testing.T) {
	p, s := wholePage(t, &page.Options{Typing: true})
	one, other := startOn(t, s.terminals, "exec sleep 1000"), startOn(t, s.terminals, "exec sleep 1000")
	whole, part := p.share(map[string]any{"typing": true}), p.share(map[string]any{"terminal": one.ID(), "typing": true})
	for _, row := range []struct {
		link shared
		path string
		want int
	}{
		{whole, streamPath(one.ID()), http.StatusOK},
		{whole, streamPath(other.ID()), http.StatusOK},
		{part, streamPath(one.ID()), http.StatusOK},
		{part, streamPath(other.ID()), http.StatusForbidden},
		{part, streamPath(other.ID()) + "&id=" + one.ID(), http.StatusForbidden},
		{part, "/api/terminal?session=build", http.StatusForbidden},
		{whole, "/api/terminal?session=mute&id=" + one.ID(), http.StatusForbidden},
		{whole, "/api/terminal?id=" + one.ID(), http.StatusForbidden},
	} {
		answer := p.ask(row.path, row.link.by(nil))
		require.Equal(t, row.want, answer.StatusCode, row.path)
		if row.want != http.StatusOK {
			continue
		}
		stream := &shown{t, bufio.NewReader(answer.Body)}
		h := stream.hears()
		assert.Equal(t, "hello", h.Kind)
		assert.False(t, h.Typing)
	}
	link := p.share(map[string]any{"terminal": one.ID()})
	answer := p.ask(streamPath(one.ID()), link.by(nil))
	stream := &shown{t, bufio.NewReader(answer.Body)}
	for stream.hears().Kind != "screen" {
	}
	p.revokes(link)
	for err := error(nil); err == nil; {
		_, err = stream.read()
	}
	assert.Equal(t, http.StatusUnauthorized, p.statusOf(streamPath(one.ID()), link.by(nil)))
}
