package page_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// slowStand does not open sessions while it is stuck.
type slowStand struct {
	*stand
	stuck   atomic.Bool
	waiting atomic.Int64
}

func (s *slowStand) Open(ctx context.Context, name string) (page.Session, error) {
	if !s.stuck.Load() {
		return s.stand.Open(ctx, name)
	}
	s.waiting.Add(1)
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// By share links as much is asked for as they may, and the owner has answers all the same.
func TestShareLinksLeaveTheOwnerAnswers(t *testing.T) {
	s := &slowStand{stand: newStand()}
	p := serve(t, s)
	links := []shared{p.share(nil), p.share(nil), p.share(nil)}
	s.stuck.Store(true)
	search := func(i int) string { return fmt.Sprintf("/api/jobs/j/search?session=build&pattern=%d", i) }
	asked := func(link shared, n int) {
		before := s.waiting.Load()
		for i := range n {
			r, err := http.NewRequestWithContext(testenv.Context(t), http.MethodGet, "http://"+p.addr+search(i), nil)
			assert.NoError(t, err)
			link.by(nil)(r)
			// Each link asks about another job: none is given the answer to another.
			r.URL.Path = "/api/jobs/" + link.ID + "/search"
			go func() {
				if answer, err := p.client.Do(r); err == nil { // It is cut off when the page ends.
					_ = answer.Body.Close()
				}
			}()
		}
		testenv.Await(t, "the searches", func() bool { return s.waiting.Load() == before+int64(n) })
	}
	asked(links[0], 16)
	answer := p.ask(search(99), links[0].by(nil))
	body, err := io.ReadAll(answer.Body)
	assert.NoError(t, err)
	assert.Equal(t, http.StatusTooManyRequests, answer.StatusCode)
	assert.Contains(t, string(body), "too much is open by this link")
	asked(links[1], 16)
	asked(links[2], 8)
	assert.Equal(t, http.StatusServiceUnavailable, p.statusOf(search(99), links[2].by(nil)))
	for _, path := range []string{"/api/sessions", "/api/questions", "/metrics"} {
		assert.Equal(t, http.StatusOK, p.statusOf(path, nil), path)
	}
	p.stop()
}

func TestShareLinksLeaveTheOwnerStreams(t *testing.T) {
	p := serve(t, newStand())
	for range 3 {
		link := p.share(nil)
		for range 32 {
			assert.Equal(t, http.StatusOK, p.statusOf("/api/events?session=build", link.by(nil)))
		}
	}
	assert.Equal(t, http.StatusServiceUnavailable, p.statusOf("/api/events?session=build", p.share(nil).by(nil)))
	for range 32 {
		p.stream("")
	}
}
