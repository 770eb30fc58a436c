package terminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/asciicast"
	"github.com/limpet-sh/limpet/internal/private"
)

// RecordOptions say what of a terminal to record.
type RecordOptions struct {
	// FromStart begins with what is kept of the output, at the times at which it came
	// (several milliseconds more or less; after hours of output, seconds). Else the
	// recording begins now, with a picture of the screen as it is.
	FromStart bool

	// Title is that of the recording; empty means the command.
	Title string
}

// Recorded says what became of a recording.
type Recorded struct {
	Bytes  int64 `json:"bytes"`  // of output
	Missed int64 `json:"missed"` // of output that was not kept: a marker in the recording says where

	// Gaps is how often a connection to the program that has the terminal was lost meanwhile: what was printed then is not in the
	// recording, and a marker says where that was. Behind it the screen is painted anew.
	Gaps int `json:"gaps,omitempty"`
}

// Record writes a recording to w, as asciicast v2, for asciinema and others to play, until
// the program ends: then it returns nil. If ctx ends before, the error is its cause, and
// what was written is a whole recording. A w that is slower than the program costs parts
// of the recording, and holds nobody else up. Of a program that has ended, what its log
// has is recorded at once.
func (t *Terminal) Record(ctx context.Context, w io.Writer, o RecordOptions) (Recorded, error) {
	return t.record(ctx, w, o, nil)
}

// record is Record. It also ends when printed is closed, behind the output that is there by then; nil never is.
func (t *Terminal) record(ctx context.Context, w io.Writer, o RecordOptions, printed <-chan struct{}) (Recorded, error) {
	d, err := t.seen("record")
	if err != nil {
		return Recorded{}, err
	}
	rec := &recorder{t: t, d: d}
	if err := rec.begin(w, o); err != nil {
		return rec.done, &Error{Op: "record", ID: t.id, Err: err}
	}
	v := &Viewer{id: t.id, out: d.out, next: rec.next, printed: printed, done: make(chan struct{})}
	for {
		c, err := v.Next(ctx)
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if failed := errors.Join(rec.resized(v.next), rec.w.Close()); failed != nil {
				return rec.done, &Error{Op: "record", ID: t.id, Err: failed}
			}
			return rec.done, err
		}
		if err := rec.chunk(c); err != nil {
			return rec.done, &Error{Op: "record", ID: t.id, Err: err, Remedy: "what was written before can be played"}
		}
	}
}

// recorder is a recording under way.
type recorder struct {
	t     *Terminal
	d     *display
	w     *asciicast.Writer
	began time.Time
	next  int64 // offset
	size  Size  // that was written last
	done  Recorded
}

func (r *recorder) begin(w io.Writer, o RecordOptions) error {
	info := r.t.Info()
	var picture []byte
	if o.FromStart {
		r.next, _ = r.d.out.bounds()
		if r.began, _ = r.d.history.at(r.next); r.next == 0 || r.began.IsZero() {
			r.began = cmp.Or(info.Started, info.Created)
		}
		r.size, _ = r.d.history.size(r.next)
	} else {
		s := r.d.look()
		r.next, r.began, r.size, picture = s.Offset, time.Now(), s.Size, s.ANSI()
	}
	command := info.Line
	if command == "" {
		command = strings.Join(info.Argv, " ")
	}
	var err error
	r.w, err = asciicast.NewWriter(w, asciicast.Header{
		Cols: uint16(r.size.Cols), Rows: uint16(r.size.Rows), Started: r.began, Command: command, Title: cmp.Or(o.Title, command),
		Env: map[string]string{"TERM": "xterm-256color"},
	})
	if err != nil {
		return err
	}
	if o.FromStart && r.next > 0 {
		// What is before that place is as good as missing.
		at := r.d.resume()
		r.next, picture = max(at.offset, r.next), at.restore
		if err := r.missed(r.began, r.next); err != nil {
			return err
		}
	}
	if len(picture) > 0 {
		return r.w.Output(0, picture)
	}
	return nil
}

// chunk writes output, each part of it at its time and behind its change of size.
func (r *recorder) chunk(c Chunk) error {
	at := c.Offset
	if c.Missed > 0 {
		when, _ := r.d.history.at(at)
		if err := r.missed(when, c.Missed); err != nil {
			return err
		}
	}
	for len(c.Data) > 0 {
		if err := r.resized(at); err != nil {
			return err
		}
		when, later := r.d.history.at(at)
		_, resize := r.d.history.size(at)
		part := c.Data
		for _, border := range []int64{later, resize} {
			if border > at && border-at < int64(len(part)) {
				part = part[:border-at]
			}
		}
		if err := r.w.Output(r.since(when), part); err != nil {
			return err
		}
		r.done.Bytes += int64(len(part))
		at += int64(len(part))
		c.Data = c.Data[len(part):]
	}
	return nil
}

// resized writes the size at the offset, if it is another one.
func (r *recorder) resized(offset int64) error {
	s := r.d.history.sizedAt(offset)
	if s.Size == r.size {
		return nil
	}
	r.size = s.Size
	return r.w.Resize(r.since(s.At), uint16(s.Size.Cols), uint16(s.Size.Rows))
}

func (r *recorder) missed(when time.Time, n int64) error {
	r.done.Missed += n
	return r.w.Marker(r.since(when), fmt.Sprintf("%d bytes are missing here", n))
}

// since is when something is in the recording. The writer lets no time go back.
func (r *recorder) since(when time.Time) time.Duration {
	if when.IsZero() {
		return 0
	}
	return max(when.Sub(r.began), 0)
}

// recording is a recorder of Spec.Record.
type recording struct {
	f       *os.File
	printed chan struct{} // closed when all that the program has printed is in its output
	err     error         // to be read when done is closed
	done    chan struct{}
}

func newRecording(path string) (*recording, error) {
	f, err := private.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("making the recording: %w; name another file, or remove that one", err)
		}
		return nil, fmt.Errorf("making the recording: %w", err)
	}
	return &recording{f: f, printed: make(chan struct{}), done: make(chan struct{})}, nil
}

// run ends with the program.
func (r *recording) run(t *Terminal) {
	defer close(r.done)
	res, err := t.record(context.Background(), r.f, RecordOptions{FromStart: true}, r.printed)
	if err == nil && res.Missed > 0 {
		err = fmt.Errorf("%d bytes are missing in it: the disk was slower than the program", res.Missed)
	}
	r.err = errors.Join(err, r.f.Close())
}

// recordingPatience is how long the end of a program is not told as its recording is not whole. The file may be on a disk that hangs.
const recordingPatience = 10 * time.Second

// finish waits until all is recorded that the program has printed, and returns what went wrong. It is for the end of the program.
func (r *recording) finish(patience time.Duration) error {
	close(r.printed)
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-r.done:
		return r.err
	case <-late.C:
		return fmt.Errorf("its end was not written within %v: the disk is slow, or does not answer", patience)
	}
}

// drop removes it: nothing was to be recorded.
func (r *recording) drop() {
	_ = r.f.Close()           // It is empty.
	_ = os.Remove(r.f.Name()) // Best effort: it is empty.
}
