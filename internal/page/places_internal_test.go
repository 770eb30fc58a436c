package page

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
)

// farPlace stands in for another machine, which answers when it likes.
type farPlace struct {
	keeper.Place
	mu    sync.Mutex
	list  []keeper.Listed
	err   error
	stuck chan struct{} // if it is not nil, answers come when it is closed
	lists int
}

func (f *farPlace) set(how func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	how()
}

func (f *farPlace) List(ctx context.Context, _ bool) ([]keeper.Listed, error) {
	f.mu.Lock()
	f.lists++
	list, err, stuck := f.list, f.err, f.stuck
	f.mu.Unlock()
	if stuck != nil {
		select {
		case <-stuck:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return list, err
}

func (f *farPlace) Session(context.Context, string, *keeper.Spec) (*keeper.Kept, error) {
	return nil, errors.New("far")
}

func listed(name string) keeper.Listed {
	return keeper.Listed{Record: keeper.Record{ID: name, Name: name}, Alive: true, Info: &session.Info{Name: name}}
}

func TestAnotherMachineHidesNothingOfThisOne(t *testing.T) {
	here, err := keeper.Open(testenv.TempDir(t))
	require.NoError(t, err)
	far := &farPlace{list: []keeper.Listed{listed("a"), listed("b@c"), listed("../x"), listed("")}}
	p := FromPlaces(here, here.Questions(), nil, Elsewhere{Target: "web1", Place: far})
	defer p.Close()
	names := func() (names []string) {
		list, err := p.List(testenv.Context(t))
		require.NoError(t, err)
		for _, one := range list {
			names = append(names, one.Record.Name)
		}
		return names
	}
	testenv.Await(t, "the list", func() bool { return len(names()) > 0 })
	assert.Equal(t, []string{"a@web1"}, names())
	assert.Equal(t, []Machine{{Target: "web1"}}, p.Machines())
	assert.Equal(t, "a", far.list[0].Record.Name)

	far.set(func() {
		for i := range 1000 {
			far.list = append(far.list, listed(fmt.Sprint("s", i)))
		}
	})
	testenv.Await(t, "its last ones", func() bool { return len(names()) > 1 })
	assert.Len(t, names(), mostElsewhere)
	assert.Equal(t, "s999@web1", names()[mostElsewhere-1])

	_, err = p.Open(t.Context(), "a@web1")
	require.ErrorContains(t, err, "far")
	for _, name := range []string{"a@web2", "a@", "a"} {
		_, err = p.Open(t.Context(), name)
		require.ErrorIs(t, err, session.ErrNotFound, name)
	}

	far.set(func() { far.err = errors.New("gone") })
	testenv.Await(t, "the error", func() bool { names(); return p.Machines()[0].Error == "gone" })
	list, err := p.List(t.Context())
	require.NoError(t, err)
	assert.Len(t, list, mostElsewhere)
	assert.Nil(t, list[0].Info, "what is known of it is old")
}

// A machine that does not answer is asked once at a time, and waited for no longer than others care to.
func TestASlowMachineSlowsNobody(t *testing.T) {
	testenv.Slow(t)
	here, err := keeper.Open(testenv.TempDir(t))
	require.NoError(t, err)
	far := &farPlace{stuck: make(chan struct{}), list: []keeper.Listed{listed("a")}}
	p := FromPlaces(here, here.Questions(), nil, Elsewhere{Target: "web1", Place: far}, Elsewhere{Target: "web2", Place: &farPlace{list: []keeper.Listed{listed("b")}}})
	defer p.Close()
	for range 3 {
		list, err := p.List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		assert.Equal(t, "b@web2", list[0].Record.Name)
	}
	assert.Equal(t, errNoAnswer.Error(), p.Machines()[0].Error)
	far.set(func() { assert.Equal(t, 1, far.lists) })
	close(far.stuck)
	testenv.Await(t, "its answer", func() bool {
		list, err := p.List(t.Context())
		require.NoError(t, err)
		return len(list) == 2
	})
	far.set(func() { far.stuck = make(chan struct{}) })
	_, err = p.List(t.Context())
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		p.Close()
		p.Close()
		close(ended)
	}()
	select {
	case <-ended: // What is asked is given up.
	case <-time.After(testenv.Patience):
		t.Fatal("Close waits for a machine that does not answer")
	}
}

func TestASessionIsNamedAtATerminal(t *testing.T) {
	assert.Equal(t, "a", at("a"))
	assert.Equal(t, "a --on web1", at("a@web1"))
	assert.Equal(t, "a --on 'exec:env -i sh'", at("a@exec:env -i sh"))
	assert.Equal(t, "a --on me@web1", at("a@me@web1"))
	for name, want := range map[string]bool{"a": true, "a@b": true, "a@b@c": true, "": false, "a@": false, "@b": false, "a b@c": false} {
		assert.Equal(t, want, validName(name), name)
	}
}
