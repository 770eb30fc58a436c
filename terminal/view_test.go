package terminal_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

func TestAttachGivesWhatWasThereAndThenWhatComes(t *testing.T) {
	r := open(t, nil)
	term := startSpec(t, r, terminal.Spec{Line: "stty -echo; echo ready; for i in {1..200}; do read -r x; echo $i $x; done"})
	see(t, term, "ready")
	type followed struct {
		from int64
		text string
	}
	all := make(chan followed)
	const viewers = 20
	for i := range viewers {
		go func() {
			v, err := term.Attach(int64(i) - 10)
			if !assert.NoError(t, err) {
				return
			}
			from := v.Offset()
			var text strings.Builder
			for {
				c, err := v.Next(testenv.Context(t))
				if err != nil {
					assert.Equal(t, io.EOF, err)
					break
				}
				assert.Zero(t, c.Missed)
				text.Write(c.Data)
			}
			all <- followed{from, text.String()}
		}()
	}
	for i := range 200 {
		_, err := fmt.Fprintf(writer(term.Write), "%d\n", i)
		require.NoError(t, err)
	}
	ended(t, term)
	want := output(t, term)
	for range viewers {
		f := <-all
		assert.Equal(t, want[f.from:], f.text)
	}
	v, err := term.Attach(terminal.Now)
	require.NoError(t, err)
	_, err = v.Next(testenv.Context(t))
	require.Equal(t, io.EOF, err)
}

// A viewer that stands still costs the program nothing, and is told what it has missed.
func TestASlowViewerIsToldWhatItMissedAndHoldsNothingUp(t *testing.T) {
	testenv.Slow(t)
	const total = 20 << 20
	r := open(t, &terminal.Options{BufferLimit: 256 << 10})
	term := startSpec(t, r, terminal.Spec{Line: fmt.Sprintf("read -r x; yes limpet | head -c %d", total)})
	v, err := term.Attach(0)
	require.NoError(t, err)
	send(t, term, "Enter")
	info := ended(t, term)
	require.Greater(t, info.Bytes, int64(total)) // With a carriage return at each newline.
	seen, missed := int64(0), int64(0)
	for {
		c, err := v.Next(testenv.Context(t))
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		assert.Equal(t, seen+missed+c.Missed, c.Offset)
		missed += c.Missed
		seen += int64(len(c.Data))
	}
	assert.Equal(t, info.Bytes, seen+missed)
	assert.GreaterOrEqual(t, seen, int64(256<<10))
	assert.Equal(t, info.Kept, missed)
	assert.True(t, info.Truncated)
	assert.EqualValues(t, info.Lines, info.Bytes/int64(len("limpet\r\n"))+1)
}

func TestTextIsCutBetweenRunesAndSequences(t *testing.T) {
	r := open(t, nil)
	term := startSpec(t, r, terminal.Spec{Line: `printf 'a\033[1;31mbé\033[0m日\xff\033]0;title\007c\nd'`})
	ended(t, term)
	const want = "abé日\uFFFDc\nd"
	raw := output(t, term)
	whole, err := term.Text(0, 1000)
	require.NoError(t, err)
	assert.Equal(t, terminal.Text{Next: int64(len(raw)), Text: want}, whole)
	for from := range int64(len(raw)) {
		for most := 1; most < 12; most++ {
			// Page by page, each rune comes once, and no part of a sequence.
			var text strings.Builder
			for next := from; next < int64(len(raw)); {
				page, err := term.Text(next, most)
				require.NoError(t, err)
				require.Greater(t, page.Next, next, "no progress at %d by %d", next, most)
				text.WriteString(page.Text)
				next = page.Next
			}
			if from == 0 {
				assert.Equal(t, want, text.String(), "by %d", most)
			} else {
				assert.True(t, strings.HasSuffix(want, text.String()), "from %d by %d: %q", from, most, text.String())
			}
		}
	}
	last, err := term.Text(-1, 10)
	require.NoError(t, err)
	assert.Equal(t, "d", last.Text)
}

func TestTheScreenIsRightAfterMoreThanTheBufferHolds(t *testing.T) {
	r := open(t, &terminal.Options{BufferLimit: 64 << 10})
	term := startSpec(t, r, terminal.Spec{Line: `printf '\033[?1049h\033[?25l\033]2;a title\007\033[3;5Htop left'; seq -s ' ' 1 60000 >/dev/null
		for i in {1..6000}; do printf '\033[10;1Hcount %d' "$i"; done; read -r x`})
	wait(t, term, terminal.WaitOptions{Text: "count 6000"})
	s, err := term.Screen()
	require.NoError(t, err)
	assert.True(t, s.Alternate, "what was set before the buffer begins is known")
	assert.False(t, s.Cursor.Visible)
	assert.Equal(t, "top left", strings.TrimSpace(s.Line(2)), "it was fed before it left the buffer")
	require.NoError(t, term.Close())
}

func TestWaits(t *testing.T) {
	testenv.Slow(t)
	r := open(t, nil)
	term := startSpec(t, r, terminal.Spec{Line: `echo one; read -r -p 'really? [y/N] ' x; printf '\033[H\033[2Jtwo'; read -r x; exit 3`})
	w := wait(t, term, terminal.WaitOptions{Text: "one"})
	assert.Equal(t, terminal.WaitMatched, w.Reason)
	assert.Equal(t, "one", w.Match)
	w = wait(t, term, terminal.WaitOptions{Prompt: true})
	assert.Equal(t, terminal.WaitPrompt, w.Reason)
	assert.Equal(t, "really? [y/N]", w.Match)
	w = wait(t, term, terminal.WaitOptions{PromptPattern: `N\] $`})
	assert.Equal(t, terminal.WaitPrompt, w.Reason)
	w = wait(t, term, terminal.WaitOptions{Silence: 50 * time.Millisecond})
	assert.Equal(t, terminal.WaitSilent, w.Reason)
	w, err := term.Wait(testenv.Context(t), terminal.WaitOptions{Text: "never", Timeout: 50 * time.Millisecond})
	require.NoError(t, err)
	assert.Equal(t, terminal.WaitTimeout, w.Reason)
	w, err = term.Wait(testenv.Context(t), terminal.WaitOptions{Text: "one", From: w.Info.Bytes, Timeout: 50 * time.Millisecond})
	require.NoError(t, err)
	assert.Equal(t, terminal.WaitTimeout, w.Reason, "it was there before")
	w, err = term.Wait(testenv.Context(t), terminal.WaitOptions{Text: "one", Gone: true, Timeout: 50 * time.Millisecond})
	require.NoError(t, err)
	assert.Equal(t, terminal.WaitTimeout, w.Reason)
	send(t, term, "y", "Enter")
	w = wait(t, term, terminal.WaitOptions{Text: "one", Gone: true})
	assert.Equal(t, terminal.WaitGone, w.Reason)
	w = wait(t, term, terminal.WaitOptions{Pattern: `^t.o$`})
	assert.Equal(t, terminal.WaitMatched, w.Reason)
	send(t, term, "Enter")
	w = wait(t, term, terminal.WaitOptions{Silence: time.Hour})
	assert.Equal(t, terminal.WaitExited, w.Reason)
	assert.Equal(t, terminal.Failed, w.Info.State)
	w, err = term.Wait(testenv.Context(t), terminal.WaitOptions{Text: "two"})
	require.NoError(t, err)
	assert.Equal(t, terminal.WaitMatched, w.Reason, "what is there at the end counts")

	for _, test := range []struct {
		o    terminal.WaitOptions
		says string
	}{
		{terminal.WaitOptions{Text: "a", Pattern: "b"}, "not for both"},
		{terminal.WaitOptions{Gone: true}, "Gone wants a Text or a Pattern"},
		{terminal.WaitOptions{Pattern: "("}, `pattern "("`},
		{terminal.WaitOptions{PromptPattern: "("}, `pattern "("`},
		{terminal.WaitOptions{Silence: -1}, "negative"},
	} {
		_, err := term.Wait(testenv.Context(t), test.o)
		require.ErrorContains(t, err, test.says)
	}
}

func TestAWaitEndsWithTheRegistry(t *testing.T) {
	r := open(t, nil)
	term := start(t, r, "cat")
	done := make(chan terminal.Waited)
	go func() {
		w, err := term.Wait(testenv.Context(t), terminal.WaitOptions{Text: "never"})
		assert.NoError(t, err)
		done <- w
	}()
	require.NoError(t, r.Close())
	w := <-done
	assert.Equal(t, terminal.WaitExited, w.Reason)
	assert.Equal(t, terminal.Cancelled, w.Info.State)
	require.NoError(t, r.Close())
	_, err := r.Start(testenv.Context(t), terminal.Spec{Argv: []string{"true"}})
	require.ErrorIs(t, err, terminal.ErrClosed)
	_, err = r.List()
	require.ErrorIs(t, err, terminal.ErrClosed)
	_, err = r.Get(term.ID())
	require.ErrorIs(t, err, terminal.ErrClosed)
	s, err := term.Screen()
	require.NoError(t, err, "who has it can still look")
	assert.Empty(t, s.Text())
}
