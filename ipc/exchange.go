package ipc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/files"
	"github.com/limpet-sh/limpet/internal/saved"
	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/internal/watch"
)

// Exchange is the conversation with one bash. Commands are begun, sent, awaited and read, see
// [Run]; what limpet itself asks of bash is a method each, which sends lines and waits for the
// report. [Open] one, start bash with its Stdout, and [Exchange.Greet] it. An Exchange is used by
// one goroutine at a time.
type Exchange struct {
	// Names is how to reach bash's builtins past what commands have defined.
	Names script.Names

	o        Options
	dir      *dir
	conn     Conn
	watch    *watch.Watch // nil: the record is polled for
	seal     string       // marks the state that the exit trap saves
	trapSet  bool         // the exit trap is in place
	renewals int          // how often the files were made anew, or it was tried
}

// Options say how an [Exchange] is had.
type Options struct {
	// Path is the directory that is made for it.
	Path string

	// Keep is how many bytes stay on disk at each end of a stream that goes on for too long.
	Keep int64

	// Owner is who bash runs as; nil is this program's user.
	Owner *files.Owner

	// Stdin says that bash has the standard input of its scripts at [InputFD].
	Stdin bool

	// Poll is how often to look for reports; 0 is to be told of them, where there are file events.
	Poll time.Duration

	// Ensure makes what Path is in anew, if somebody deleted that.
	Ensure func() error

	// Stuck ends a bash that does not read its input.
	Stuck func()

	Logger *slog.Logger
}

// Conn is what an Exchange needs of the connection to bash: see transport.Conn.
type Conn interface {
	io.Writer
	Unread() int
	PID() int
	Done() <-chan struct{}
}

// ErrEnded means that bash has ended instead of reporting.
var ErrEnded = errors.New("it ended")

// Open makes the directory of an Exchange, and what bash needs in it. Close it. Errors are
// [*DiskError].
func Open(o Options) (*Exchange, error) {
	dir, err := newDir(o.Path, o.Keep, o.Owner)
	if err != nil {
		return nil, err
	}
	x := &Exchange{Names: script.ViaBuiltin, o: o, dir: dir, seal: environ.NewID()}
	if o.Poll > 0 {
		return x, nil
	}
	if x.watch = watch.Shared.Watch(dir.statusDir()); x.watch.Err != nil {
		o.Logger.Warn("limpet: polling for results", "interval", watch.PollInterval, "err", x.watch.Err)
	}
	return x, nil
}

// Close removes the directory. It is safe to call twice.
func (x *Exchange) Close() {
	if x.watch != nil {
		x.watch.Close()
	}
	x.dir.close()
}

// Stdout is what bash is to be started with. It stays the Exchange's.
func (x *Exchange) Stdout() *os.File { return x.dir.stdout }

// Path is the directory.
func (x *Exchange) Path() string { return x.dir.path }

// Greet has a bash that has just started read the prelude, and then lines. The report has
// bash's version in the place of the options.
func (x *Exchange) Greet(ctx context.Context, conn Conn, lines ...string) (Record, error) {
	x.conn = conn
	before := append([]string{x.dir.exitTrap(x.seal)}, lines...)
	if x.o.Stdin {
		before = append(before, keepCommands())
	}
	id := environ.NewID()
	text, err := x.dir.start(id, strings.Join(before, "\n")+"\n")
	if err != nil {
		return Record{}, err
	}
	rec, err := x.ask(ctx, id, text)
	x.trapSet = err == nil
	return rec, err
}

// Ping has bash report, and do nothing else: TMOUT would end a bash that reads no line for long.
func (x *Exchange) Ping(ctx context.Context) error {
	id := environ.NewID()
	_, err := x.ask(ctx, id, report(x.Names, id)+"\n")
	return err
}

// SwitchOff switches options of set -o off.
func (x *Exchange) SwitchOff(ctx context.Context, options []string) error {
	id := environ.NewID()
	_, err := x.ask(ctx, id, switchOff(x.Names, options, id))
	return err
}

// Reads reports whether bash can read and run a script. It is also true if bash cannot be asked: the
// next command returns the error then.
func (x *Exchange) Reads(ctx context.Context) bool {
	id := environ.NewID()
	lines, err := x.dir.probe(x.Names, id)
	if err != nil {
		return true
	}
	rec, err := x.ask(ctx, id, lines)
	return err != nil || rec.Status == probeStatus
}

// Save has bash write its state down, in the directory back if that is not empty and still
// there, and what else is asked for. If there was no room for all of it, the error is a [*DiskError].
func (x *Exchange) Save(ctx context.Context, back string, more saved.More) (saved.State, Record, error) {
	id := environ.NewID()
	rec, err := x.ask(ctx, id, x.dir.saveLines(x.Names, id, back, more))
	if err != nil {
		return saved.State{}, rec, err
	}
	state, err := x.dir.takeState(x.dir.stateName, id, x.seal)
	if err != nil {
		return state, rec, err
	}
	x.keepTrap(ctx, state.ExitTrap)
	return state, rec, nil
}

// keepTrap puts the exit trap back after a script that dealt with traps, unless the user has
// one now.
func (x *Exchange) keepTrap(ctx context.Context, users bool) {
	if users {
		x.trapSet = false // It has replaced ours.
		return
	}
	if x.trapSet {
		return
	}
	id := environ.NewID()
	if _, err := x.ask(ctx, id, x.dir.exitTrap(x.seal)+"; "+report(x.Names, id)+"\n"); err == nil {
		x.trapSet = true
	}
}

// SavedAtExit reads what bash has saved when it ended, as Save does. It can be called again.
func (x *Exchange) SavedAtExit() (saved.State, error) { return x.dir.savedAtExit(x.seal) }

// Ending returns what the shell had behind a command that bash did not come back from, by the
// state that it left: without the variables of the command's Env, and with OLDPWD as it was. Where bash
// could not write that down, as on a full disk, they are as in an earlier state.
func (x *Exchange) Ending(c Call, left, earlier saved.State) saved.State {
	declared, ok := x.dir.before(c.ID)
	if !ok {
		declared = earlier.Declarations()
	}
	return left.With(c.hidden(), declared)
}

// RenameState has the state saved under a name that nobody knows yet, in case that
// something else is in the place of the state by now.
func (x *Exchange) RenameState() error { return x.dir.renameState() }

// Restore has bash take pieces of a state, and returns those that it has refused. The status in
// the report is 0 if bash has read all of them; else it has given up in the middle.
func (x *Exchange) Restore(ctx context.Context, pieces ...saved.Piece) (rec Record, refused []saved.Piece, err error) {
	id := environ.NewID()
	lines, err := x.dir.restore(x.Names, pieces, id)
	if err != nil {
		return rec, nil, err
	}
	rec, err = x.ask(ctx, id, lines)
	x.Names = saved.NamesAfter(x.Names, pieces)
	for _, i := range x.dir.refused() {
		if i < len(pieces) { // Else a command has forged it.
			refused = append(refused, pieces[i])
		}
	}
	return rec, refused, err
}

// Printed returns what bash itself has printed for the last command: what an exit trap
// says, if bash has ended without a report.
func (x *Exchange) Printed() []byte { return x.dir.printed() }

// ask sends lines of limpet's own and waits for the report.
func (x *Exchange) ask(ctx context.Context, id, lines string) (rec Record, err error) {
	x.dir.rewind()
	if err := x.send(lines); err != nil {
		<-x.conn.Done()
		return rec, ErrEnded
	}
	switch x.await(ctx, Wait{reported: func() (done bool) {
		rec, done = x.dir.reported(id)
		return done
	}}) {
	case Ended:
		return rec, ErrEnded
	case GaveUp:
		return rec, context.Cause(ctx)
	}
	return rec, nil
}

// send writes lines to bash's stdin. It fails when bash has ended, or had to be.
func (x *Exchange) send(lines string) error {
	if debug {
		fmt.Fprintf(os.Stderr, "limpet %d < %s\n", x.conn.PID(), strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n         < "))
	}
	_, err := x.conn.Write([]byte(lines))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		x.o.Stuck()
	}
	return err
}

// debug, set by LIMPET_DEBUG=1, prints the protocol to stderr.
var debug, _ = strconv.ParseBool(os.Getenv("LIMPET_DEBUG"))

// Renew makes the files anew if somebody deleted them. The report is polled for from then on. If
// there is something else in their place, the error is [ErrReplaced]: only another Exchange, and
// another bash, help.
func (x *Exchange) Renew() error {
	switch x.dir.damage() {
	case none:
		return nil
	case replaced:
		return ErrReplaced
	}
	x.renewals++
	// What the directory is in comes first: there is a lock without which other programs sweep it.
	err := x.o.Ensure()
	if err == nil {
		err = x.dir.renew()
	}
	x.o.Logger.Warn("limpet: the runtime directory was deleted under a live session", "recreated", err == nil)
	if err != nil {
		return err
	}
	if x.watch != nil && x.watch.Err == nil {
		// Bash writes to a file that no directory has any more.
		x.watch.Err = ErrDeleted
	}
	return nil
}
