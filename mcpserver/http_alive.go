package mcpserver

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// liveWriter writes the answer to a request, which may be a stream of events, and has it
// say from time to time that it lives, by a comment (the HTML standard, "Server-sent
// events": "a comment line every 15 seconds or so"). The SDK sends nothing until there is
// something to tell, not even headers, and a command may be silent for an hour.
//
// The handler has a header of its own to write to: the SDK writes to it without a lock.
type liveWriter struct {
	to    http.ResponseWriter
	body  *endOfBody // of the request
	every time.Duration
	own   http.Header

	mu      sync.Mutex // for what follows, and for writes to to
	started bool       // the status was sent
	events  bool       // it is a stream of events
	framed  bool       // what is written is no event, and is made one
	ended   bool
	timer   *time.Timer
}

const eventStream = "text/event-stream"

func newLiveWriter(to http.ResponseWriter, body *endOfBody, every time.Duration) *liveWriter {
	w := &liveWriter{to: to, body: body, every: every, own: make(http.Header)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(every, w.live)
	return w
}

// live says that the stream lives.
func (w *liveWriter) live() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	defer w.timer.Reset(w.every)
	if !w.started {
		// Whoever does not answer a request that was read is at a call, and will
		// answer by events.
		if !w.body.ended.Load() {
			return
		}
		header := w.to.Header()
		header.Set("Content-Type", eventStream)
		header.Set("Cache-Control", "no-cache, no-transform")
		w.to.WriteHeader(http.StatusOK)
		w.started, w.events = true, true
	}
	if w.events {
		// A client that is gone is noticed by the server.
		_, _ = io.WriteString(w.to, ":\n\n")
		_ = http.NewResponseController(w.to).Flush()
	}
}

// end has it say nothing more. The answer is complete.
func (w *liveWriter) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.started {
		w.start(http.StatusOK)
	}
	w.ended = true
	w.timer.Stop()
}

func (w *liveWriter) Header() http.Header { return w.own }

func (w *liveWriter) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.start(status)
}

// start sends the status, with the headers. Where the stream has begun before an error was
// found it is too late for a status: then what comes is sent as an event, which means the
// same to a client.
func (w *liveWriter) start(status int) {
	if w.started {
		w.framed = w.events && !strings.HasPrefix(w.own.Get("Content-Type"), eventStream)
		return
	}
	header := w.to.Header()
	for name, values := range w.own {
		header[name] = values
	}
	w.to.WriteHeader(status)
	w.started, w.events = true, strings.HasPrefix(w.own.Get("Content-Type"), eventStream)
}

func (w *liveWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.started {
		w.start(http.StatusOK)
	}
	if !w.framed {
		return w.to.Write(p)
	}
	if _, err := io.WriteString(w.to, "event: message\ndata: "+strings.TrimSpace(string(p))+"\n\n"); err != nil {
		return 0, err
	}
	return len(p), nil
}

// FlushError is for http.ResponseController.
func (w *liveWriter) FlushError() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return http.NewResponseController(w.to).Flush()
}

// endOfBody is the body of a request, and knows when all of it was read.
type endOfBody struct {
	io.ReadCloser
	connection *http.ResponseController // nil in tests
	ended      atomic.Bool
}

func (b *endOfBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !b.ended.Swap(true) && b.connection != nil {
		_ = b.connection.SetReadDeadline(time.Time{}) // From here on it is heard whether the client hangs up.
	}
	return n, err
}
