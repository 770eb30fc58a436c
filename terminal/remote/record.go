package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/limpet-sh/limpet/terminal"
)

// Record writes a recording to w, whole lines as they come, until the program ends or ctx
// does. If the latter is the case, what is Missed in it is not known. Where the Way of the client Resumes, a
// connection that is lost does not end the recording: a marker says where that was, and then the screen is
// painted as it is when there is a connection again.
func (t *Terminal) Record(ctx context.Context, w io.Writer, o terminal.RecordOptions) (terminal.Recorded, error) {
	resp, err := t.record(ctx, o)
	if err != nil {
		return terminal.Recorded{}, unwrapCause(ctx, err)
	}
	r := &recording{t: t, w: w}
	o.FromStart = false // What is recorded is not recorded again.
	for tries := 0; ; {
		before := r.lines
		err := r.pass(ctx, resp)
		resp.Close()
		if err == nil {
			return r.done, nil
		}
		if r.lines > before {
			tries = 0
		}
		for resp = nil; resp == nil; {
			if !t.c.way.Resumes || !errors.Is(err, ErrUnreachable) || tries == len(resumePauses) || r.lines == 0 {
				return r.done, unwrapCause(ctx, err)
			}
			select {
			case <-time.After(resumePauses[tries]):
			case <-ctx.Done():
				return r.done, context.Cause(ctx)
			}
			tries++
			resp, err = t.record(ctx, o)
		}
	}
}

// record asks for the stream.
func (t *Terminal) record(ctx context.Context, o terminal.RecordOptions) (*opened, error) {
	query := url.Values{}
	if o.FromStart {
		query.Set("from_start", "1")
	}
	if o.Title != "" {
		query.Set("title", o.Title)
	}
	return t.c.open(ctx, "record", t.id, t.path("/record?"+query.Encode()))
}

// recording is one under way, over as many streams as it takes. Each of them is a recording of its own, which begins at 0 with a
// header and, but for one from the start, with a picture of the screen.
type recording struct {
	t     *Terminal
	w     io.Writer
	done  terminal.Recorded
	lines int // written, of all streams
	size  string

	// In seconds, as in the recording.
	started float64 // when the recording began, by the clock over there; 0: unknown
	last    float64 // of the last event
	came    time.Time
	base    float64 // what is added to the times of this stream
}

// pass passes on the lines of one stream. It returns nil behind the last one of the recording.
func (r *recording) pass(ctx context.Context, resp *opened) error {
	before, first := r.done, r.lines == 0
	in := bufio.NewReaderSize(resp.Body, 2*frameMax) // No recorder writes longer lines.
	for begun := false; ; begun = true {
		line, err := in.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return r.end(ctx, resp, before)
		case errors.Is(err, bufio.ErrBufferFull):
			return fault("record", r.t.id, errFrame)
		case err != nil && r.t.c.way.Resumes && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)):
			return fault("record", r.t.id, errCutOff) // The next request says whether the program is gone.
		case err != nil:
			return resp.broken(err)
		}
		switch {
		case begun:
			err = r.event(line, first)
		case first:
			_ = r.header(line) // It is passed on as it is.
			err = r.write(line)
		default:
			err = r.again(line)
		}
		if err != nil {
			return err
		}
	}
}

// end takes what the stream says of itself behind its last line. Without that it may have been cut off by what is between.
func (r *recording) end(ctx context.Context, resp *opened, before terminal.Recorded) error {
	text := resp.Trailer.Get(headRecorded)
	var done terminal.Recorded
	if text != "" && json.Unmarshal([]byte(text), &done) == nil { // If it makes no sense, there is what was counted.
		r.done.Bytes, r.done.Missed = before.Bytes+done.Bytes, before.Missed+done.Missed
	}
	if err := resp.failed(); err != nil {
		return err
	}
	if text == "" && r.t.c.way.Resumes {
		switch info, err := r.t.info(ctx); {
		case err != nil:
			return err
		case !info.State.Ended():
			return fault("record", r.t.id, errCutOff)
		}
	}
	return nil
}

// header reads the first line of a stream, and returns when it began and how large the screen was.
func (r *recording) header(line []byte) (head struct {
	Width     uint16  `json:"width"`
	Height    uint16  `json:"height"`
	Timestamp float64 `json:"timestamp"`
},
) {
	_ = json.Unmarshal(line, &head) // What it does not say is unknown.
	if r.lines == 0 {
		r.started, r.size, r.came = head.Timestamp, fmt.Sprintf("%dx%d", head.Width, head.Height), time.Now()
	}
	return head
}

// again goes on with a further stream, of which the header is no line of the recording. The marker says where something is missing. The
// picture that follows clears the screen.
func (r *recording) again(line []byte) error {
	head := r.header(line)
	r.base = r.last + time.Since(r.came).Seconds()
	// Of a recording from the start the last event may be long ago. The clock over there tells whole seconds alone.
	if by := head.Timestamp - r.started; r.started > 0 && by > r.base+1 {
		r.base = by
	}
	r.done.Gaps++
	if err := r.add("m", "the connection was lost here: what was printed until now is missing"); err != nil {
		return err
	}
	if size := fmt.Sprintf("%dx%d", head.Width, head.Height); head.Width > 0 && head.Height > 0 && size != r.size {
		r.size = size
		return r.add("r", size)
	}
	return nil
}

// add writes an event of our own, at the beginning of a stream.
func (r *recording) add(code, data string) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	r.last, r.came = r.base, time.Now()
	return r.write(fmt.Appendf(nil, "[%.6f,%q,%s]\n", r.base, code, text))
}

// event writes a line of a stream: of the first one as it is.
func (r *recording) event(line []byte, first bool) error {
	var parts []json.RawMessage
	var at float64
	var code, data string
	const fields = 3
	err := json.Unmarshal(line, &parts)
	known := err == nil && len(parts) == fields && json.Unmarshal(parts[0], &at) == nil && json.Unmarshal(parts[1], &code) == nil && json.Unmarshal(parts[2], &data) == nil
	if !known && !first {
		return fault("record", r.t.id, errFrame)
	}
	if known {
		r.last, r.came = r.base+at, time.Now()
	}
	if !first {
		line = fmt.Appendf(nil, "[%.6f,%s,%s]\n", r.last, parts[1], parts[2])
	}
	if err := r.write(line); err != nil {
		return err
	}
	switch code {
	case "o":
		r.done.Bytes += int64(len(data))
	case "r":
		r.size = data
	}
	return nil
}

func (r *recording) write(line []byte) error {
	if _, err := r.w.Write(line); err != nil {
		return &terminal.Error{Op: "record", ID: r.t.id, Err: err, Remedy: "what was written before can be played"}
	}
	r.lines++
	return nil
}
