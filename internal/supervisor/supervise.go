package supervisor

import (
	"bufio"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/rolling"
	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/internal/uptime"
	"github.com/limpet-sh/limpet/interrupt"
)

// The arguments are the job's directory, for people, and the number of files. Nobody
// else is meant: an argument that says so is no pipe.
func init() {
	const args = 3
	if len(os.Args) != args || os.Args[0] != argv0 || !isPipe(orderFD) || !isPipe(replyFD) {
		return
	}
	files, _ := strconv.Atoi(os.Args[2]) // None, if somebody else has named himself so.
	// What is the supervisor's is not for the job, and neither of them keeps what the program has itself inherited.
	proc.CloseInherited(orderFD, filesFD+files)
	if err := supervise(os.NewFile(orderFD, "order"), os.NewFile(replyFD, "reply")); err != nil {
		fmt.Fprintln(os.Stderr, argv0+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func isPipe(fd int) bool {
	var st syscall.Stat_t
	return syscall.Fstat(fd, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFIFO
}

// supervision is the whole of a supervisor's life: take the order, start the job,
// copy, wait, record.
type supervision struct {
	order    Order
	lifeline *bufio.Reader
	process  Process
	log      *rolling.Writer
	beat     *beat
	output   *output
	input    *input         // nil if the job cannot be written to
	waits    *waits         // nil if the job is on no terminal
	control  *drain         // of a fifo
	unheard  []byte         // of it: a part of a line
	signals  chan os.Signal // that tell it to end

	mu      sync.Mutex
	stopped string // why the job is being stopped

	once  sync.Once     // of end
	told  chan struct{} // closed when it is known how an adopted process ended
	ended chan Exit     // how the job itself ended; has one, once
	alone chan struct{} // closed when nothing that descends from the job is left
}

func supervise(orders, replies *os.File) error {
	s := &supervision{lifeline: bufio.NewReader(orders), signals: make(chan os.Signal, 1), told: make(chan struct{}), ended: make(chan Exit, 1), alone: make(chan struct{})}
	answer := func(r reply) error {
		defer replies.Close() // It says nothing else.
		return json.NewEncoder(replies).Encode(r)
	}
	// Paths and environments need not be UTF-8, as JSON must. A gob says how long it is,
	// so that the reader stops there.
	if err := gob.NewDecoder(s.lifeline).Decode(&s.order); err != nil {
		return fmt.Errorf("reading the order: %w", err)
	}
	signal.Notify(s.signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM)
	// What the program was started to ignore, under nohup for one, the job would: of what
	// is handled here, it gets the default. These are handled by nobody.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU, syscall.SIGCONT)
	if err := s.begin(); err != nil {
		s.fail(err)
		return answer(replyTo(err))
	}
	// It does not matter whether this arrives: without an acknowledgement the job is stopped.
	_ = answer(reply{Process: s.process})
	go s.minder()
	go s.control.run()
	return s.finish()
}

// replyTo says why the job could not be started.
func replyTo(err error) reply {
	r := reply{Err: err.Error()}
	if e, ok := errors.AsType[*os.PathError](err); ok {
		if errno, ok := errors.AsType[syscall.Errno](e.Err); ok {
			r.Err, r.Path, r.Errno = e.Op, e.Path, errno
		}
	}
	return r
}

// fail records that there is no job.
func (s *supervision) fail(err error) {
	exit := Exit{Code: -1, Failed: err.Error()}
	exit.EndedNow()
	_ = WriteExit(s.order.Dir, exit) // The program is told, too.
	if s.output != nil {
		s.output.close()
	}
	Tidy(s.order.Dir)
}

// begin makes what the supervisor needs and starts the job.
func (s *supervision) begin() (err error) {
	dir := s.order.Dir
	s.process = Process{Supervisor: selfID(), Boot: boot(), Namespace: namespace(), Started: time.Now(), StartedUp: uptime.Now()}
	if err = statedir.Reserve(dir, 0); err != nil { // For how the job has ended.
		return err
	}
	if s.log, err = rolling.NewWriter(filepath.Join(dir, LogDir), s.order.Keep); err != nil {
		return err
	}
	if s.beat, err = newBeat(filepath.Join(dir, BeatFile)); err != nil {
		return err
	}
	control, err := openOwnFIFO(filepath.Join(dir, ControlFile))
	if err != nil {
		return err
	}
	const size = 4 << 10
	s.control = newDrain(control, size, s.hear)
	becomeSubreaper()
	if s.order.Path == "" {
		return s.adopt()
	}
	return s.spawn()
}

func (s *supervision) record() error {
	if err := statedir.WriteJSON(filepath.Join(s.order.Dir, processFile), s.process); err != nil {
		return fmt.Errorf("writing down who runs: %w", err)
	}
	return nil
}

func selfID() proc.ID {
	id := proc.ID{PID: os.Getpid()}
	if st, err := proc.Read(id.PID); err == nil {
		id.Start = st.Start
	}
	return id
}

// minder stops the job when it is time to: nobody knows of it, the program that it was
// to live with is gone, its time is over, or the supervisor is told to end.
func (s *supervision) minder() {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		word, err := s.lifeline.ReadString('\n')
		if err == nil && word == acknowledged {
			_, _ = s.lifeline.ReadByte() // Nothing is said any more: this is the end of the program.
			if s.order.Detached {
				select {} // It makes no difference. The process ends with the job.
			}
		}
	}()
	var timeout <-chan time.Time
	if s.order.Timeout > 0 {
		timeout = time.After(s.order.Timeout)
	}
	for {
		select {
		case <-gone:
			gone = nil
			s.stop(ByProgram)
		case <-s.signals:
			s.stop(ByShutdown)
		case <-timeout:
			s.stop(ByTimeout)
		}
	}
}

// stop ends the job, and what it has left running.
func (s *supervision) stop(why string) {
	s.stopping(why)
	outcome := interrupt.Stop(s.order.Ladder, s.target())
	for _, left := range outcome.Left {
		fmt.Fprintf(os.Stderr, "%s: %s lives on\n", argv0, left)
	}
}

// stopping notes why the job is being stopped, if nobody has before.
func (s *supervision) stopping(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped == "" {
		s.stopped = why
	}
}

func (s *supervision) target() Target {
	return Target{Process: s.process, Mark: s.order.Mark, Over: s.alone}
}

// finish waits for the job's end, takes what it has printed by then, and records it.
// Then it goes on for what the job has left running.
func (s *supervision) finish() error {
	exit := <-s.ended
	s.waits.close()
	s.output.catchUp()
	s.listen() // Who stopped the job has said so before.
	s.mu.Lock()
	exit.Stopped = s.stopped
	s.mu.Unlock()
	exit.EndedNow()
	exit.Output, exit.Lost = s.output.written()
	err := s.recordExit(exit)
	s.beat.now()
	if s.input != nil {
		s.input.close()
	}
	<-s.alone
	if !reapsAll {
		<-s.output.over
	}
	s.output.catchUp()
	s.output.close()
	s.beat.now()
	Tidy(s.order.Dir)
	return err
}

// recordExit writes down how the job ended, however long the disk is full: nobody else
// knows.
func (s *supervision) recordExit(exit Exit) error {
	const pause, patience = time.Second, time.Hour
	for began := time.Now(); ; time.Sleep(pause) {
		err := WriteExit(s.order.Dir, exit)
		if err == nil || errors.Is(err, os.ErrNotExist) || time.Since(began) > patience {
			return err // If the directory is gone, nobody wants to know.
		}
	}
}
