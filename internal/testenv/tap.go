package testenv

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Tap is a unix socket at which each connection reaches a limpet connect of its own. It counts the requests that pass, and can hold up what
// passes, so that a test can tell how often a client waits for an answer without measuring a time.
type Tap struct {
	path string
	all  sync.WaitGroup

	mu       sync.Mutex
	change   *sync.Cond
	held     [2]bool
	requests int
	without  string                 // see Without
	cut      map[net.Conn]*exec.Cmd // the connections that there are
}

// The directions.
const (
	TapRequests = iota
	TapAnswers
)

// NewTap offers a program, which is a limpet connect, until the end of the test.
func NewTap(t testing.TB, program func() *exec.Cmd) *Tap {
	t.Helper()
	p := &Tap{path: filepath.Join(TempDir(t), "s"), cut: make(map[net.Conn]*exec.Cmd)}
	p.change = sync.NewCond(&p.mu)
	l, err := net.Listen("unix", p.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = l.Close() // It ends the Accept.
		p.Release(TapRequests)
		p.Release(TapAnswers)
		p.Cut()
		p.all.Wait()
	})
	p.all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if err := p.join(c, program()); err != nil {
				t.Error(err)
			}
		}
	})
	return p
}

// Target is what --on and host.ParseTarget take.
func (p *Tap) Target() string { return (&url.URL{Scheme: "unix", Path: p.path}).String() }

// Without has the limpet over there not say that it can do something, from the next connection on.
func (p *Tap) Without(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.without = what
}

// Hold has nothing pass in a direction until Release. What is read meanwhile is counted.
func (p *Tap) Hold(way int) { p.hold(way, true) }

// Release lets it pass again.
func (p *Tap) Release(way int) { p.hold(way, false) }

func (p *Tap) hold(way int, held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[way] = held
	p.change.Broadcast()
}

// Requests is how many requests there were, also those that are held.
func (p *Tap) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// Cut ends the connections that there are, and drops what is held of them.
func (p *Tap) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c, cmd := range p.cut {
		_ = c.Close()          // The client sees that.
		_ = cmd.Process.Kill() // It may have ended.
	}
	clear(p.cut)
	p.change.Broadcast()
}

// join carries both directions of a connection, beside the caller.
func (p *Tap) join(c net.Conn, cmd *exec.Cmd) error {
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.mu.Lock()
	p.cut[c] = cmd
	p.mu.Unlock()
	p.all.Go(func() {
		var both sync.WaitGroup
		both.Go(func() {
			p.carryRequests(c, in)
			_ = in.Close() // The program ends with that.
		})
		both.Go(func() {
			p.carryAnswers(c, out)
			_ = c.Close() // The client sees that.
		})
		both.Wait()
		p.mu.Lock()
		delete(p.cut, c)
		p.mu.Unlock()
		_ = cmd.Wait() // Some are killed.
	})
	return nil
}

// pass writes when nothing is held. It reports false if the connection was cut.
func (p *Tap) pass(c net.Conn, way int, to io.Writer, b []byte) bool {
	p.mu.Lock()
	for p.held[way] && p.cut[c] != nil {
		p.change.Wait()
	}
	cut := p.cut[c] == nil
	p.mu.Unlock()
	if cut {
		return false
	}
	_, err := to.Write(b)
	return err == nil
}

// carryRequests passes on the frames of HTTP/2 (RFC 9113, section 4.1).
func (p *Tap) carryRequests(c net.Conn, to io.Writer) {
	const (
		preface = len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
		head    = 9
		headers = 1 // the type of the frame that each request begins with
	)
	from := bufio.NewReader(c)
	b := make([]byte, preface)
	if _, err := io.ReadFull(from, b); err != nil || !p.pass(c, TapRequests, to, b) {
		return
	}
	for {
		b := make([]byte, head)
		if _, err := io.ReadFull(from, b); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(append([]byte{0}, b[:3]...)))
		if _, err := io.ReadFull(from, body); err != nil {
			return
		}
		if b[3] == headers {
			p.mu.Lock()
			p.requests++
			p.mu.Unlock()
		}
		if !p.pass(c, TapRequests, to, append(b, body...)) {
			return
		}
	}
}

// carryAnswers passes on the line that limpet connect begins with, and what comes then.
func (p *Tap) carryAnswers(c net.Conn, out io.Reader) {
	from := bufio.NewReader(out)
	hello, err := from.ReadString('\n')
	if err != nil {
		return
	}
	p.mu.Lock()
	if p.without != "" {
		hello = strings.Replace(hello, `"`+p.without+`"`, `"nothing"`, 1)
	}
	p.mu.Unlock()
	if !p.pass(c, TapAnswers, c, []byte(hello)) {
		return
	}
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		if n > 0 && !p.pass(c, TapAnswers, c, b[:n]) || err != nil {
			return
		}
	}
}
