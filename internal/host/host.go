// Package host reaches the sessions of another machine. A [Host] is a keeper.Place, as the registry of this machine is: who has a
// session of one need not know where it is.
//
//	h, err := host.Dial(ctx, "exec:limactl shell dev sh", nil)
//	...
//	defer h.Disconnect()
//	kept, err := h.Session(ctx, "build", &keeper.Spec{})
//
// A machine is reached by a command whose standard input and output reach a POSIX sh there. That is asked what is there (far.sh),
// gets a limpet if there is none, and executes it: package connect. From then on HTTP/2 is spoken on the
// same pipes.
//
// The main path is Dial, in this file.
package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/connect"
	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/pipe"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
)

// Options are those of a connection. The zero value of each, and nil, is a good default.
type Options struct {
	// Executable is a limpet for systems as this one, which is brought instead of this program. Empty means this program.
	Executable string

	// Agents is a directory that has limpet for other systems, as files limpet-OS-ARCH. They are looked for beside this program, too.
	Agents string

	// Progress, if not nil, is told how much of limpet has been sent, if it has to be brought.
	Progress func(sent, of int64)

	// Person says that somebody is at this program's terminal, whom ssh can ask for a password, or whether a machine is the right one.
	Person bool

	// Patience is how long the other side may say nothing before it is reached. 0 means 30 s.
	Patience time.Duration

	// Times are those of the connection.
	Times pipe.Times
}

// Host is a machine that is reached. Its methods are safe for concurrent use. Disconnect it.
type Host struct {
	target  Target
	process *process
	conn    *pipe.Conn
	http    *http.ClientConn
	asks    *jsonhttp.Client
	hello   connect.Hello

	closing   sync.Once
	mu        sync.Mutex
	temporary bool // a session was made that is to end with the connection
}

var _ keeper.Place = (*Host)(nil)

// Dial reaches a machine. ctx bounds that, and not the connection. The error is an [*Error], and ErrUnreached unless ctx has
// ended.
func Dial(ctx context.Context, t Target, opts *Options) (*Host, error) {
	o := opts.withDefaults()
	h, err := dial(ctx, t, o)
	if retry, ok := t.without(err); ok {
		// The process that shares its connection does not answer, or it is that connection which is dead.
		return dial(ctx, retry, o)
	}
	return h, err
}

func (opts *Options) withDefaults() Options {
	var o Options
	if opts != nil {
		o = *opts
	}
	patience := 30 * time.Second
	if o.Person {
		patience = 2 * time.Minute // To find a password.
	}
	o.Patience = cmp.Or(o.Patience, patience)
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	return o
}

// dial is Dial by one command.
func dial(ctx context.Context, t Target, o Options) (*Host, error) {
	argv, own := t.command(o.Person)
	p, err := start(t.argv[0], argv, own)
	if err != nil {
		return nil, &Error{Op: "reach", Target: t.said, Err: fmt.Errorf("%w: %w", ErrUnreached, err), Remedy: remedyOf(err, "")}
	}
	stop := context.AfterFunc(ctx, p.end) // It ends what waits.
	h := &Host{target: t, process: p}
	far := newFarShell(p.in, p.out, o.Patience)
	err = h.enter(far, o)
	if err == nil {
		err = errors.Join(p.in.SetWriteDeadline(time.Time{}), p.out.SetReadDeadline(time.Time{}))
	}
	if err == nil {
		h.conn = pipe.New(far.from, p.out, p.in, o.Times)
		h.http, err = pipe.Client(ctx, h.conn)
	}
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, h.unreached(ctx, far, err)
	}
	h.asks = asking(h)
	return h, nil
}

// asking is a client for what the limpet over there answers itself.
func asking(by http.RoundTripper) *jsonhttp.Client {
	return jsonhttp.NewClient(by, jsonhttp.Errors{Gone: wire.ErrGone, Unreachable: wire.ErrUnreachable, Closed: errClosed, Said: wire.Said})
}

var errClosed = fmt.Errorf("the connection is %w", session.ErrClosed)

// unreached says why a machine was not reached, and ends what was begun.
func (h *Host) unreached(ctx context.Context, far *farShell, err error) error {
	ended := h.process.ended()
	if ended != nil {
		far.rest()
	}
	h.process.end()
	if ctx.Err() != nil {
		return &Error{Op: "reach", Target: h.target.said, Err: context.Cause(ctx)}
	}
	if errors.Is(err, errEnded) && ended != nil {
		err = ended
	}
	said := h.process.stderr.String()
	if other := far.noise.String(); other != "" {
		said = strings.TrimPrefix(said+"; "+other, "; ")
	}
	return &Error{Op: "reach", Target: h.target.said, Err: fmt.Errorf("%w: %w", ErrUnreached, err), Said: said, Remedy: remedyOf(err, said)}
}

// enter has a limpet run behind the pipes of a shell, which has said who it is.
func (h *Host) enter(far *farShell, o Options) error {
	this, err := programHere(o.Executable)
	if err != nil {
		return err
	}
	a, err := far.call("limpet_probe", map[string]string{"hash": this.hash}, nil)
	if err != nil {
		return err
	}
	if a.one("bash") == "" {
		return ErrNoBash
	}
	var none error // why there is no program for it
	if system, arch := systemOf(a.one("system")); system != runtime.GOOS || arch != runtime.GOARCH {
		if this, none = programFor(a.one("system"), o.Agents); none == nil {
			if a, err = far.call("limpet_probe", map[string]string{"hash": this.hash}, nil); err != nil {
				return err
			}
		}
	}
	command := far.find(a, this)
	if command == "" && none == nil {
		command, none = far.bring(a, this, o.Progress)
	}
	if none != nil {
		return none
	}
	if err := far.send([]byte(command + "\n")); err != nil {
		return err
	}
	for read := 0; read < mostNoise; {
		line, err := far.raw()
		if err != nil {
			return err
		}
		read += len(line)
		said, ok := strings.CutPrefix(line, connect.Ready+" "+far.mark+" ")
		if !ok {
			_, _ = far.noise.Write([]byte(line + "\n")) // It cannot fail.
			continue
		}
		if err := json.Unmarshal([]byte(said), &h.hello); err != nil {
			return fmt.Errorf("what limpet says of itself there makes no sense: %w", err)
		}
		if v := h.hello.Protocol; v[0] > wire.Version || v[1] < wire.Version {
			return fmt.Errorf("limpet %s is there, which speaks versions %d to %d of the protocol, and this one speaks %d", plain([]byte(h.hello.Version)), v[0], v[1], wire.Version)
		}
		return nil
	}
	return errFlood
}

// RoundTrip sends a request over the connection.
func (h *Host) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := h.http.RoundTrip(r)
	if err != nil {
		return nil, h.lost(err)
	}
	resp.Body = &body{resp.Body, h}
	return resp, nil
}

// body is that of an answer, which breaks off when the connection is lost.
type body struct {
	io.ReadCloser
	h *Host
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF { // Its own end counts.
		err = b.h.lost(err)
	}
	return n, err
}

// lost is an error of a request, or, if the connection is lost, that.
func (h *Host) lost(err error) error {
	why := h.conn.Err()
	if why == nil {
		return err
	}
	if ended := h.process.ended(); ended != nil {
		why = ended
	}
	return &Error{Op: "ask", Target: h.target.said, Err: fmt.Errorf("%w: %w", ErrLost, why), Said: h.process.stderr.String()}
}

// Hello is what the limpet over there said of itself.
func (h *Host) Hello() connect.Hello { return h.hello }

// Target is what was dialled.
func (h *Host) Target() string { return h.target.said }

// CallerEnv implements [keeper.Place].
func (h *Host) CallerEnv() []string { return h.hello.CallerEnv }

// Session implements [keeper.Place].
func (h *Host) Session(ctx context.Context, name string, spec *keeper.Spec) (*keeper.Kept, error) {
	return h.open(ctx, name, connect.Open{Spec: spec})
}

// Temporary makes a session that ends with Close. If the connection is lost before that, it stays for as long as others do that nobody
// uses.
func (h *Host) Temporary(ctx context.Context, name string, spec *keeper.Spec) (*keeper.Kept, error) {
	h.mu.Lock()
	h.temporary = true
	h.mu.Unlock()
	return h.open(ctx, name, connect.Open{Spec: spec, Temporary: true})
}

func (h *Host) open(ctx context.Context, name string, in connect.Open) (*keeper.Kept, error) {
	var o keeper.Opened
	if err := h.ask(ctx, http.MethodPut, name, "", in, &o); err != nil {
		return nil, err
	}
	by := &addressed{h, o.Record.SessionID()}
	client := wire.NewClientOver(by)
	client.Follow = func(ctx context.Context) bool {
		var said connect.Found
		err := asking(by).Call(ctx, jsonhttp.Request{Method: http.MethodPost, Path: "/sessions/" + name + "/follow", Again: true}, &said)
		return err == nil && said.Found
	}
	return keeper.Elsewhere(h, client, o), nil
}

// addressed sends requests about one session.
type addressed struct {
	h  *Host
	id string
}

func (a *addressed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // It is the caller's.
	r.Header.Set(connect.HeadSession, a.id)
	return a.h.RoundTrip(r)
}

// ask asks about a name.
func (h *Host) ask(ctx context.Context, method, name, path string, content, value any) error {
	if !session.ValidName(name) {
		return &session.Error{Op: "open", Session: name, Err: session.ErrName}
	}
	return h.asks.Call(ctx, jsonhttp.Request{Method: method, Path: "/kept/" + name + path, Content: content}, value)
}

// List implements [keeper.Place].
func (h *Host) List(ctx context.Context, all bool) (list []keeper.Listed, err error) {
	err = h.asks.Call(ctx, jsonhttp.Request{Method: http.MethodGet, Path: "/kept?all=" + strconv.FormatBool(all)}, &list)
	return list, err
}

// Close ends a session.
func (h *Host) Close(ctx context.Context, k *keeper.Kept) error {
	return h.ask(ctx, http.MethodPost, k.Name(), "/close", connect.Close{Session: k.Record.SessionID()}, &struct{}{})
}

// Kill implements [keeper.Place].
func (h *Host) Kill(ctx context.Context, name string) error {
	return h.ask(ctx, http.MethodPost, name, "/kill", nil, &struct{}{})
}

// goodbyePatience is for the sessions that end with the connection.
const goodbyePatience = 15 * time.Second

// Disconnect says goodbye, which ends the sessions that are temporary, and closes the connection. The error is that a session could
// not be ended. It is safe to call twice.
func (h *Host) Disconnect() (err error) {
	h.closing.Do(func() {
		h.mu.Lock()
		temporary := h.temporary
		h.mu.Unlock()
		if temporary && h.conn.Err() == nil {
			ctx, cancel := context.WithTimeout(context.Background(), goodbyePatience)
			err = h.asks.Call(ctx, jsonhttp.Request{Method: http.MethodPost, Path: "/goodbye"}, &struct{}{})
			cancel()
		}
		h.asks.Close()
		_ = h.http.Close() // It has nothing to say.
		_ = h.conn.Close() // As above.
		h.process.end()
	})
	return err
}
