package jobs

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/watch"
)

// WaitOptions say what to wait for. The end of one of the jobs always ends the wait.
type WaitOptions struct {
	// IDs are the jobs, of which any will do. None means all that have not finished
	// now.
	IDs []string `json:"ids,omitempty"`

	// Pattern is a regular expression (RE2) for a line of output, looked for in all
	// that is kept from offset From on. The last line counts when it has a newline, or
	// for a prompt, when the job has printed nothing for a moment.
	Pattern string `json:"pattern,omitempty"`
	From    int64  `json:"from,omitempty"`

	// Silence ends the wait when a job has printed nothing for so long.
	Silence time.Duration `json:"silence_ns,omitempty"`

	// Port ends the wait when somebody listens there: a number, on this machine, or
	// HOST:PORT. It need not be the job.
	Port string `json:"port,omitempty"`

	// Timeout ends the wait. 0, and what is larger, means Options.MaxWait: Waited
	// says so.
	Timeout time.Duration `json:"timeout_ns,omitempty"`
}

// WaitReason says why a wait has ended.
type WaitReason string

// The reasons.
const (
	WaitExited      WaitReason = "exited"
	WaitMatched     WaitReason = "matched"
	WaitSilent      WaitReason = "silent"
	WaitPort        WaitReason = "port open"
	WaitTimeout     WaitReason = "timeout"
	WaitInterrupted WaitReason = "interrupted"
)

// Waited says how a wait has ended.
type Waited struct {
	Reason WaitReason    `json:"reason"`
	Job    Job           `json:"job"`             // the one that ended it; else the first
	Match  *Match        `json:"match,omitempty"` // the line that was found
	Took   time.Duration `json:"took_ns"`

	// Timeout is how long it would have taken at most. Clamped says that it is
	// Options.MaxWait, though a longer one was asked for.
	Timeout time.Duration `json:"timeout_ns"`
	Clamped bool          `json:"clamped,omitempty"`
}

// Wait waits until one of the jobs has ended, or what else the options say has come, or
// for the timeout, which is no error. The error is [ErrInterrupted], or that of ctx, if
// it was interrupted, [ErrClosed] if the registry was closed, and [ErrNotFound] if a
// job is not there, also if it was forgotten meanwhile. A finished job that was waited
// for is not told as completed any more.
func (r *Registry) Wait(ctx context.Context, o WaitOptions) (Waited, error) {
	w := &waiting{r: r, o: o, began: time.Now()}
	defer w.close()
	if err := w.prepare(); err != nil {
		return Waited{}, err
	}
	if r.opts.Interrupts != nil {
		var free func()
		ctx, free = r.opts.Interrupts.Context(ctx)
		defer free()
	}
	timeout := time.NewTimer(w.result.Timeout)
	defer timeout.Stop()
	dials, cancel := context.WithTimeout(ctx, w.result.Timeout) // A port that does not answer holds nobody up.
	defer cancel()
	for {
		done, next, err := w.look(dials)
		if done || err != nil {
			return w.end(), err
		}
		tick := time.NewTimer(next)
		select {
		case <-w.news:
		case <-tick.C:
		case <-timeout.C:
			// Something may have come with it: that is more worth to be known.
			if done, _, err := w.look(dials); done || err != nil {
				return w.end(), err
			}
			w.result.Reason = WaitTimeout
			return w.end(), nil
		case <-ctx.Done():
			w.result.Reason = WaitInterrupted
			return w.end(), &Error{Op: "wait", Err: context.Cause(ctx)}
		case <-r.closing:
			return w.end(), &Error{Op: "wait", Err: errClosed}
		}
		tick.Stop()
	}
}

// waiting is a wait under way.
type waiting struct {
	r       *Registry
	o       WaitOptions
	began   time.Time
	pattern *regexp.Regexp
	port    string
	jobs    []*awaited
	news    chan struct{} // has a token when a job has something new
	quit    chan struct{}
	result  Waited

	listeners sync.WaitGroup
}

// awaited is one of the jobs.
type awaited struct {
	*job
	scanner
	watch *watch.Watch

	// Since when nothing was printed, by a clock that nobody sets; how much there was then; and when that was looked at.
	silent, looked time.Time
	printed        int64
}

// quiet returns for how long a job is silent. Its Quiet comes from the times of its log: if the clock is set during a wait it
// says a day, or nothing for a day.
func (a *awaited) quiet(job Job) time.Duration {
	now := time.Now()
	if first := a.looked.IsZero(); first || job.Output.End != a.printed {
		quiet := job.Quiet
		if !first {
			quiet = min(quiet, now.Sub(a.looked))
		}
		a.silent, a.printed = now.Add(-quiet), job.Output.End
	}
	a.looked = now
	return now.Sub(a.silent)
}

// prepare finds the jobs, and checks what is asked for.
func (w *waiting) prepare() (err error) {
	fail := func(err error, remedy string) error { return &Error{Op: "wait", Err: err, Remedy: remedy} }
	if w.o.Pattern != "" {
		if w.pattern, err = regexp.Compile(w.o.Pattern); err != nil {
			return fail(fmt.Errorf("pattern %q: %w", w.o.Pattern, err), "")
		}
	}
	if w.o.Port != "" {
		if w.port, err = address(w.o.Port); err != nil {
			return fail(err, "name a port as in 8080, or localhost:8080")
		}
	}
	if w.o.Silence < 0 || w.o.Timeout < 0 || w.o.From < 0 {
		return fail(errors.New("times and offsets cannot be negative"), "")
	}
	w.result.Timeout = w.o.Timeout
	if limit := w.r.opts.MaxWait; w.o.Timeout == 0 || w.o.Timeout > limit {
		w.result.Timeout, w.result.Clamped = limit, w.o.Timeout > limit
	}
	if len(w.o.IDs) == 0 {
		running, err := w.r.List(Filter{States: []State{Starting, Running, Ending}})
		if err != nil {
			return err
		}
		for _, job := range running {
			w.o.IDs = append(w.o.IDs, job.ID)
		}
		if len(w.o.IDs) == 0 {
			return fail(fmt.Errorf("%w that runs", ErrNotFound), "name one that has finished, or start one")
		}
	}
	w.news, w.quit = make(chan struct{}, 1), make(chan struct{})
	for _, id := range w.o.IDs {
		j, err := w.r.find("wait", id)
		if err != nil {
			return err
		}
		f, err := j.settled()
		if err != nil {
			return &Error{Op: "wait", ID: id, Err: j.unreadable(err)}
		}
		a := &awaited{job: j, scanner: scanner{at: w.o.From, line: f.lineOf(w.o.From)}, watch: watch.Shared.Watch(j.dir)}
		w.jobs = append(w.jobs, a)
		w.listeners.Go(func() { w.listen(a.watch) })
	}
	return nil
}

// listen passes the events of one job on to the wait.
func (w *waiting) listen(events *watch.Watch) {
	for {
		select {
		case <-events.C:
			select {
			case w.news <- struct{}{}:
			default: // It is awake.
			}
		case <-w.quit:
			return
		}
	}
}

func (w *waiting) close() {
	if w.quit != nil {
		close(w.quit)
	}
	w.listeners.Wait()
	for _, a := range w.jobs {
		a.watch.Close()
	}
}

// address makes HOST:PORT of what may be a number.
func address(port string) (string, error) {
	host, number := "localhost", port
	if strings.Contains(port, ":") {
		var err error
		if host, number, err = net.SplitHostPort(port); err != nil {
			return "", fmt.Errorf("port %q: %w", port, err)
		}
	}
	if n, err := strconv.ParseUint(number, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("port %q is no number from 1 to 65535", port)
	}
	return net.JoinHostPort(host, number), nil
}

// The pauses between two looks, where nothing tells that it is time for one.
const (
	portPause   = 50 * time.Millisecond
	promptPause = 200 * time.Millisecond // of silence make a prompt of a line without an end
)

// look reports whether the wait is over, and when to look again at the latest. ctx
// bounds the try of a port.
func (w *waiting) look(ctx context.Context) (done bool, next time.Duration, err error) {
	next = doubt
	for i, a := range w.jobs {
		f, err := a.settled()
		if err != nil {
			return false, 0, &Error{Op: "wait", ID: a.spec.ID, Err: a.unreadable(err)}
		}
		job := w.r.present(a.job, &f)
		if !job.State.Finished() {
			job.Quiet = a.quiet(job)
		}
		if i == 0 {
			w.result.Job = job
		}
		over := func(reason WaitReason) (bool, time.Duration, error) {
			w.result.Reason, w.result.Job = reason, job
			return true, 0, nil
		}
		if match, err := w.match(a, &f, &job); err != nil {
			return false, 0, &Error{Op: "wait", ID: a.spec.ID, Err: err}
		} else if match != nil {
			w.result.Match = match
			return over(WaitMatched)
		}
		if job.State.Finished() {
			return over(WaitExited)
		}
		if w.o.Silence > 0 {
			if job.Quiet >= w.o.Silence {
				return over(WaitSilent)
			}
			next = min(next, w.o.Silence-job.Quiet)
		}
		if w.pattern != nil && job.Quiet < promptPause {
			next = min(next, promptPause-job.Quiet)
		}
		if a.watch.Err != nil {
			next = min(next, w.r.opts.Poll)
		}
	}
	if w.port != "" {
		if w.answers(ctx) {
			w.result.Reason = WaitPort
			return true, 0, nil
		}
		next = min(next, portPause)
	}
	return false, max(next, time.Millisecond), nil
}

// match looks for the pattern in what is new.
func (w *waiting) match(a *awaited, f *files, job *Job) (found *Match, err error) {
	if w.pattern == nil {
		return nil, nil
	}
	check := func(m Match) bool {
		if text, ok := find(w.pattern, m.Text); ok {
			m.Text = text
			found = &m
		}
		return found == nil
	}
	if err := a.scan(f.log, job.State.Finished(), check); err != nil || found != nil {
		return found, err
	}
	if job.Quiet >= promptPause {
		prompt := a.scanner // More of the line may come: it is looked at again then.
		err = prompt.scan(f.log, true, check)
	}
	return found, err
}

// answers reports whether somebody listens at the port.
func (w *waiting) answers(ctx context.Context) bool {
	dialer := net.Dialer{Timeout: time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", w.port)
	if err != nil {
		return false
	}
	_ = conn.Close() // Nothing was said.
	return true
}

// end completes the result. Whoever was told of an end has seen it.
func (w *waiting) end() Waited {
	w.result.Took = time.Since(w.began)
	if w.result.Reason == WaitExited || w.result.Reason == WaitMatched {
		for _, a := range w.jobs {
			if a.spec.ID == w.result.Job.ID {
				w.r.saw(a.job, w.result.Job)
			}
		}
	}
	return w.result
}
