package egress

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// tunnel tells the client that it is connected and carries bytes both ways,
// until both have ended, one fails, or nothing came for IdleTimeout.
func (c *client) tunnel(t target, upstream net.Conn, r io.Reader, connected []byte) {
	c.expect(c.p.o.HeaderTimeout)
	if _, err := c.conn.Write(connected); err != nil {
		return // It has gone.
	}
	if t.port == tlsPort && !c.p.rules.skipSNI {
		hello, ok := c.readHello(t, r)
		if !ok {
			return
		}
		r = io.MultiReader(bytes.NewReader(hello), r)
	}
	a := newActivity(c.p.o.IdleTimeout, c.conn, upstream)
	var up sync.WaitGroup
	up.Go(func() { a.carry(upstream, r) })
	a.carry(c.conn, upstream)
	up.Wait()
}

// activity keeps two connections from timing out while there is any on either.
type activity struct {
	idle  time.Duration
	conns [2]net.Conn

	mu       sync.Mutex
	finished bool
}

func newActivity(idle time.Duration, client, upstream net.Conn) *activity {
	a := &activity{idle: idle, conns: [2]net.Conn{client, upstream}}
	a.seen()
	return a
}

func (a *activity) seen() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.finished {
		a.deadline(a.idle)
	}
}

// finish ends what is under way, whatever is seen from now on.
func (a *activity) finish() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.finished = true
	a.deadline(0)
}

func (a *activity) deadline(d time.Duration) {
	end := time.Now().Add(d)
	for _, conn := range a.conns {
		_ = conn.SetDeadline(end) // Fails on a closed connection, as all else does.
	}
}

// reader reads r, which comes from one of the connections.
func (a *activity) reader(r io.Reader) io.Reader { return seenReader{a, r} }

type seenReader struct {
	a *activity
	r io.Reader
}

func (s seenReader) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	if n > 0 {
		s.a.seen()
	}
	return n, err
}

// carry carries one direction. Its end is passed on, and the other direction
// goes on; after an error there is no use in that.
func (a *activity) carry(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, a.reader(from))
	if err == nil && !errors.Is(closeWrite(to), errNoHalfClose) { // Else the other direction sees for itself.
		return
	}
	for _, conn := range a.conns {
		_ = conn.Close() // It is given up.
	}
}
