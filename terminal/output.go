package terminal

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/terminal/screen"
)

// drain reads what the program prints, until hangUp. It waits for nobody: what somebody
// wants to do with the output, they do with the ring.
func (p *program) drain() {
	defer close(p.read)
	for {
		room := p.out.room()
		n, err := p.master.Read(room)
		if n > 0 {
			p.took(room[:n])
		}
		if err != nil {
			break // That of hangUp. As long as the slave is open there is no other.
		}
	}
	p.drainRest()
}

// rest bounds what is read of a program that has ended: something that it has left might
// still print.
const rest = 1 << 20

// drainRest reads what there is, without waiting. The kernel delivers what it has before
// it says that there is no more (n_tty_read, drivers/tty/n_tty.c).
func (p *program) drainRest() {
	_ = p.master.SetReadDeadline(time.Time{}) // It can have deadlines.
	conn, err := p.master.SyscallConn()
	if err != nil {
		return
	}
	for total := 0; total < rest; {
		room := p.out.room()
		n := 0
		err := conn.Read(func(fd uintptr) bool {
			for {
				if n, err = syscall.Read(int(fd), room); !errors.Is(err, syscall.EINTR) {
					return true
				}
			}
		})
		if n <= 0 || err != nil {
			return
		}
		p.took(room[:n])
		total += n
	}
}

// hangUp has the reader read what is left, and waits for it. The program has ended.
func (p *program) hangUp() {
	_ = p.master.SetReadDeadline(time.Unix(1, 0)) // As above.
	<-p.read
	for _, f := range []*os.File{p.slave, p.master} {
		_ = f.Close() // Nothing is buffered.
	}
	p.replies.Wait() // The one that writes an answer has an error now.
}

// epoch has a monotonic clock: somebody may set the other one.
var epoch = time.Now().Add(-time.Second)

// took puts what was read where it can be seen, and answers what a program asks its
// terminal.
func (p *program) took(data []byte) {
	now := time.Now()
	if size := p.resized.Swap(nil); size != nil {
		p.scan.Resize(*size)
	}
	var asked []screen.Query
	p.scan.Scan(data, func(q screen.Query) {
		if len(asked) < mostQueries {
			asked = append(asked, q)
		}
	})
	modes := p.scan.Modes()
	var known *screen.Modes
	if p.scan.Ground() {
		known = &modes
	}
	p.mu.Lock()
	p.modes = modes
	p.mu.Unlock()
	start := p.out.end // Nobody else writes it.
	p.display.history.printed(start, now)
	p.lastOutput.Store(int64(now.Sub(epoch)))
	var answers [][]byte
	committed := 0
	if len(asked) > 0 {
		answers, committed = p.answersTo(asked)
	}
	p.out.commit(len(data)-committed, known)
	if end := start + int64(len(data)); end >= p.feedAt {
		if p.display.feedAhead() {
			p.feedAt = end + p.out.limit/2
		}
	}
	p.answer(answers)
}

// mostQueries bounds what one read may ask for.
const mostQueries = 64

// Chunk is consecutive output.
type Chunk struct {
	Offset int64  // of the first byte
	Data   []byte // raw; not to be changed: others see it, too
	Missed int64  // bytes right before it that the caller should have got, and that are not kept any more
}

// Output returns what is kept of the output from an offset on, at most so many bytes, and
// does not wait for more. A negative offset counts from the end. Without Data there is no
// more now. It is an error of a terminal that another program has.
func (t *Terminal) Output(from int64, most int) (Chunk, error) {
	d, err := t.seen("output")
	if err != nil {
		return Chunk{}, err
	}
	return output(d, from, most), nil
}

func output(d *display, from int64, most int) Chunk {
	if from < 0 {
		start, end := d.out.bounds()
		from = max(end+from, start)
	}
	var c Chunk
	for c.Offset = from; len(c.Data) < most; {
		at, data, _ := d.out.read(from)
		if len(data) == 0 || at > from && len(c.Data) > 0 {
			break // What was dropped meanwhile is for the next call to tell.
		}
		if len(c.Data) == 0 {
			c.Offset, c.Missed = at, at-from
		}
		data = data[:min(len(data), most-len(c.Data))]
		c.Data = append(c.Data, data...)
		from = at + int64(len(data))
	}
	if len(c.Data) == 0 {
		_, end := d.out.bounds()
		c.Offset = min(c.Offset, end)
	}
	return c
}
