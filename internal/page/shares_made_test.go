package page_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/session"
)

func TestAShareLinkIsMadeByTheOwnersPageAlone(t *testing.T) {
	p, s := wholePage(t, &page.Options{Typing: true})
	one := startOn(t, s.terminals, "exec sleep 1000")
	for what, row := range map[string]struct {
		body   any
		change func(*http.Request)
		status int
	}{
		"of nowhere":             {wants(nil), func(r *http.Request) { r.Header.Del("Origin") }, http.StatusForbidden},
		"of another site":        {wants(nil), func(r *http.Request) { r.Header.Set("Origin", "http://evil.example") }, http.StatusForbidden},
		"without the token":      {wants(nil), func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusUnauthorized},
		"by a form":              {wants(nil), func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, http.StatusUnsupportedMediaType},
		"too long":               {wants(map[string]any{"more": string(bytes.Repeat([]byte("x"), 4<<10))}), nil, http.StatusRequestEntityTooLarge},
		"for ever":               {wants(map[string]any{"seconds": 0}), nil, http.StatusBadRequest},
		"for more than a day":    {wants(map[string]any{"seconds": 24*3600 + 1}), nil, http.StatusBadRequest},
		"until it overflows":     {wants(map[string]any{"seconds": int64(1) << 62}), nil, http.StatusBadRequest},
		"backwards":              {wants(map[string]any{"seconds": -1}), nil, http.StatusBadRequest},
		"of no session":          {wants(map[string]any{"session": ""}), nil, http.StatusBadRequest},
		"of any of that name":    {wants(map[string]any{"id": ""}), nil, http.StatusBadRequest},
		"of another ID":          {wants(map[string]any{"id": "k0"}), nil, http.StatusNotFound},
		"of one that is not":     {wants(map[string]any{"session": "nosuch"}), nil, http.StatusNotFound},
		"of no terminal":         {wants(map[string]any{"terminal": "x/../y"}), nil, http.StatusBadRequest},
		"of one that is not one": {wants(map[string]any{"terminal": "term-nosuch-aaaaaaaa"}), nil, http.StatusNotFound},
	} {
		answer := p.ask("/api/shares", func(r *http.Request) {
			p.posts(row.body)(r)
			if row.change != nil {
				row.change(r)
			}
		})
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		assert.Equal(t, row.status, answer.StatusCode, "%s: %s", what, text)
	}
	assert.Empty(t, p.shares())
	link := p.share(map[string]any{"terminal": one.ID(), "seconds": 24 * 3600})
	require.Len(t, p.shares(), 1)
	text, err := json.Marshal(p.shares()[0])
	require.NoError(t, err)
	assert.Contains(t, string(text), one.ID())
	assert.NotContains(t, string(text), link.Token, "it is said once")
	for _, change := range []func(*http.Request){func(r *http.Request) { r.Header.Del("Origin") }, func(r *http.Request) { r.Method = http.MethodGet }} {
		answer := p.ask("/api/shares/"+link.ID+"/revoke", func(r *http.Request) {
			p.posts(nil)(r)
			change(r)
		})
		assert.Contains(t, []int{http.StatusForbidden, http.StatusMethodNotAllowed}, answer.StatusCode)
	}
	assert.Len(t, p.shares(), 1)
}

func TestNothingThatIsTypedIsSharedWithoutTyping(t *testing.T) {
	p, _ := wholePage(t, nil)
	assert.Equal(t, http.StatusForbidden, p.statusOf("/api/shares", p.posts(wants(map[string]any{"typing": true}))))
	assert.Empty(t, p.shares())
	link := p.share(nil)
	assert.Equal(t, http.StatusForbidden, p.statusOf("/api/jobs/x/stop?session=build", link.by(p.posts(nil))))
}

func TestThereIsABoundOfShareLinks(t *testing.T) {
	p, _ := wholePage(t, nil)
	seen := map[string]bool{}
	var last shared
	for range 64 {
		last = p.share(nil)
		assert.False(t, seen[last.Token] || seen[last.ID])
		seen[last.Token], seen[last.ID] = true, true
	}
	assert.Equal(t, http.StatusConflict, p.statusOf("/api/shares", p.posts(wants(nil))))
	p.revokes(last)
	p.share(nil)
	for _, wrong := range []string{last.Token, "", token[:25]} {
		assert.Equal(t, http.StatusUnauthorized, p.statusOf("/api/sessions", shared{Token: wrong}.by(nil)), fmt.Sprintf("%q", wrong))
	}
}

// One link cannot have all the room that there is.
func TestThereIsABoundOfWhatIsOpenByAShareLink(t *testing.T) {
	p, s := wholePage(t, nil)
	s.puts(session.Event{Seq: 1, Kind: session.BeginEvent, Script: "first"})
	link := p.share(nil)
	for range 32 {
		require.Equal(t, http.StatusOK, p.statusOf("/api/events?session=build", link.by(nil)))
	}
	assert.Equal(t, http.StatusTooManyRequests, p.statusOf("/api/sessions", link.by(nil)))
	assert.Equal(t, http.StatusOK, p.statusOf("/api/sessions", nil), "others have room")
	assert.Equal(t, http.StatusOK, p.statusOf("/api/sessions", p.share(nil).by(nil)))
}
