package terminal

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// WaitOptions say what to wait for. The end of the program always ends the wait.
type WaitOptions struct {
	// Text is looked for on the screen, whose lines have newlines between them.
	Text string `json:"text,omitempty"`

	// Pattern is a regular expression (RE2) for the lines of the screen, joined by
	// newlines: (?m) makes ^ and $ those of a line.
	Pattern string `json:"pattern,omitempty"`

	// Gone ends the wait when Text or Pattern is not on the screen any more, instead.
	Gone bool `json:"gone,omitempty"`

	// Silence ends the wait when the program has printed nothing for so long.
	Silence time.Duration `json:"silence_ns,omitempty"`

	// Prompt ends the wait when the program waits for input, as the kernel says (Info.Waits), or
	// seems to: what is on the left of the cursor looks like a prompt, and nothing was
	// printed for a moment. That is a guess. PromptPattern, if not empty, is what a prompt
	// looks like; then the kernel is not asked.
	Prompt        bool   `json:"prompt,omitempty"`
	PromptPattern string `json:"prompt_pattern,omitempty"`

	// From makes Text, Pattern and Prompt wait for output behind that offset first, as
	// Info.Bytes was before something was typed: what was on the screen before does not
	// count until something changes.
	From int64 `json:"from,omitempty"`

	// Timeout ends the wait. 0, and what is larger, means Options.MaxWait: Waited says
	// so.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
}

// WaitReason says why a wait has ended.
type WaitReason string

// The reasons.
const (
	WaitExited      WaitReason = "exited"
	WaitMatched     WaitReason = "matched"
	WaitGone        WaitReason = "gone"
	WaitSilent      WaitReason = "silent"
	WaitPrompt      WaitReason = "prompt"
	WaitTimeout     WaitReason = "timeout"
	WaitInterrupted WaitReason = "interrupted"
)

// Waited says how a wait has ended.
type Waited struct {
	Reason WaitReason    `json:"reason"`
	Info   Info          `json:"info"`
	Match  string        `json:"match,omitempty"` // what was found, or the prompt
	Took   time.Duration `json:"took_ns"`

	// Timeout is how long it would have taken at most. Clamped says that it is
	// Options.MaxWait, though a longer one was asked for.
	Timeout time.Duration `json:"timeout_ns"`
	Clamped bool          `json:"clamped,omitempty"`
}

// prompt is what the end of a prompt looks like: of a shell, a REPL, a debugger, a
// database, a question.
const prompt = `[$#%>❯➜λ»?:\])][ \x{a0}]{0,2}$`

// quiet is how long nothing is printed behind a prompt, and glance how often a screen is
// looked at while a program prints.
const (
	quiet  = 150 * time.Millisecond
	glance = 20 * time.Millisecond
)

// Wait waits until the program has ended, or what else the options say has come, or for the
// timeout, which is no error. The error is [ErrInterrupted], or that of ctx, if it was
// interrupted, and ErrElsewhere of a terminal that another program has.
func (t *Terminal) Wait(ctx context.Context, o WaitOptions) (Waited, error) {
	w := &waiting{t: t, o: o, began: time.Now()}
	if err := w.prepare(); err != nil {
		return Waited{}, err
	}
	if in := t.r.opts.Interrupts; in != nil {
		var free func()
		ctx, free = in.Context(ctx)
		defer free()
	}
	timeout := time.NewTimer(w.result.Timeout)
	defer timeout.Stop()
	for {
		changed, again := w.look()
		if w.result.Reason != "" {
			return w.end(), nil
		}
		tick := time.NewTimer(again)
		select {
		case <-changed:
			pause(ctx, w.pace())
		case <-tick.C:
		case <-t.ended:
		case <-timeout.C:
			// Something may have come with it: that is more worth to be known.
			if w.look(); w.result.Reason == "" {
				w.result.Reason = WaitTimeout
			}
			return w.end(), nil
		case <-ctx.Done():
			w.result.Reason = WaitInterrupted
			return w.end(), &Error{Op: "wait", ID: t.id, Err: context.Cause(ctx)}
		}
		tick.Stop()
	}
}

// pace is how long to wait before a screen that has changed is looked at. An echo is there
// at once; a picture that is being drawn is not looked at with each of its pieces, nor one
// that may just have been erased to be drawn anew.
func (w *waiting) pace() time.Duration {
	const first = time.Millisecond
	now := time.Now()
	if w.gap *= 2; w.gap == 0 || now.Sub(w.changed) > glance {
		w.gap = first
	}
	if w.gap = min(w.gap, glance); w.o.Gone {
		w.gap = glance
	}
	w.changed = now
	return w.gap
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// waiting is a wait under way.
type waiting struct {
	t       *Terminal
	o       WaitOptions
	d       *display
	began   time.Time
	changed time.Time // when the screen had changed last
	gap     time.Duration
	reading reading
	pattern *regexp.Regexp
	prompt  *regexp.Regexp
	result  Waited
}

func (w *waiting) prepare() (err error) {
	fail := func(err error) error { return &Error{Op: "wait", ID: w.t.id, Err: err} }
	if w.o.Text != "" && w.o.Pattern != "" {
		return fail(errors.New("a wait is for a Text or for a Pattern, not for both"))
	}
	if w.o.Gone && w.o.Text == "" && w.o.Pattern == "" {
		return fail(errors.New("what is to be gone? Gone wants a Text or a Pattern"))
	}
	if w.o.Silence < 0 || w.o.Timeout < 0 {
		return fail(errors.New("a time cannot be negative"))
	}
	if w.o.Pattern != "" {
		if w.pattern, err = regexp.Compile(w.o.Pattern); err != nil {
			return fail(fmt.Errorf("pattern %q: %w", w.o.Pattern, err))
		}
	}
	if w.o.Prompt || w.o.PromptPattern != "" {
		text := prompt
		if w.o.PromptPattern != "" {
			text = w.o.PromptPattern
		}
		if w.prompt, err = regexp.Compile(text); err != nil {
			return fail(fmt.Errorf("pattern %q: %w", text, err))
		}
	}
	w.result.Timeout = w.t.r.opts.MaxWait
	if w.o.Timeout > 0 && w.o.Timeout <= w.result.Timeout {
		w.result.Timeout = w.o.Timeout
	}
	w.result.Clamped = w.o.Timeout > w.result.Timeout
	w.d, err = w.t.seen("wait")
	return err
}

func (w *waiting) onScreen() bool { return w.o.Text != "" || w.pattern != nil || w.prompt != nil }

// look sets the reason if there is one. Else changed is closed at the next output that may
// be one, and again is when to look in any case.
func (w *waiting) look() (changed <-chan struct{}, again time.Duration) {
	again = time.Hour
	ended := false
	select {
	case <-w.t.ended:
		ended = true // All is there to be seen.
	default:
	}
	silent := w.silent()
	if w.onScreen() {
		var end int64
		if end, changed = w.d.out.after(); changed == nil {
			again = glance // It is just about to end.
		}
		if end > w.o.From || w.o.From == 0 {
			s := w.d.look()
			if w.found(s) {
				return changed, again
			}
			if line := promptOf(s); w.prompt != nil && s.Cursor.Visible && w.prompt.MatchString(line) {
				if silent >= quiet {
					w.result.Reason, w.result.Match = WaitPrompt, strings.TrimSpace(line)
					return changed, again
				}
				again = min(again, quiet-silent)
			} else if w.prompt != nil && w.o.PromptPattern == "" {
				reads := silent >= quiet && w.reads()
				if reads && w.reading.lasts(end) {
					w.result.Reason, w.result.Match = WaitPrompt, strings.TrimSpace(line)
					return changed, again
				}
				again = min(again, max(quiet-silent, silent)) // Less and less often: nothing may ever be new.
				if reads {
					again = min(again, quiet)
				} else {
					w.reading = reading{}
				}
			}
		}
	}
	switch {
	case ended:
		w.result.Reason = WaitExited
	case w.o.Silence > 0 && silent >= w.o.Silence:
		w.result.Reason = WaitSilent
	case w.o.Silence > 0:
		again = min(again, w.o.Silence-silent)
	}
	return changed, again
}

// silent is for how long the program has printed nothing; at most since the wait began.
func (w *waiting) silent() time.Duration {
	since := w.began
	if prog := w.t.program(); prog != nil {
		if at := epoch.Add(time.Duration(prog.lastOutput.Load())); at.After(since) {
			since = at
		}
	}
	return time.Since(since)
}

// reads reports whether the kernel says that the program waits for input.
func (w *waiting) reads() bool {
	prog := w.t.program()
	return prog != nil && prog.waits() != nil
}

// reading is a program that waits for input, as the kernel says. What it has printed right before may be on its way to the screen still.
type reading struct {
	since time.Time // zero: it was not seen yet
	end   int64     // of the output then
}

// lasts reports whether that was seen before already, with nothing new since.
func (r *reading) lasts(end int64) bool {
	if r.since.IsZero() || r.end != end {
		*r = reading{time.Now(), end}
	}
	return time.Since(r.since) >= quiet
}

// found looks for the text.
func (w *waiting) found(s Snapshot) bool {
	if w.o.Text == "" && w.pattern == nil {
		return false
	}
	text := s.Text()
	match, ok := w.o.Text, w.o.Text != "" && strings.Contains(text, w.o.Text)
	if w.pattern != nil {
		at := w.pattern.FindStringIndex(text)
		if ok = at != nil; ok {
			match = text[at[0]:at[1]]
		}
	}
	switch {
	case ok && !w.o.Gone:
		w.result.Reason, w.result.Match = WaitMatched, match
	case !ok && w.o.Gone:
		w.result.Reason = WaitGone
	default:
		return false
	}
	return true
}

// promptOf is what is on the left of the cursor. What is on its right is not empty where a
// program has drawn more than a prompt.
func promptOf(s Snapshot) string {
	if s.Cursor.Row < 0 || s.Cursor.Row >= len(s.Cells) {
		return ""
	}
	var b strings.Builder
	for col, cell := range s.Cells[s.Cursor.Row] {
		if col >= s.Cursor.Col {
			break
		}
		b.WriteString(cell.Text)
	}
	return b.String()
}

func (w *waiting) end() Waited {
	w.result.Info = w.t.Info()
	w.result.Took = time.Since(w.began)
	return w.result
}
