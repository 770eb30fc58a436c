package jobs

import (
	"unicode/utf8"

	"github.com/limpet-sh/limpet/internal/runes"
)

// PollOptions say what a Poll returns. A nil *PollOptions is fine.
type PollOptions struct {
	// Lines is how many of the last lines come with it. 0 means 10, negative none.
	Lines int `json:"lines,omitempty"`

	// Bytes bounds New, and NewLines how many lines it has. The rest comes with the next
	// Poll. 0 means 32 KiB, and any number of lines.
	Bytes    int `json:"bytes,omitempty"`
	NewLines int `json:"new_lines,omitempty"`

	// Plain takes escape sequences out.
	Plain bool `json:"plain,omitempty"`

	// Since, if not nil, is the offset from which on New is new. Nothing is remembered
	// then.
	Since *int64 `json:"since,omitempty"`
}

// The defaults of [PollOptions].
const (
	DefaultPollLines = 10
	DefaultPollBytes = 32 << 10
)

// Polled is how a job is, and what it has printed since the last look.
type Polled struct {
	Job Job `json:"job"`

	// New is what was printed since the last Poll of the registry, whole UTF-8 as far
	// as the job prints UTF-8. It begins at Offset, and Next is the offset behind it.
	// Dropped bytes before it were never told: they came faster than they were
	// polled. More are still to come.
	New     string `json:"new"`
	Offset  int64  `json:"offset"`
	Next    int64  `json:"next"`
	Dropped int64  `json:"dropped,omitempty"`
	More    int64  `json:"more,omitempty"`
	Binary  bool   `json:"binary,omitempty"` // New is no UTF-8; as JSON it is not what was printed then

	// Last are the last lines, new or not.
	Last []string `json:"last"`
}

// Poll returns how a job is, without waiting. What is new is new since the last Poll
// by the owner of the registry, also one before a crash; who only reads has a count of
// its own, from the beginning on. A finished job that was polled is not told as
// completed any more.
func (r *Registry) Poll(id string, opts *PollOptions) (Polled, error) {
	const op = "poll"
	var o PollOptions
	if opts != nil {
		o = *opts
	}
	if o.Lines == 0 {
		o.Lines = DefaultPollLines
	}
	setDefault(&o.Bytes, DefaultPollBytes)
	j, f, err := r.open(op, id)
	if err != nil {
		return Polled{}, err
	}
	before := j.remembered().Polled
	if o.Since != nil {
		before = max(*o.Since, 0)
	}
	var p Polled
	err = f.retry(func() (enough bool, err error) {
		p = Polled{Job: r.present(j, &f)}
		if err = f.poll(&p, before, o); err != nil {
			return false, err
		}
		return len(p.Last) >= o.Lines, nil
	})
	if err != nil {
		return Polled{}, &Error{Op: op, ID: id, Err: err}
	}
	if o.Since == nil {
		r.remember(j, func(m *memo) { m.Polled = max(m.Polled, p.Next) })
	}
	r.saw(j, p.Job)
	return p, nil
}

// poll fills in the output.
func (f *files) poll(p *Polled, before int64, o PollOptions) error {
	b, at, err := f.piece(before, o.Bytes, p.Job.State.Finished(), o.Plain)
	if err != nil {
		return err
	}
	if o.NewLines > 0 {
		b = runes.FirstLines(b, o.NewLines)
	}
	p.Offset, p.Next = at, at+int64(len(b))
	p.Dropped, p.More = max(at-before, 0), f.log.End-p.Next
	if o.Plain {
		b = plain(b)
	}
	p.New, p.Binary, p.Last = string(b), !utf8.Valid(b), []string{}
	if o.Lines > 0 {
		last, err := f.tail(o.Lines)
		if err != nil {
			return err
		}
		p.Last = append(p.Last, last.lines(o.Plain)...)
	}
	return nil
}

// piece reads so many bytes, or as many more as one rune, or one escape sequence, takes:
// who asks for one piece after the other gets on.
func (f *files) piece(off int64, most int, finished, escapes bool) ([]byte, int64, error) {
	const enough = 2 * longestEscape
	b, at, err := f.log.Read(off, most)
	if err != nil {
		return nil, 0, err
	}
	part, start := f.whole(b, at, off, finished, escapes)
	if len(part) == 0 && len(b) == most && most < enough {
		return f.piece(off, enough, finished, escapes)
	}
	return part, start, nil
}

// whole cuts off what is not whole: at the start the rest of a rune whose beginning was
// dropped, at the end a rune, or an escape sequence, of which more is to come.
func (f *files) whole(b []byte, at, asked int64, finished, escapes bool) ([]byte, int64) {
	if at > asked {
		n := runes.BrokenStart(b)
		b, at = b[n:], at+int64(n)
	}
	if finished && at+int64(len(b)) == f.log.End {
		return b, at
	}
	end := runes.Whole(b)
	if escapes {
		end = wholeEscapes(b[:end])
	}
	return b[:end], at
}
