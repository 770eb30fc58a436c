package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/connect"
	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/pipe"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/internal/socket"
	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/internal/wire"
)

// A program that has made a connection is executed again under this name, to keep it, and is entered here.
func init() {
	const args = 2
	if len(os.Args) != args || os.Args[0] != argv0 {
		return
	}
	if err := keep(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// The descriptors of a process that keeps a connection.
const (
	listenerFD = 3 + iota
	inFD       // of the command that reaches the machine
	outFD
	stderrFD
	endFD
)

// shared keeps a connection.
type shared struct {
	dir    string
	record sharedRecord
	http   *http.ClientConn
	conn   *pipe.Conn
	told   chan struct{} // closed when nobody can join any more, and it is written why
	ends   temporaries

	mu     sync.Mutex
	active int // requests that are under way
	having int // programs that have sessions which end with them
	timer  *time.Timer
	idle   chan struct{} // closed when nobody has used it for long enough
}

// keep keeps the connection of a directory, until it is lost, or nobody has used it for a while.
func keep(dir string) error {
	s := &shared{dir: dir, idle: make(chan struct{}), told: make(chan struct{})}
	if err := statedir.ReadJSON(filepath.Join(dir, recordFile), &s.record, mostRecord); err != nil {
		return err
	}
	listener, err := net.FileListener(os.NewFile(listenerFD, "listener"))
	if err != nil {
		return err
	}
	if l, ok := listener.(*net.UnixListener); ok {
		l.SetUnlinkOnClose(false) // It would remove the name that it knows.
	}
	proc.CloseInherited(listenerFD, endFD)
	var files [3]*os.File
	for i, fd := range []int{inFD, outFD, stderrFD} {
		if err := unix.SetNonblock(fd, true); err != nil {
			return err
		}
		files[i] = os.NewFile(uintptr(fd), "pipe")
	}
	var said noise
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(&said, files[2]) // It ends with the command, or below.
	}()
	own, err := os.Lstat(filepath.Join(dir, socketFile))
	if err != nil {
		return err // Another connection is made already: this one was too slow.
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT) // Nobody who means the connection sends such.
	conn := pipe.New(nil, files[1], files[0], pipe.Times{})
	s.conn = conn
	if s.http, err = pipe.Client(context.Background(), conn); err != nil {
		return err
	}
	s.timer = time.AfterFunc(s.record.Idle, s.check)
	s.ends = temporaries{ask: asking(s.http), used: func(delta int) { s.use(0, delta) }, of: make(map[proc.ID]map[string]bool)}
	server := socket.NewServer(s, wire.Refuse)
	server.Serve(listener)

	select {
	case <-conn.Done():
	case <-s.idle:
	case <-signals:
	}
	if now, err := os.Lstat(filepath.Join(dir, socketFile)); err == nil && os.SameFile(own, now) { // Else it is that of the next connection.
		_ = os.Remove(filepath.Join(dir, socketFile)) // First: nobody else comes.
	}
	if lost := conn.Err(); lost != nil {
		_ = statedir.Write(filepath.Join(dir, whyFile), []byte(s.ended(lost, &said).Error())) // For people.
	}
	close(s.told)
	server.Close(errClosed)
	_ = conn.Close() // It has nothing to say.
	s.end()
	_ = files[2].Close() // Read only.
	<-drained
	return nil
}

// ended says why the connection is lost.
func (s *shared) ended(why error, said *noise) error {
	const soon = 100 * time.Millisecond
	if s.record.Process == (proc.ID{}) {
		return lostBy(why, s.record.Name)
	}
	proc.WaitAny([]proc.ID{s.record.Process}, soon)
	if st, err := proc.Read(s.record.Process.PID); err != nil || st.ID() != s.record.Process || st.Zombie() {
		why = fmt.Errorf("%s has ended", s.record.Name)
	} else {
		why = lostBy(why, s.record.Name)
	}
	if text := said.String(); text != "" {
		why = fmt.Errorf("%w; it said: %s", why, text)
	}
	return why
}

// end ends the command that reached the machine, if one does, which is helped along if it does not end with its pipes.
func (s *shared) end() {
	if s.record.Process == (proc.ID{}) {
		return
	}
	proc.WaitAny([]proc.ID{s.record.Process}, leavePatience)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		if proc.Signal(s.record.Process, sig) != nil {
			return // It has.
		}
		proc.WaitAny([]proc.ID{s.record.Process}, termPatience)
	}
}

// use counts those that use the connection.
func (s *shared) use(requests, programs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active += requests
	s.having += programs
	if s.active+s.having == 0 {
		s.timer.Reset(s.record.Idle)
	}
}

// check ends the connection if nobody uses it.
func (s *shared) check() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.active+s.having == 0 {
		s.over()
	}
}

// over ends the connection. The caller holds mu.
func (s *shared) over() {
	select {
	case <-s.idle:
	default:
		close(s.idle)
	}
}

// bodies are for those of requests: a file that is copied has many.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const mostPooled = 1 << 20

// sending is a body that notes when it was read to its end.
type sending struct {
	io.ReadCloser
	whole atomic.Bool
}

func (s *sending) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		s.whole.Store(true)
	}
	return n, err
}

// ServeHTTP passes requests on to the limpet at the other end, and the answers back.
func (s *shared) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.use(1, 0)
	defer s.use(-1, 0)
	body := bodies.Get().(*bytes.Buffer)
	sent := &sending{}
	defer func() {
		if sent.whole.Load() && body.Cap() <= mostPooled { // Else somebody may still read it.
			clear(body.Bytes()) // An answer to a question may be a password.
			bodies.Put(body)
		}
	}()
	err := jsonhttp.BodyInto(w, r, wire.MostBody, body)
	if err != nil {
		wire.Answer(w, nil, err)
		return
	}
	if s.conn.Err() != nil {
		s.abort() // It is about to end.
	}
	switch r.Method + " " + r.URL.Path {
	case "GET /v1/shared":
		s.mu.Lock()
		now := sharedNow{s.record, s.active - 1}
		s.mu.Unlock()
		wire.Answer(w, now, nil)
		return
	case "POST /v1/shared/end":
		s.mu.Lock()
		s.over()
		s.mu.Unlock()
		wire.Answer(w, struct{}{}, nil)
		return
	}
	ask, err := http.NewRequestWithContext(r.Context(), r.Method, "http://limpet"+r.URL.RequestURI(), bytes.NewReader(body.Bytes()))
	if err != nil {
		wire.Answer(w, nil, err)
		return
	}
	if questions.Answers(ask) && questions.Within(socket.RequestPID(r.Context())) {
		wire.Answer(w, questions.Refused(questions.ErrWithin), nil)
		return
	}
	if body.Len() > 0 {
		sent.ReadCloser = ask.Body
		ask.Body, ask.GetBody = sent, nil
	}
	if id := r.Header.Get(connect.HeadSession); id != "" {
		ask.Header.Set(connect.HeadSession, id)
	}
	undo, alive := s.ends.note(r, socket.RequestPID(r.Context()))
	if !alive {
		s.abort()
	}
	resp, err := s.http.RoundTrip(ask)
	if err != nil {
		s.abort()
	}
	defer resp.Body.Close()                                          // It is read, or not wanted.
	if undo != nil && r.Method == http.MethodPut && wasThere(resp) { // It does not end with a program that has not made it.
		undo()
	}
	if !jsonhttp.Relay(w, resp) {
		s.abort()
	}
	closed := resp.StatusCode == http.StatusOK && strings.HasPrefix(r.URL.Path, "/v1"+keptPath) && strings.HasSuffix(r.URL.Path, closePath)
	if closed || resp.Trailer.Get(connect.HeadClosed) != "" {
		s.ends.forget(sessionOf(r))
	}
}

// abort has a program see that there is no answer, or that it is not whole. If the connection is lost the program can read why then.
func (s *shared) abort() {
	if s.conn.ErrOf(s.http) != nil {
		const patience = time.Second
		select {
		case <-s.told:
		case <-time.After(patience):
		}
	}
	panic(http.ErrAbortHandler)
}
