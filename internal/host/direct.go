package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/connect"
	"github.com/limpet-sh/limpet/internal/pipe"
	"github.com/limpet-sh/limpet/internal/wire"
)

// direct is the link by a command of this program's own.
type direct struct {
	target  Target
	process *process
	conn    *pipe.Conn
	http    *http.ClientConn
}

// reach has a limpet run at the other end of a command. Nothing was said to it yet: see speak, and leave.
func reach(ctx context.Context, t Target, o Options) (*direct, connect.Hello, error) {
	d, hello, err := reachOnce(ctx, t, o)
	if retry, ok := t.without(err); ok {
		// The process that shares its connection does not answer, or it is that connection which is dead.
		t = retry
		d, hello, err = reachOnce(ctx, t, o)
	}
	if hangs, ok := errors.AsType[*hangsError](err); ok && o.hung.CompareAndSwap(nil, hangs) {
		o.PassedOver(hangs)
		d, hello, err = reachOnce(ctx, t, o)
	}
	if err != nil || o.fits(hello) {
		return d, hello, err
	}
	d.process.end()
	if t.socket == "" {
		// It is that in the PATH over there.
		o.broughtAlone = true
		if d, hello, err = reachOnce(ctx, t, o); err != nil || o.fits(hello) {
			return d, hello, err
		}
		d.process.end()
	}
	return nil, hello, &Error{Op: "reach", Target: t.said, Err: fmt.Errorf("%w: %w", ErrUnreached, ErrPart), Remedy: remedyOf(ErrPart, "")}
}

// fits reports whether a limpet can do what is wanted of it.
func (o Options) fits(hello connect.Hello) bool { return !o.Whole || len(hello.Lacks) == 0 }

func reachOnce(ctx context.Context, t Target, o Options) (*direct, connect.Hello, error) {
	p, err := t.begin(ctx, o)
	if err != nil {
		if ctx.Err() != nil {
			return nil, connect.Hello{}, &Error{Op: "reach", Target: t.said, Err: context.Cause(ctx)}
		}
		return nil, connect.Hello{}, &Error{Op: "reach", Target: t.said, Err: fmt.Errorf("%w: %w", ErrUnreached, err), Remedy: remedyOf(err, "")}
	}
	stop := context.AfterFunc(ctx, p.end) // It ends what waits.
	d := &direct{target: t, process: p}
	far := newFarShell(p.in, p.out, o.Patience)
	far.box = t.box
	var hello connect.Hello
	if t.socket != "" {
		hello, err = far.ready(connect.NoNonce)
	} else {
		hello, err = enter(far, o)
	}
	if err == nil && far.from.Buffered() > 0 {
		err = errFlood // Limpet says nothing before it is asked.
	}
	if err == nil {
		err = errors.Join(p.in.SetWriteDeadline(time.Time{}), p.out.SetReadDeadline(time.Time{}))
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, hello, d.unreached(ctx, far, err)
	}
	return d, hello, nil
}

// begin begins what has pipes to the machine.
func (t Target) begin(ctx context.Context, o Options) (*process, error) {
	if t.socket != "" {
		return joinSocket(ctx, t.socket)
	}
	argv, own := t.command(o.Person)
	return start(t.argv[0], argv, own)
}

// speak begins to speak the protocol.
func (d *direct) speak(ctx context.Context, o Options) (err error) {
	d.conn = pipe.New(nil, d.process.out, d.process.in, o.Times)
	d.http, err = pipe.Client(ctx, d.conn)
	return err
}

func (d *direct) RoundTrip(r *http.Request) (*http.Response, error) { return d.http.RoundTrip(r) }

func (d *direct) lost(err error) error {
	why := d.conn.ErrOf(d.http)
	if why == nil {
		return err
	}
	if ended := d.process.ended(); ended != nil {
		why = ended
	}
	why = lostBy(why, d.process.name)
	return &Error{Op: "ask", Target: d.target.said, Err: fmt.Errorf("%w: %w", ErrLost, why), Said: d.process.stderr.String()}
}

func (d *direct) close() {
	_ = d.http.Close() // It has nothing to say.
	_ = d.conn.Close() // As above.
	d.process.end()
}

// unreached says why a machine was not reached, and ends what was begun.
func (d *direct) unreached(ctx context.Context, far *farShell, err error) error {
	ended := d.process.ended()
	if ended != nil {
		far.rest()
	}
	d.process.end()
	if ctx.Err() != nil {
		return &Error{Op: "reach", Target: d.target.said, Err: context.Cause(ctx)}
	}
	if errors.Is(err, errEnded) && ended != nil {
		if e, ok := errors.AsType[*endedError](ended); ok {
			e.within = far.answered
		}
		err = ended
	}
	if d.target.socket != "" && (errors.Is(err, errEnded) || errors.Is(err, errMute) || errors.Is(err, errFlood)) {
		err = fmt.Errorf("%w: %w", errOffer, err)
	}
	said := d.process.stderr.String()
	if other := far.noise.String(); other != "" {
		said = strings.TrimPrefix(said+"; "+other, "; ")
	}
	return &Error{Op: "reach", Target: d.target.said, Err: fmt.Errorf("%w: %w", ErrUnreached, err), Said: said, Remedy: remedyOf(err, said)}
}

func yesIf(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}

// enter has a limpet run behind the pipes of a shell, which has said who it is.
func enter(far *farShell, o Options) (hello connect.Hello, err error) {
	this, err := o.programFor(runtime.GOOS, runtime.GOARCH)
	if err != nil {
		return hello, err
	}
	vars := map[string]string{"hash": this.hash, "bytes": strconv.FormatInt(this.size, 10), "box": yesIf(far.box), "ask": "yes"}
	hangs := o.hung.Load()
	if o.broughtAlone || hangs != nil {
		vars["ask"] = "no"
	}
	a, err := far.call("limpet_probe", vars, nil)
	if err != nil {
		return hello, err
	}
	if a.one("bash") == "" {
		return hello, ErrNoBash
	}
	var none error // why there is no program for it
	if system, arch := systemOf(a.one("system")); system != runtime.GOOS || arch != runtime.GOARCH {
		if this, none = o.programOf(a.one("system")); none == nil {
			vars["hash"], vars["bytes"] = this.hash, strconv.FormatInt(this.size, 10)
			if a, err = far.call("limpet_probe", vars, nil); err != nil {
				return hello, err
			}
		}
	}
	command := far.find(a, this)
	if command == "" && none == nil {
		for _, why := range this.passed {
			o.PassedOver(why)
		}
		command, none = far.bring(a, this, o.Progress)
	}
	if command == "" && hangs != nil {
		none = fmt.Errorf("%w; %w", none, hangs)
	}
	if command == "" {
		return hello, none // One that is there needs none of here.
	}
	if err := far.send([]byte(command + "\n")); err != nil {
		return hello, err
	}
	return far.ready(far.mark)
}

// ready reads what a limpet says of itself before it serves the connection.
func (far *farShell) ready(mark string) (hello connect.Hello, err error) {
	for read := 0; read < mostNoise; {
		line, err := far.raw()
		if err != nil {
			return hello, err
		}
		read += len(line) + 1
		said, ok := strings.CutPrefix(line, connect.Ready+" "+mark+" ")
		if !ok {
			_, _ = far.noise.Write([]byte(line + "\n")) // It cannot fail.
			continue
		}
		if err := json.Unmarshal([]byte(said), &hello); err != nil {
			return hello, fmt.Errorf("what limpet says of itself there makes no sense: %w", err)
		}
		if v := hello.Protocol; v[0] > wire.Version || v[1] < wire.Version {
			return hello, &versionError{hello.Version, v[0], v[1]}
		}
		return hello, nil
	}
	return hello, errFlood
}
