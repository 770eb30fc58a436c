package remote

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/terminal"
)

// Viewer follows what a program prints. It is for one goroutine, but for Close. Unlike a
// [terminal.Viewer] it has to be closed. Where the Way of its client Resumes, a connection that is lost
// does not end it.
type Viewer struct {
	t       *Terminal
	free    context.CancelCauseFunc // ends all requests
	next    int64
	live    int64
	frames  chan terminal.Chunk
	failed  error // why frames was closed
	done    chan struct{}
	closer  sync.Once
	reading sync.WaitGroup
}

// Attach returns a viewer that begins at an offset: see [terminal.Terminal.Attach].
func (t *Terminal) Attach(offset int64) (*Viewer, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	resp, err := t.attach(ctx, offset)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	v := &Viewer{
		t: t, free: cancel, next: resp.Number(headOffset), live: resp.Number(headEnd),
		frames: make(chan terminal.Chunk), done: make(chan struct{}),
	}
	next := v.next
	v.reading.Go(func() { v.read(ctx, resp, next) })
	return v, nil
}

// attach asks for the stream. ctx bounds all of it.
func (t *Terminal) attach(ctx context.Context, offset int64) (*opened, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	slow := time.AfterFunc(t.c.patience(), func() { cancel(errSlow) })
	resp, err := t.c.open(ctx, "attach", t.id, t.path("/attach?offset="+strconv.FormatInt(offset, 10)))
	if err == nil && !slow.Stop() {
		resp.Close()
		err = fault("attach", t.id, errSlow)
	}
	if err != nil {
		slow.Stop()
		cancel(nil)
		return nil, err
	}
	resp.free = func() { cancel(nil) }
	return resp, nil
}

// frameMax bounds what a server can make a client keep.
const frameMax = 1 << 20

// resumePauses are the pauses before a stream that broke off is asked for again; after the last one the viewer fails. The first byte
// of a new stream starts them over. While a Transport connects again, its calls wait.
var resumePauses = []time.Duration{0, 50 * time.Millisecond, 200 * time.Millisecond, time.Second, 2 * time.Second}

// read reads the stream to its end, over as many connections as that takes.
func (v *Viewer) read(ctx context.Context, resp *opened, next int64) {
	defer close(v.frames)
	for tries := 0; ; {
		before := next
		err := v.pass(ctx, resp, &next)
		resp.close()
		if next > before {
			tries = 0
		}
		for resp = nil; resp == nil; {
			if v.failed = err; !v.t.c.way.Resumes || !errors.Is(err, ErrUnreachable) || tries == len(resumePauses) {
				return
			}
			select {
			case <-time.After(resumePauses[tries]):
			case <-v.done:
				return
			}
			tries++
			resp, err = v.t.attach(ctx, next)
		}
	}
}

// pass passes on the frames of one connection. It reads one frame ahead: the rest waits in the other program. It returns io.EOF behind the
// last byte that the program printed, and nil if the viewer was closed.
func (v *Viewer) pass(ctx context.Context, resp *opened, next *int64) error {
	for in := bufio.NewReader(resp.Body); ; {
		c, err := frame(in)
		if errors.Is(err, io.EOF) {
			return v.end(ctx, resp)
		}
		if errors.Is(err, io.ErrUnexpectedEOF) && v.t.c.way.Resumes { // The next request says whether the program is gone.
			return fault("attach", v.t.id, errCutOff)
		}
		if err != nil {
			return resp.broken(err)
		}
		select {
		case v.frames <- c:
			*next = c.Offset + int64(len(c.Data))
		case <-v.done:
			return nil
		}
	}
}

// end returns why a stream ended. An older program in between passes no trailer on, in which an error would be: so end asks whether the
// program on the terminal has ended.
func (v *Viewer) end(ctx context.Context, resp *opened) error {
	if err := resp.failed(); err != nil {
		return err
	}
	if v.t.c.way.Resumes {
		switch info, err := v.t.info(ctx); {
		case err != nil:
			return err
		case !info.State.Ended():
			return fault("attach", v.t.id, errCutOff)
		}
	}
	return io.EOF
}

var errCutOff = fmt.Errorf("%w: what it prints was cut off", ErrUnreachable)

func frame(in *bufio.Reader) (c terminal.Chunk, err error) {
	const most = 3*20 + 1
	head := make([]byte, 0, most)
	for len(head) == 0 || head[len(head)-1] != '\n' {
		b, err := in.ReadByte()
		if err != nil {
			if len(head) > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return c, err
		}
		if head = append(head, b); len(head) > most {
			return c, errFrame
		}
	}
	size := 0
	if _, err := fmt.Sscanf(string(head), "%d %d %d\n", &c.Offset, &c.Missed, &size); err != nil || size < 0 || size > frameMax {
		return c, errFrame
	}
	c.Data = make([]byte, size)
	_, err = io.ReadFull(in, c.Data)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return c, err
}

var errFrame = errors.New("what is streamed makes no sense")

// Next waits for output, and returns it: see [terminal.Viewer.Next]. It can be called again
// when ctx has ended.
func (v *Viewer) Next(ctx context.Context) (terminal.Chunk, error) {
	select {
	case <-v.done:
		return terminal.Chunk{}, v.closed()
	default:
	}
	select {
	case c, ok := <-v.frames:
		if !ok {
			return terminal.Chunk{}, v.failed
		}
		v.next = c.Offset + int64(len(c.Data))
		return c, nil
	case <-v.done:
		return terminal.Chunk{}, v.closed()
	case <-ctx.Done():
		return terminal.Chunk{}, context.Cause(ctx)
	}
}

func (v *Viewer) closed() error {
	return &terminal.Error{Op: "follow", ID: v.t.id, Err: fmt.Errorf("the viewer is %w", terminal.ErrClosed)}
}

// Snapshot is where what was printed before the Attach ends, and what came since begins.
func (v *Viewer) Snapshot() int64 { return v.live }

// Offset is that of the next byte.
func (v *Viewer) Offset() int64 { return v.next }

// Close ends a Next that waits, and the connection. It is safe to call twice, and from
// anywhere.
func (v *Viewer) Close() error {
	v.closer.Do(func() {
		close(v.done)
		v.free(nil)
	})
	v.reading.Wait()
	return nil
}
