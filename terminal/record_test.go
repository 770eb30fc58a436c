package terminal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/asciicast"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

// cast reads a recording.
func cast(t testing.TB, b []byte) (h asciicast.Header, events []asciicast.Event, text string) {
	t.Helper()
	h, all, err := asciicast.Read(bytes.NewReader(b))
	require.NoError(t, err)
	for e, err := range all {
		require.NoError(t, err)
		events = append(events, e)
		if e.Code == asciicast.Output {
			text += e.Data
		}
	}
	return h, events, text
}

func TestARecordingFromTheStartHasAllThatWasPrintedAtItsTimes(t *testing.T) {
	testenv.Slow(t)
	path := filepath.Join(t.TempDir(), "cast")
	r := open(t, nil)
	term := startSpec(t, r, terminal.Spec{
		Line: `echo héllo; read -r x; echo "$x"; read -r x; stty size; exit 3`, Size: terminal.Size{Cols: 60, Rows: 20}, Record: path,
	})
	see(t, term, "héllo")
	pause := 200 * time.Millisecond
	wait(t, term, terminal.WaitOptions{Silence: pause})
	send(t, term, "wörld", "Enter")
	see(t, term, `(?m)^wörld\nwörld$`)
	require.NoError(t, term.Resize(terminal.Size{Cols: 61, Rows: 21}))
	send(t, term, "Enter")
	info := ended(t, term)
	assert.Equal(t, path, info.Recording)
	assert.Empty(t, info.RecordingFailed)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	st, err := os.Stat(path)
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, st.Mode().Perm())

	var later bytes.Buffer
	done, err := term.Record(testenv.Context(t), &later, terminal.RecordOptions{FromStart: true})
	require.NoError(t, err)
	assert.Equal(t, terminal.Recorded{Bytes: info.Bytes}, done)
	terminal.Retire(term)
	var past bytes.Buffer
	_, err = term.Record(testenv.Context(t), &past, terminal.RecordOptions{FromStart: true})
	require.NoError(t, err)
	_, live, _ := cast(t, later.Bytes())
	_, replayed, _ := cast(t, past.Bytes())
	require.Len(t, replayed, len(live))
	for i, e := range live { // The log has the times of the clock on the wall.
		assert.InDelta(t, e.At, replayed[i].At, float64(time.Millisecond))
		e.At = replayed[i].At
		assert.Equal(t, e, replayed[i])
	}

	for name, b := range map[string][]byte{"live": b, "later": later.Bytes()} {
		h, events, text := cast(t, b)
		assert.EqualValues(t, 60, h.Cols, name)
		assert.EqualValues(t, 20, h.Rows, name)
		assert.Contains(t, h.Command, "héllo")
		assert.Equal(t, output(t, term), text, name)
		var first, answer, resized time.Duration
		for _, e := range events {
			switch {
			case strings.Contains(e.Data, "héllo"):
				first = e.At
			case strings.Contains(e.Data, "w"):
				answer = max(answer, e.At)
			case e.Code == asciicast.Resize:
				resized = e.At
				assert.Equal(t, "61x21", e.Data)
			}
		}
		assert.GreaterOrEqual(t, answer-first, pause*9/10, "%s: the times are not those of the output: %v", name, events)
		assert.GreaterOrEqual(t, resized, answer, name)
	}
}

// People read a recording as soon as limpet term wait has told them that the program has ended. That is another program: here, another registry.
func TestTheRecordingIsWholeWhenTheEndCanBeSeen(t *testing.T) {
	dir, path := filepath.Join(t.TempDir(), "terminals"), filepath.Join(t.TempDir(), "cast")
	r, other := openIn(t, dir, nil), openIn(t, dir, nil)
	const lines = 100_000 // They take longer to record than to print.
	term := startSpec(t, r, terminal.Spec{Line: fmt.Sprintf("read -r x; seq %d", lines), Record: path})
	past, err := other.Get(term.ID())
	require.NoError(t, err)
	require.True(t, past.Info().Elsewhere)
	send(t, term, "Enter")
	ctx := testenv.Context(t)
	for !past.Info().State.Ended() { // As often as can be: a moment is what it is about.
		require.NoError(t, ctx.Err())
	}
	assert.Equal(t, terminal.Succeeded, past.Info().State)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	_, _, text := cast(t, b)
	assert.True(t, strings.HasSuffix(text, fmt.Sprintf("%d\r\n", lines)), "it ends with %q", text[max(len(text)-20, 0):])
	<-term.Done()
	assert.Empty(t, term.Info().RecordingFailed)
}

func TestARecordingFromNowBeginsWithThePicture(t *testing.T) {
	r := open(t, nil)
	term := startSpec(t, r, terminal.Spec{Line: `printf 'before\033[31m'; echo; read -r x; echo after; read -r x`})
	see(t, term, "before")
	ctx, cancel := context.WithCancelCause(testenv.Context(t))
	given := errors.New("given up")
	var b bytes.Buffer
	recorded := make(chan error)
	began := make(chan struct{})
	go func() {
		_, err := term.Record(ctx, writer(func(p []byte) (int, error) {
			if b.Len() == 0 {
				close(began)
			}
			return b.Write(p)
		}), terminal.RecordOptions{Title: "mine"})
		recorded <- err
	}()
	<-began
	send(t, term, "Enter")
	see(t, term, "after")
	cancel(given)
	require.ErrorIs(t, <-recorded, given)
	h, _, text := cast(t, b.Bytes())
	assert.Equal(t, "mine", h.Title)
	assert.Contains(t, text, "before")
	require.NoError(t, term.Close())
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestARecordingSaysWhatIsMissing(t *testing.T) {
	r := open(t, &terminal.Options{BufferLimit: 64 << 10})
	term := startSpec(t, r, terminal.Spec{Line: "seq 100000"})
	info := ended(t, term)
	require.True(t, info.Truncated)
	var b bytes.Buffer
	done, err := term.Record(testenv.Context(t), &b, terminal.RecordOptions{FromStart: true})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, done.Missed, info.Kept)
	assert.Equal(t, info.Bytes, done.Missed+done.Bytes)
	_, events, text := cast(t, b.Bytes())
	assert.Equal(t, asciicast.Marker, events[0].Code)
	assert.Contains(t, events[0].Data, "bytes are missing here")
	assert.True(t, strings.HasSuffix(output(t, term), text))
}

func TestARecorderThatFailsIsAnError(t *testing.T) {
	r := open(t, nil)
	term := startSpec(t, r, terminal.Spec{Line: "echo hello"})
	full := errors.New("full")
	_, err := term.Record(testenv.Context(t), writer(func([]byte) (int, error) { return 0, full }), terminal.RecordOptions{})
	require.ErrorIs(t, err, full)
}

func TestDebiansAsciinemaPlaysARecording(t *testing.T) {
	player, err := exec.LookPath("asciinema")
	if err != nil {
		t.Skip("no asciinema")
	}
	path := filepath.Join(t.TempDir(), "cast")
	r := open(t, nil)
	term := startSpec(t, r, terminal.Spec{Line: `printf '\033[1mbold\033[m \346\227\245\346\234\254\n'; seq 50`, Record: path})
	ended(t, term)
	// It is played on a terminal of ours.
	played := startSpec(t, r, terminal.Spec{Argv: []string{player, "play", "-i", "0.01", path}})
	info := ended(t, played)
	require.Equal(t, terminal.Succeeded, info.State, output(t, played))
	want, err := term.Screen()
	require.NoError(t, err)
	got, err := played.Screen()
	require.NoError(t, err)
	assert.Contains(t, got.Text(), want.Text())
}
