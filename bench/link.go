package main

import (
	"context"
	"net"
	"sync"
	"time"
)

// link is a port of this machine that leads to another one, on which every byte comes later by delay, each way. No byte is lost, and
// any number may be under way. It stands in for the kernel's netem, which needs root and a module.
type link struct {
	listener net.Listener
	to       string
	delay    time.Duration
	end      context.CancelFunc
	all      sync.WaitGroup
}

// newLink begins one to a port. Close it.
func newLink(port string, delay time.Duration) (*link, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	ctx, end := context.WithCancel(context.Background())
	l := &link{listener: listener, to: net.JoinHostPort("127.0.0.1", port), delay: delay, end: end}
	l.all.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return // It is closed.
			}
			l.all.Go(func() { l.join(ctx, near) })
		}
	})
	return l, nil
}

func (l *link) port() string {
	_, port, _ := net.SplitHostPort(l.listener.Addr().String()) // It has one.
	return port
}

// close ends all connections, and waits for what carries them.
func (l *link) close() {
	_ = l.listener.Close() // It is the end of it.
	l.end()
	l.all.Wait()
}

// join carries both directions of a connection until one of them ends.
func (l *link) join(ctx context.Context, near net.Conn) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	far, err := net.Dial("tcp", l.to)
	if err != nil {
		_ = near.Close() // The client sees that.
		return
	}
	context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() }) // Nobody waits for what they still have.
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			defer end()
			l.carry(way[0], way[1])
		})
	}
	both.Wait()
}

// carry reads at once, and writes when it is due.
func (l *link) carry(from, to net.Conn) {
	const (
		most  = 64 << 10
		queue = 4096 // with most more than any window has room for
	)
	type piece struct {
		bytes []byte
		due   time.Time
	}
	pieces := make(chan piece, queue)
	var writing sync.WaitGroup
	defer writing.Wait()
	defer close(pieces)
	writing.Go(func() {
		var failed error
		for p := range pieces {
			if time.Sleep(time.Until(p.due)); failed == nil {
				_, failed = to.Write(p.bytes)
			}
		}
	})
	buffer := make([]byte, most)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			pieces <- piece{append([]byte(nil), buffer[:n]...), time.Now().Add(l.delay)}
		}
		if err != nil {
			return
		}
	}
}
