package wire

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"slices"
	"syscall"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/terminal"
)

// failure is the body of an answer that is an error: its text and what it is for errors.Is, for
// who reads JSON, and the tree of it, from which a client makes the error again.
type failure struct {
	Error string   `json:"error"`
	Is    []string `json:"is,omitempty"`
	Tree  *node    `json:"tree,omitempty"`

	// Value is what was done all the same.
	Value json.RawMessage `json:"value,omitempty"`
}

// node is an error on its way. An error is a tree: what it wraps are its branches.
type node struct {
	Text string          `json:"text"`
	Is   []string        `json:"is,omitempty"` // the sentinels that it is itself
	Kind string          `json:"kind,omitempty"`
	Of   json.RawMessage `json:"of,omitempty"` // the fields of that kind
	Join bool            `json:"join,omitempty"`

	Wraps []*node `json:"wraps,omitempty"`
}

// mostBranches bounds the errors of one error, and how deep they go.
const mostBranches = 100

// sentinels are the errors that keep their identity, by their names in the protocol.
var sentinels = []struct {
	name   string
	err    error
	status int // of the answer
}{
	{"not_found", session.ErrNotFound, http.StatusNotFound},
	{"exists", session.ErrExists, http.StatusConflict},
	{"name", session.ErrName, http.StatusBadRequest},
	{"too_many_sessions", session.ErrTooMany, http.StatusConflict},
	{"state_changed", session.ErrStateChanged, http.StatusConflict},
	{"closed", interrupt.ErrClosed, http.StatusServiceUnavailable},
	{"timeout", interrupt.ErrTimeout, http.StatusConflict},
	{"idle", interrupt.ErrIdle, http.StatusConflict},
	{"interrupted", interrupt.ErrInterrupted, http.StatusConflict},
	{"busy", shell.ErrBusy, http.StatusConflict},
	{"gone", shell.ErrGone, http.StatusConflict},
	{"handed_over", shell.ErrHandedOver, http.StatusConflict},
	{"nothing_runs", shell.ErrNothingRuns, http.StatusConflict},
	{"empty_script", command.ErrEmptyScript, http.StatusBadRequest},
	{"nul", command.ErrNUL, http.StatusBadRequest},
	{"hand_over", command.ErrHandOver, http.StatusBadRequest},
	{"readonly", command.ErrReadonly, http.StatusBadRequest},
	{"no_assignment", command.ErrNoAssignment, http.StatusBadRequest},
	{"no_identifier", command.ErrNoIdentifier, http.StatusBadRequest},
	{"nul_in_value", command.ErrNULInValue, http.StatusBadRequest},
	{"omitted", command.ErrOmitted, http.StatusConflict},
	{"deleted", ipc.ErrDeleted, http.StatusConflict},
	{"unknown", ErrUnknown, http.StatusNotFound},
	{"other_command", ErrOtherCommand, http.StatusConflict},
	{"may_have_run", ErrMayHaveRun, http.StatusConflict},
	{"may_have_started", ErrMayHaveStarted, http.StatusConflict},
	{"id", command.ErrID, http.StatusBadRequest},
	{"program_gone", ErrGone, http.StatusServiceUnavailable},
	{"attached", ErrAttached, http.StatusConflict},
	{"moved", ErrMoved, http.StatusConflict},
	{"would_lose", ErrWouldLose, http.StatusConflict},
	{"too_large", ErrTooLarge, http.StatusRequestEntityTooLarge},
	{"job_not_found", jobs.ErrNotFound, http.StatusNotFound},
	{"job_finished", jobs.ErrFinished, http.StatusConflict},
	{"job_running", jobs.ErrRunning, http.StatusConflict},
	{"job_not_possible", jobs.ErrNotPossible, http.StatusConflict},
	{"job_owned", jobs.ErrOwned, http.StatusConflict},
	{"too_many_jobs", jobs.ErrTooMany, http.StatusConflict},
	{"job_not_read", jobs.ErrNotRead, http.StatusConflict},
	{"terminal_not_found", terminal.ErrNotFound, http.StatusNotFound},
	{"terminal_nothing_to_run", terminal.ErrNothingToRun, http.StatusBadRequest},
	{"terminal_no_program", terminal.ErrNoProgram, http.StatusBadRequest},
	{"terminal_size", terminal.ErrSize, http.StatusBadRequest},
	{"too_many_terminals", terminal.ErrTooMany, http.StatusConflict},
	{"sandbox_no_policy", sandbox.ErrNoPolicy, http.StatusConflict},
	{"sandbox_no_workspace", sandbox.ErrNoWorkspace, http.StatusConflict},
	{"sandbox_bad_workspace", sandbox.ErrBadWorkspace, http.StatusConflict},
	{"sandbox_no_backend", sandbox.ErrNoBackend, http.StatusConflict},
	{"sandbox_untrusted_backend", sandbox.ErrUntrustedBackend, http.StatusConflict},
	{"sandbox_old_backend", sandbox.ErrOldBackend, http.StatusConflict},
	{"sandbox_userns", sandbox.ErrUserns, http.StatusConflict},
	{"sandbox_netns", sandbox.ErrNetns, http.StatusConflict},
	{"sandbox_proxy", sandbox.ErrProxy, http.StatusConflict},
	{"sandbox_proc", sandbox.ErrProc, http.StatusConflict},
	{"sandbox_mount", sandbox.ErrMount, http.StatusConflict},
	{"sandbox_protect", sandbox.ErrProtect, http.StatusConflict},
	{"sandbox_seccomp", sandbox.ErrSeccomp, http.StatusConflict},
	{"sandbox_exec", sandbox.ErrExec, http.StatusConflict},
	{"sandbox_start_timeout", sandbox.ErrStartTimeout, http.StatusConflict},
	{"sandbox_drift", sandbox.ErrDrift, http.StatusConflict},
	{"sandbox_violation", sandbox.ErrViolation, http.StatusConflict},
	{"sandbox_limits", sandbox.ErrLimits, http.StatusConflict},
	{"sandbox_run_as", sandbox.ErrRunAs, http.StatusConflict},
	{"sandbox_widen", sandbox.ErrWiden, http.StatusConflict},
	{"sandbox_unsupported", sandbox.ErrUnsupported, http.StatusConflict},
	{"canceled", context.Canceled, http.StatusConflict},
	{"deadline", context.DeadlineExceeded, http.StatusConflict},

	// What systems say, by its name: the numbers are those of each.
	{"ENOENT", syscall.ENOENT, http.StatusBadRequest},
	{"EACCES", syscall.EACCES, http.StatusBadRequest},
	{"EPERM", syscall.EPERM, http.StatusBadRequest},
	{"EEXIST", syscall.EEXIST, http.StatusBadRequest},
	{"ENOTDIR", syscall.ENOTDIR, http.StatusBadRequest},
	{"EISDIR", syscall.EISDIR, http.StatusBadRequest},
	{"ENOSPC", syscall.ENOSPC, http.StatusInsufficientStorage},
	{"EDQUOT", syscall.EDQUOT, http.StatusInsufficientStorage},
	{"EROFS", syscall.EROFS, http.StatusInsufficientStorage},
	{"EMFILE", syscall.EMFILE, http.StatusServiceUnavailable},
	{"ENFILE", syscall.ENFILE, http.StatusServiceUnavailable},
	{"ENOMEM", syscall.ENOMEM, http.StatusServiceUnavailable},
	{"EAGAIN", syscall.EAGAIN, http.StatusServiceUnavailable},
	{"EPIPE", syscall.EPIPE, http.StatusConflict},
	{"not_exist", fs.ErrNotExist, http.StatusBadRequest},
	{"permission", fs.ErrPermission, http.StatusBadRequest},
}

// kind is a type of errors that keeps its type.
type kind struct {
	name string

	// take returns the fields of an error of the type, with what it wraps; false: it is of
	// another type.
	take func(err error) (of any, wraps []error, ok bool)

	// make makes the error again.
	make func(of json.RawMessage, wraps []error) (error, error)
}

// kindOf describes a type by its fields on the wire.
func kindOf[E error, F any](name string, take func(E) (F, []error), build func(F, error) E) kind {
	return kind{
		name: name,
		take: func(err error) (any, []error, bool) {
			e, ok := err.(E) // Not what it wraps.
			if !ok {
				return nil, nil, false
			}
			of, wraps := take(e)
			return of, wraps, true
		},
		make: func(raw json.RawMessage, wraps []error) (error, error) {
			var of F
			if err := json.Unmarshal(raw, &of); err != nil {
				return nil, err
			}
			var wrapped error
			if len(wraps) > 0 {
				wrapped = wraps[0]
			}
			return build(of, wrapped), nil
		},
	}
}

// about are the fields of errors that say what could not be done, with what.
type about struct {
	Op     string `json:"op"`
	With   string `json:"with,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// ended are those of a process that did.
type ended struct {
	Argv   []string `json:"argv,omitempty"`
	Code   int      `json:"code"`
	Signal int      `json:"signal,omitempty"`
	Said   string   `json:"said,omitempty"`
	Why    string   `json:"why,omitempty"`
}

// named are those of errors about one thing.
type named struct {
	Name   string `json:"name,omitempty"`
	Number int    `json:"number,omitempty"`
}

// stopped are those of a command that was.
type stopped struct {
	Outcome    outcome `json:"outcome"`
	NothingRan bool    `json:"nothing_ran,omitempty"`
	Context    string  `json:"context,omitempty"`
}

// refused are those of a sandbox's.
type refused struct {
	Detail string `json:"detail"`
	Hint   string `json:"hint,omitempty"`
	Said   string `json:"said,omitempty"`
}

var kinds = []kind{
	kindOf("session", func(e *session.Error) (about, []error) { return about{e.Op, e.Session, e.Remedy}, []error{e.Err} },
		func(f about, err error) *session.Error {
			return &session.Error{Op: f.Op, Session: f.With, Err: err, Remedy: f.Remedy}
		}),
	kindOf("jobs", func(e *jobs.Error) (about, []error) { return about{e.Op, e.ID, e.Remedy}, []error{e.Err} },
		func(f about, err error) *jobs.Error {
			return &jobs.Error{Op: f.Op, ID: f.With, Err: err, Remedy: f.Remedy}
		}),
	kindOf("terminal", func(e *terminal.Error) (about, []error) { return about{e.Op, e.ID, e.Remedy}, []error{e.Err} },
		func(f about, err error) *terminal.Error {
			return &terminal.Error{Op: f.Op, ID: f.With, Err: err, Remedy: f.Remedy}
		}),
	kindOf("background", func(e *session.BackgroundError) (jobs.Job, []error) { return e.Job, []error{e.Cause} },
		func(job jobs.Job, err error) *session.BackgroundError {
			return &session.BackgroundError{Job: job, Cause: err}
		}),
	kindOf("stopped", func(e *interrupt.Error) (stopped, []error) {
		f := stopped{Outcome: outcomeOf(e.Outcome), NothingRan: e.NothingRan}
		if e.Context != nil {
			f.Context = e.Context.Error()
		}
		return f, []error{e.Cause}
	}, func(f stopped, err error) *interrupt.Error {
		e := &interrupt.Error{Cause: err, Outcome: f.Outcome.value(), NothingRan: f.NothingRan}
		for _, ended := range []error{context.Canceled, context.DeadlineExceeded} {
			if f.Context == ended.Error() {
				e.Context = ended
			}
		}
		return e
	}),
	kindOf("ended", func(e *EndedError) (ended, []error) { return ended{Code: e.Code}, nil },
		func(f ended, _ error) *EndedError { return &EndedError{Code: f.Code} }),
	kindOf("dead", func(e *shell.DeadError) (ended, []error) {
		return ended{e.Argv, e.Code, int(e.Signal), e.Said, e.Reason}, nil
	}, func(f ended, _ error) *shell.DeadError {
		return &shell.DeadError{Argv: f.Argv, Code: f.Code, Signal: syscall.Signal(f.Signal), Said: f.Said, Reason: f.Why}
	}),
	kindOf("start", func(e *shell.StartError) (ended, []error) {
		return ended{e.Argv, e.Code, int(e.Signal), e.Said, e.Remedy}, []error{e.Err}
	}, func(f ended, err error) *shell.StartError {
		return &shell.StartError{Argv: f.Argv, Code: f.Code, Signal: syscall.Signal(f.Signal), Said: f.Said, Err: err, Remedy: f.Why}
	}),
	kindOf("refused", func(e *shell.RefusedError) (named, []error) { return named{}, []error{e.Err} },
		func(_ named, err error) *shell.RefusedError { return &shell.RefusedError{Err: err} }),
	kindOf("dir", func(e *shell.DirError) (named, []error) { return named{Name: e.Dir}, []error{e.Err} },
		func(f named, err error) *shell.DirError { return &shell.DirError{Dir: f.Name, Err: err} }),
	kindOf("disk", func(e *ipc.DiskError) (named, []error) { return named{Name: e.Dir}, []error{e.Err} },
		func(f named, err error) *ipc.DiskError { return &ipc.DiskError{Dir: f.Name, Err: err} }),
	kindOf("env", func(e *command.EnvError) (named, []error) { return named{Name: e.Name}, []error{e.Err} },
		func(f named, err error) *command.EnvError { return &command.EnvError{Name: f.Name, Err: err} }),
	kindOf("ladder", func(e *command.LadderError) (named, []error) { return named{Name: e.Reason, Number: e.Step}, nil },
		func(f named, _ error) *command.LadderError {
			return &command.LadderError{Step: f.Number, Reason: f.Name}
		}),
	kindOf("sandbox", func(e *sandbox.Error) (refused, []error) { return refused{e.Detail, e.Hint, e.Said}, []error{e.Code} },
		func(f refused, err error) *sandbox.Error {
			return &sandbox.Error{Code: err, Detail: f.Detail, Hint: f.Hint, Said: f.Said}
		}),
}

// failed is what an answer says of an error, with its status.
func failed(err error) (failure, int) {
	var value json.RawMessage
	if p, ok := err.(*partly); ok { // It is nothing that others wrap.
		err, value = p.error, p.value
	}
	f := failure{Error: err.Error(), Tree: pack(err), Value: value}
	status := 0
	for _, s := range sentinels {
		if errors.Is(err, s.err) {
			f.Is = append(f.Is, s.name)
			if status == 0 {
				status = s.status
			}
		}
	}
	if status == 0 {
		status = http.StatusBadRequest
	}
	return f, status
}

// pack takes an error apart. Nil is nil.
func pack(err error) *node {
	left := mostBranches
	return packed(err, &left)
}

func packed(err error, left *int) *node {
	if err == nil {
		return nil
	}
	*left--
	n := &node{Text: err.Error()}
	if *left <= 0 {
		return n
	}
	is, _ := err.(interface{ Is(error) bool })
	for _, s := range sentinels {
		if same(err, s.err) || is != nil && is.Is(s.err) {
			n.Is = append(n.Is, s.name)
		}
	}
	var wraps []error
	for _, k := range kinds {
		of, inner, ok := k.take(err)
		if !ok {
			continue
		}
		b, failed := json.Marshal(of)
		if failed != nil {
			break // Its text says what it is.
		}
		n.Kind, n.Of, wraps = k.name, b, inner
		break
	}
	if n.Kind == "" {
		switch wrapper := err.(type) {
		case interface{ Unwrap() error }:
			wraps = []error{wrapper.Unwrap()}
		case interface{ Unwrap() []error }:
			wraps = wrapper.Unwrap()
			joined := errors.Join(wraps...)
			n.Join = joined != nil && joined.Error() == n.Text
		}
	}
	for _, one := range wraps {
		if branch := packed(one, left); branch != nil {
			n.Wraps = append(n.Wraps, branch)
		}
	}
	return n
}

// same reports whether two errors are one. Some cannot be compared.
func same(a, b error) (is bool) {
	defer func() { _ = recover() }() // Then they are not.
	return a == b
}

// unpack makes an error again. Nil is nil.
func (n *node) unpack() error {
	left := mostBranches
	return n.unpacked(&left)
}

func (n *node) unpacked(left *int) error {
	if n == nil {
		return nil
	}
	*left--
	var wraps []error
	if *left > 0 {
		for _, one := range n.Wraps {
			if err := one.unpacked(left); err != nil {
				wraps = append(wraps, err)
			}
		}
	}
	for _, k := range kinds {
		if n.Kind != k.name {
			continue
		}
		err, failed := k.make(n.Of, wraps)
		if failed != nil {
			break // Another version has made it.
		}
		text, ok := safely(err)
		if ok && text == n.Text {
			return err
		}
		if ok {
			return &elsewhere{text: n.Text, wraps: []error{err}}
		}
	}
	e := &elsewhere{text: n.Text, wraps: wraps}
	for _, s := range sentinels {
		if !slices.Contains(n.Is, s.name) {
			continue
		}
		if len(n.Is) == 1 && len(wraps) == 0 && s.err.Error() == n.Text {
			return s.err
		}
		e.wraps = append(e.wraps, s.err)
	}
	if n.Join && len(wraps) > 0 {
		joined := errors.Join(wraps...)
		if text, ok := safely(joined); ok && text == n.Text {
			return joined
		}
	}
	return e
}

// safely is the text of an error that another program made, which may lack what a text needs.
func safely(err error) (text string, ok bool) {
	defer func() { _ = recover() }() // Then it is not.
	return err.Error(), true
}

// elsewhere is an error of another program, of a type that does not travel.
type elsewhere struct {
	text  string
	wraps []error
}

func (e *elsewhere) Error() string   { return e.text }
func (e *elsewhere) Unwrap() []error { return e.wraps }
