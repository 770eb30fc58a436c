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
// [terminal.Viewer] it has to be closed.
type Viewer struct {
	id      string
	resp    *opened
	free    func() // frees what bounds the answer
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
	slow := time.AfterFunc(patience, func() { cancel(errSlow) })
	resp, err := t.c.open(ctx, "attach", t.id, t.path("/attach?offset="+strconv.FormatInt(offset, 10)))
	if err != nil {
		cancel(nil)
		return nil, err
	}
	if !slow.Stop() {
		resp.Close()
		return nil, fault("attach", t.id, errSlow)
	}
	v := &Viewer{
		id: t.id, resp: resp, free: func() { cancel(nil) }, next: resp.Number(headOffset), live: resp.Number(headEnd),
		frames: make(chan terminal.Chunk), done: make(chan struct{}),
	}
	v.reading.Go(v.read)
	return v, nil
}

// frameMax bounds what a server can make a client keep.
const frameMax = 1 << 20

// read reads one frame ahead: the rest waits where it is.
func (v *Viewer) read() {
	defer close(v.frames)
	for in := bufio.NewReader(v.resp.Body); ; {
		c, err := frame(in)
		if errors.Is(err, io.EOF) {
			if v.failed = v.resp.failed(); v.failed == nil {
				v.failed = io.EOF
			}
			return
		}
		if err != nil {
			v.failed = v.resp.broken(err)
			return
		}
		select {
		case v.frames <- c:
		case <-v.done:
			return
		}
	}
}

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
	if _, err := io.ReadFull(in, c.Data); err != nil {
		return c, io.ErrUnexpectedEOF
	}
	return c, nil
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
	return &terminal.Error{Op: "follow", ID: v.id, Err: fmt.Errorf("the viewer is %w", terminal.ErrClosed)}
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
		v.resp.Close()
		v.free()
	})
	v.reading.Wait()
	return nil
}
