// Package transport says where a bash runs: a [Transport] starts it and hands
// out a [Conn] to talk to it. Package local runs it on this machine; a sandbox
// is a Transport that wraps another one's argv.
package transport

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Transport starts processes somewhere. It is safe for concurrent use.
type Transport interface {
	// Start starts a process. ctx bounds the start, not the life of the
	// process. On an error nothing runs.
	Start(ctx context.Context, spec Spec) (Conn, error)
}

// Spec is what to start.
type Spec struct {
	Path string   // the program
	Argv []string // its arguments, from $0 on
	Dir  string   // empty: the caller's
	Env  []string // exactly this, and Own; nil is an empty environment

	// Own is added to Env, and wins. It was made for the process, not inherited
	// from here: a transport that keeps variables of this machine from what it
	// starts passes it on. It may come from what runs there, and is not trusted: a
	// program that wraps the process must not have it in its own environment.
	Own []string

	// Stdin is what the process reads. Nil gives it a pipe, to which
	// [Conn.Write] writes.
	Stdin *os.File

	// Stdout and Stderr take the output. Nil gives the process a pipe that is
	// drained, bounded, into [Conn.Said].
	Stdout, Stderr *os.File

	// Terminal says that Stdin is a terminal, which becomes the controlling one of the
	// process' session. Only a transport that starts processes on this machine, without
	// anything between, has it: others leave it out.
	Terminal bool

	// Files are the process' descriptors from 3 on, as in exec.Cmd.ExtraFiles; one that
	// is nil stays closed.
	// They stay the caller's. A transport that wraps another one passes them on, and
	// passes things to its wrapper by more of them, behind these.
	Files []*os.File

	// Credential is who the process runs as; nil is the user of this program.
	// Only root can choose.
	Credential *Credential

	// SessionDir is the directory through which limpet and the process
	// exchange files. A transport that changes what the process sees must let
	// it see this one at the same path. It belongs to whom the process runs as.
	SessionDir string
}

// Credential is a user and a group. A process that runs so has no other groups.
type Credential struct {
	UID, GID uint32
}

// Conn is a running process, in a session of its own, without a controlling
// terminal but for Spec.Terminal. Its methods are safe for concurrent use.
type Conn interface {
	// Write writes to the process' stdin. A process that leaves no room for it is
	// waited for no longer than WritePatience: the error is then
	// [os.ErrDeadlineExceeded], and the number says how much was written. It may
	// be called again for the rest.
	io.Writer

	// Unread returns how much of what was written the process has not read;
	// 0 where that is not known. It may be asked after the process has ended.
	Unread() int

	// CloseStdin lets the process read end-of-file. It is safe to call twice.
	CloseStdin() error

	// PID is the pid of the process on this machine, also inside of a sandbox.
	PID() int

	// Signal signals the process alone, and not another one that has its pid
	// by now. It returns [os.ErrProcessDone] when it has ended.
	Signal(sig syscall.Signal) error

	// Done is closed when the process has ended and was waited for.
	Done() <-chan struct{}

	// Exit says how it ended. Call it when Done is closed.
	Exit() Exit

	// Said returns what the process itself wrote to its stdout and stderr
	// pipes since the start or the last Forget: the last 64 KB of each,
	// and all that it has written by now.
	Said() (stdout, stderr []byte)

	// Forget drops what was said so far.
	Forget()

	// Close kills the process if it still runs, waits for it, and frees what
	// the Conn holds. It is safe to call twice.
	Close() error
}

// UserSwitcher is a Transport that may run processes as another user than this
// program's. Whoever makes files for them gives them to that user.
type UserSwitcher interface {
	// User is who all processes run as; nil is the user of this program.
	User() *Credential
}

// UserOf returns who the processes of a transport run as; nil is the user of this
// program.
func UserOf(t Transport) *Credential {
	if s, ok := t.(UserSwitcher); ok {
		return s.User()
	}
	return nil
}

// Shielder is a Transport that keeps processes from files of this program's. A transport
// around it must pass Shield on.
type Shielder interface {
	// Shield returns an error if a process could see or write something in the directory,
	// or make it: it need not be there.
	Shield(dir string) error
}

// Shield asks the Transport, if it is a Shielder, about a directory whose files this program
// trusts, such as the records of jobs.
func Shield(t Transport, dir string) error {
	if k, ok := t.(Shielder); ok {
		return k.Shield(dir)
	}
	return nil
}

// WritePatience is how long [Conn.Write] waits for a process to read. It is no
// matter of speed: a pipe takes 64 KiB that nobody reads (pipe(7)).
const WritePatience = 2 * time.Second

// Checker is a Conn that can say whether the process is still where it was
// promised to be. A shell asks before each command, and when it is idle after one.
type Checker interface {
	// Check returns what was lost, or nil. The process is of no more use then.
	// goOn says whether the command may run in a new one. What is found at the end,
	// after which no command may run unasked, is the error of Close.
	Check() (lost error, goOn bool)
}

// Enclosed is a Conn whose process is in a pid namespace of its own. What it starts
// cannot leave that, and nobody else is in it.
type Enclosed interface {
	// Init is the pid, on this machine, of the first process of the namespace, of
	// which all others descend (pid_namespaces(7)); 0 if it had ended before it was
	// found.
	Init() int

	// Private are the places whose files end with the process, as in "/tmp", for
	// people.
	Private() []string
}

// Explainer is a Conn that can guess what its process was refused.
type Explainer interface {
	// Denied says what a command that failed may have been refused, judging by its exit
	// code and the ends of its output; "" if nothing speaks for that. Programs may say the
	// same for other reasons, and to mislead.
	Denied(exitCode int, output ...[]byte) string
}

// DeniedBy asks the Conn, if it is an Explainer, about a command that failed.
func DeniedBy(c Conn, exitCode int, output ...[]byte) string {
	e, ok := c.(Explainer)
	if !ok {
		return ""
	}
	const most = 16 << 10 // The reason stands at the end, if anywhere.
	for i, text := range output {
		output[i] = text[max(len(text)-most, 0):]
	}
	return e.Denied(exitCode, output...)
}

// Viewer is a Conn whose process sees other files than this program does.
type Viewer interface {
	// Stat is [os.Stat] of what the process finds at an absolute path, also when it
	// has ended, until Close. The error is ErrUnseen where there is no telling.
	Stat(path string) (fs.FileInfo, error)
}

// ErrUnseen is in errors of a [Viewer] that cannot look where its process does.
var ErrUnseen = errors.New("it cannot be seen from here")

// Exit says how a process ended.
type Exit struct {
	Code   int             // 0 to 255; -1 when a signal ended it
	Signal syscall.Signal  // 0 when it exited
	Rusage *syscall.Rusage // nil where it is not known
}
