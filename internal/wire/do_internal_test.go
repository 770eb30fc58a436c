package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// takes answers each piece of an input as a program does that has taken so many bytes of it.
type takes string

func (next takes) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader(`{"next":` + string(next) + `}`))}, nil
}

// A program that takes less of the input than was sent, as an older one behind an outage, is not taken for one that has it all.
func TestAnInputOfWhichLessIsTakenIsTold(t *testing.T) {
	for _, row := range []struct {
		takes takes
		input io.Reader
		told  string
	}{
		{"2", strings.NewReader("abc"), "2 bytes of it were taken, and 3 were sent"},
		{"2", io.MultiReader(strings.NewReader("abc"), strings.NewReader("d")), "2 bytes of it were taken, and 3 were sent"},
		{"3", strings.NewReader("abc"), ""},
		{"2", lastRead{"abc"}, "2 bytes of it were taken, and 3 were sent"},
		{"3", lastRead{"abc"}, ""},
	} {
		c := NewClientOver(row.takes, nil)
		defer c.Disconnect()
		d := &doing{s: c.Session("s"), id: "id", req: command.Request{Stdin: row.input}, accepted: make(chan struct{}), fed: make(chan error, 2)}
		close(d.accepted)
		d.feed(testenv.Context(t))
		select {
		case err := <-d.fed:
			assert.EqualError(t, err, row.told)
		default:
			assert.Empty(t, row.told)
		}
	}
}

// lastRead has its text and its end in one Read.
type lastRead struct{ text string }

func (r lastRead) Read(p []byte) (int, error) { return copy(p, r.text), io.EOF }

func TestACommandIsToldHowLongItsClientMayBeAway(t *testing.T) {
	c := NewClientOver(takes("0"), nil)
	defer c.Disconnect()
	d := &doing{s: c.Session("s"), id: "id", accepted: make(chan struct{})}
	r, ok := d.ask(testenv.Context(t))[0].(request)
	require.True(t, ok)
	assert.Equal(t, waitedFor, r.away(), "as with an older client")
	c.Away = 7 * time.Minute
	d.req.Stdout = &bytes.Buffer{}
	r, ok = d.ask(testenv.Context(t))[0].(request)
	require.True(t, ok)
	assert.Equal(t, 7*time.Minute, r.away())
}

// forgetful is a program that has forgotten the events that it counts, and has one later.
type forgetful struct{ asked int }

func (f *forgetful) RoundTrip(r *http.Request) (*http.Response, error) {
	said := "[]"
	if f.asked++; f.asked > 3 {
		said = `[{"seq":9}]`
	}
	return &http.Response{StatusCode: http.StatusOK, Request: r, Body: io.NopCloser(strings.NewReader(said))}, nil
}

func TestAProgramThatHasForgottenItsEventsIsNotAskedAgainAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &forgetful{}
		c := NewClientOver(f, nil)
		defer c.Disconnect()
		began := time.Now()
		list, err := c.Session("s").Events(t.Context(), 5)
		require.NoError(t, err)
		require.Len(t, list, 1)
		assert.EqualValues(t, 9, list[0].Seq)
		assert.Equal(t, 3*soonAgain, time.Since(began))

		f.asked = 0
		gaveUp := errors.New("gave up")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(soonAgain/2, func() { cancel(gaveUp) })
		_, err = c.Session("s").Events(ctx, 5)
		require.ErrorIs(t, err, gaveUp)
		assert.Equal(t, 1, f.asked)
	})
}
