package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/limpet-sh/limpet/jobs"
)

// followed prints a part of the output, and then what comes.
func (f *logFlags) followed(ctx context.Context, r jobs.Handle, id string) error {
	from, err := f.from(r, id)
	if err != nil {
		return err
	}
	to := follower{raw: !f.json && !f.plain, plain: f.plain, at: from, print: f.printChunk}
	quiet := f.notesWait(ctx, r, id)
	defer quiet.stop()
	for chunk, err := range r.Follow(ctx, id, from) {
		quiet.again()
		if stopped := gotSignal(ctx); stopped != nil {
			return exit(codeOf(stopped)) // That is how it is left.
		}
		if err == nil {
			err = to.take(chunk)
		}
		if err != nil {
			return err
		}
	}
	if err := to.flush(); err != nil {
		return err
	}
	job, err := r.Get(id)
	if err != nil {
		return err
	}
	f.where.console.notef("%s: %s", id, describe(job))
	return nil
}

// noticed is how long a job prints nothing until it is looked at for what it waits for, after its last output, and then after the look before.
// Its supervisor has looked by then: that does after 1, 2, 4, 8 and 16 s of silence.
var noticed = []time.Duration{1500 * time.Millisecond, 1500 * time.Millisecond, 2 * time.Second, 4 * time.Second, 8 * time.Second}

// silence has a job looked at whenever it has printed nothing for some time. Stop it.
type silence struct {
	news      chan struct{} // has room for one
	end, done chan struct{}
}

// newSilence looks after each of the pauses, one behind the other, until look reports that there was something to say.
func newSilence(pauses []time.Duration, look func() (said bool)) *silence {
	s := &silence{news: make(chan struct{}, 1), end: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		timer := time.NewTimer(pauses[0])
		defer timer.Stop()
		for next := 0; ; {
			select {
			case <-s.end:
				return
			case <-s.news:
				next = 0
			case <-timer.C:
				if next++; look() {
					next = len(pauses)
				}
			}
			if timer.Stop(); next < len(pauses) {
				timer.Reset(pauses[next])
			}
		}
	}()
	return s
}

// notesWait tells it on stderr when a job waits for input.
func (f *logFlags) notesWait(ctx context.Context, r jobs.Handle, id string) *silence {
	return newSilence(noticed, func() bool {
		job, err := r.Get(id)
		text := asks(job)
		if err != nil || text == "" || ctx.Err() != nil {
			return false
		}
		f.where.console.notef("%s: %s", id, strings.TrimPrefix(text, "; "))
		return true
	})
}

// again begins anew: something was printed.
func (s *silence) again() {
	select {
	case s.news <- struct{}{}:
	default: // It is about to.
	}
}

// stop ends it, and waits for a look that is under way.
func (s *silence) stop() {
	close(s.end)
	<-s.done
}

// from is the offset of the first byte to print.
func (f *logFlags) from(r jobs.Handle, id string) (int64, error) {
	if !f.given("offset") && f.tail > 0 {
		part, err := r.Log(id, jobs.LogOptions{Tail: f.tail})
		return part.Offset, err
	}
	job, err := r.Get(id)
	switch {
	case err != nil:
		return 0, err
	case !f.given("offset"): // --tail 0
		return job.Output.End, nil
	case f.offset < 0:
		return max(job.Output.End+f.offset, job.Output.First), nil
	}
	return f.offset, nil
}

// printChunk prints what has come.
func (f *logFlags) printChunk(c chunkJSON) error {
	if f.json {
		return writeJSON(os.Stdout, c)
	}
	if c.Dropped > 0 {
		f.where.console.notef("%d bytes are missing here, and not kept any more", c.Dropped)
	}
	_, err := io.WriteString(&f.where.console.stdout, c.Text)
	return err
}

// chunkJSON is a line of "jobs log --follow --json".
type chunkJSON struct {
	Offset  int64  `json:"offset"`
	Text    string `json:"text"`
	Dropped int64  `json:"dropped,omitempty"` // bytes before it
}

// follower prints output as it comes. Where it is not printed as it is, it is kept
// until its lines are whole: so are its runes and escape sequences then.
type follower struct {
	raw, plain bool
	print      func(chunkJSON) error

	at      int64 // the offset of what is kept
	kept    []byte
	dropped int64
}

// longestKept is how much of a line is waited for.
const longestKept = 64 << 10

func (t *follower) take(c jobs.Chunk) error {
	if c.Dropped > 0 {
		if err := t.flush(); err != nil {
			return err
		}
		t.at, t.dropped = c.Offset, c.Dropped
	}
	t.kept = append(t.kept, c.Data...)
	whole := bytes.LastIndexByte(t.kept, '\n') + 1
	if t.raw || whole == 0 && len(t.kept) >= longestKept {
		whole = len(t.kept)
	}
	return t.pass(whole)
}

// flush prints what is left.
func (t *follower) flush() error { return t.pass(len(t.kept)) }

// pass prints the first bytes of what is kept.
func (t *follower) pass(n int) error {
	if n == 0 {
		return nil
	}
	chunk := chunkJSON{Offset: t.at, Text: string(t.kept[:n]), Dropped: t.dropped}
	t.kept, t.at, t.dropped = t.kept[n:], t.at+int64(n), 0
	if t.plain {
		chunk.Text = ansi.Strip(chunk.Text)
	}
	return t.print(chunk)
}
