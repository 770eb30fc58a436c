// Package host reaches the sessions of another machine. A [Host] is a keeper.Place, as the registry of this machine is: who has a
// session of one need not know where it is.
//
//	h, err := host.Dial(ctx, "exec:limactl shell dev sh", nil)
//	...
//	defer h.Disconnect()
//	kept, err := h.Session(ctx, "build", &keeper.Spec{})
//
// A machine is reached by a unix socket at which a limpet connect answers, or by a command whose standard input and output reach a POSIX sh there. That is asked what is there (far.sh),
// gets a limpet if there is none, and executes it: package connect. From then on HTTP/2 is spoken on the
// same pipes.
//
// The main path is Dial, in this file.
package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limpet-sh/limpet/internal/connect"
	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/pipe"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// Options are those of a connection. The zero value of each, and nil, is a good default.
type Options struct {
	// Executable is a limpet for systems as this one, which is brought instead of this program. Empty means this program.
	Executable string

	// Agents is a directory that has limpet for systems, as files limpet-OS-ARCH. They are looked for beside this program, too. For systems as this one
	// there need not be one: this program is brought then. PassedOver, if not nil, is told why such a file is not brought, or why the limpet in the PATH
	// over there is not asked again, before another one is taken.
	Agents     string
	PassedOver func(why error)

	// Whole says that a limpet is needed that lacks nothing. One that does is not taken: limpet is brought, or the error is ErrPart.
	Whole bool

	broughtAlone bool                        // the limpet in the PATH over there is not to be asked, and not to be taken
	hung         *atomic.Pointer[hangsError] // of all dials: that it did not answer, and is not asked again

	// Progress, if not nil, is told how much of limpet has been sent, if it has to be brought.
	Progress func(sent, of int64)

	// Share has the connection shared by all programs of the user that share it. It stays until nobody has used it for Idle; 0 means 10
	// min. The Times are not those of a connection that is shared.
	Share bool
	Idle  time.Duration

	// Reconnect is how long a machine is dialled again whose connection is lost, while a call waits. 0 means 5 min; a negative one is not. Lost,
	// if not nil, is told when that begins.
	Reconnect time.Duration
	Lost      func(why error)

	// Person says that somebody is at this program's terminal, whom ssh can ask for a password, or whether a machine is the right one.
	Person bool

	// Patience is how long the other side may say nothing before it is reached. 0 means 30 s.
	Patience time.Duration

	// Times are those of the connection.
	Times pipe.Times
}

// Host is a machine that is reached. Its methods are safe for concurrent use. Disconnect it.
type Host struct {
	target string
	to     Target
	opts   Options
	asks   *jsonhttp.Client
	ending *jsonhttp.Client // as asks, for requests about sessions that are temporary
	hello  connect.Hello
	beside sync.WaitGroup // reconnections

	closing   sync.Once
	mu        sync.Mutex
	link      link
	why       error         // why it is lost; nil while it is not
	again     *reconnection // that is under way; nil if there is none
	dialled   time.Time
	failed    error     // why it was not dialled again the last time
	outage    time.Time // since when there was no answer; zero while there are
	vain      error     // why it could not be dialled again, and when that was
	triedAt   time.Time
	mute      bool // nothing was answered since the stop of a command was given up
	closed    bool
	temporary []*keeper.Kept // the sessions that are to end with the connection
	unsure    []*later       // those of which it is not known whether they were made
}

// link is a way to the limpet over there.
type link interface {
	http.RoundTripper

	// lost is an error of a request, or, if it is one since the connection is lost, that.
	lost(err error) error

	close()
}

var _ keeper.Place = (*Host)(nil)

// Dial reaches a machine. ctx bounds that, and not the connection. The error is an [*Error], and ErrUnreached unless ctx has
// ended.
func Dial(ctx context.Context, t Target, opts *Options) (*Host, error) {
	o := opts.withDefaults()
	l, hello, err := dialLink(ctx, t, o)
	if err != nil {
		return nil, err
	}
	h := &Host{target: t.said, to: t, opts: o, link: l, hello: hello, dialled: time.Now()}
	h.asks, h.ending = h.asking(h), h.asking(temporary{h})
	return h, nil
}

// dialLink dials once.
func dialLink(ctx context.Context, t Target, o Options) (link, connect.Hello, error) {
	if o.Share {
		l, hello, err := share(ctx, t, o)
		if !errors.Is(err, errNotShared) { // Else it is this program's alone, which costs the next one a dial.
			return l, hello, err
		}
	}
	d, hello, err := reach(ctx, t, o)
	if err != nil {
		return nil, hello, err
	}
	if err := d.speak(ctx, o); err != nil {
		d.process.end()
		return nil, hello, &Error{Op: "reach", Target: t.said, Err: fmt.Errorf("%w: %w", ErrUnreached, err)}
	}
	return d, hello, nil
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
	o.Idle, o.Reconnect = cmp.Or(o.Idle, DefaultIdle), cmp.Or(o.Reconnect, DefaultReconnect)
	if o.hung == nil {
		o.hung = new(atomic.Pointer[hangsError])
	}
	if o.PassedOver == nil {
		o.PassedOver = func(error) {}
	}
	if o.Progress == nil {
		o.Progress = func(int64, int64) {}
	}
	return o
}

// asking is a client for what the limpet over there answers itself.
func asking(by http.RoundTripper) *jsonhttp.Client {
	return jsonhttp.NewClient(by, jsonhttp.Errors{Gone: wire.ErrGone, Unreachable: wire.ErrUnreachable, Closed: errClosed, Said: wire.Said})
}

// asking is a client for what the limpet of this machine answers about sessions.
func (h *Host) asking(by http.RoundTripper) *jsonhttp.Client {
	return jsonhttp.NewClient(by, jsonhttp.Errors{Gone: wire.ErrGone, Unreachable: wire.ErrUnreachable, Closed: errClosed, Said: h.said})
}

// said makes an error of an answer, as wire.Said does. Where the remedy is a command line, it adds --on: the remedy was written for a
// person on that machine, and a person on this one reads it.
func (h *Host) said(answer []byte) error {
	err := wire.Said(answer)
	if e, ok := errors.AsType[*session.Error](err); ok {
		e.Remedy = strings.Replace(e.Remedy, keeper.CloseByForce, keeper.CloseByForce+" --on "+quoted(h.target), 1)
	}
	return err
}

var errClosed = fmt.Errorf("the connection is %w", session.ErrClosed)

// body is that of an answer, which breaks off when the connection is lost.
type body struct {
	io.ReadCloser
	h    *Host
	link link
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF { // Its own end counts.
		err = b.h.lost(b.link, err)
	}
	return n, err
}

// Hello is what the limpet over there said of itself, the last one if the connection was lost.
func (h *Host) Hello() connect.Hello {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.hello
}

// CallerEnv implements [keeper.Place].
func (h *Host) CallerEnv() []string { return h.Hello().CallerEnv }

// Session implements [keeper.Place].
func (h *Host) Session(ctx context.Context, name string, spec *keeper.Spec) (*keeper.Kept, error) {
	o, err := open(ctx, h.asks, name, spec)
	if err != nil {
		return nil, err
	}
	return h.kept(&addressed{h, o.Record.SessionID()}, o), nil
}

// TemporaryName returns a name for Temporary that no other session has. It begins with what the session is for.
func TemporaryName(what string) string {
	const enough = 12
	return what + "-" + strings.ToLower(rand.Text()[:enough])
}

// Temporary makes a session that ends with Disconnect, or with this program if the connection is shared. If the connection ends before that, or
// this program where it is not shared, the session stays for as long as others do that nobody uses. The name is one of TemporaryName: a session that
// has it already is opened, and does not end so.
func (h *Host) Temporary(ctx context.Context, name string, spec *keeper.Spec) (*keeper.Kept, error) {
	o, err := open(ctx, h.ending, name, spec)
	if err != nil {
		return nil, err
	}
	if !o.Made {
		return h.kept(&addressed{h, o.Record.SessionID()}, o), nil
	}
	k := h.kept(&addressed{temporary{h}, o.Record.SessionID()}, o)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.temporary = append(h.temporary, k)
	return k, nil
}

// open opens a session by a request of one of the clients of a Host.
func open(ctx context.Context, by *jsonhttp.Client, name string, spec *keeper.Spec) (o keeper.Opened, err error) {
	err = askBy(ctx, by, http.MethodPut, name, "", connect.Open{Spec: spec}, &o)
	return o, err
}

// kept is a session of there, about which requests are sent by a transport.
func (h *Host) kept(by http.RoundTripper, o keeper.Opened) *keeper.Kept {
	client := wire.NewClientOver(by, h.said)
	if h.opts.Reconnect > 0 {
		client.Away = h.opts.Reconnect + overdue
	}
	client.Follow = func(ctx context.Context) bool {
		var said connect.Found
		err := h.asking(by).Call(ctx, jsonhttp.Request{Method: http.MethodPost, Path: below(o.Record.Name) + followPath, Again: true}, &said)
		return err == nil && said.Found
	}
	return keeper.Elsewhere(h, client, o)
}

// overdue is how much longer than Options.Reconnect a command waits for its caller: the other machine may notice first that the connection is lost,
// by up to 40 s, and the last dial takes its time.
const overdue = 2 * time.Minute

// followPath is that of the request, below a session, which looks for another keeper of it.
const followPath = "/follow"

// below is the path of a session.
func below(name string) string { return "/sessions/" + name }

// addressed sends requests about one session.
type addressed struct {
	to http.RoundTripper
	id string
}

func (a *addressed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context()) // It is the caller's.
	r.Header.Set(connect.HeadSession, a.id)
	return a.to.RoundTrip(r)
}

// The paths of names, and of requests below one of them: to open a session and run a command in it, and to close a session.
const (
	keptPath  = "/kept/"
	runPath   = "/run"
	closePath = "/close"
)

// ask asks about a name.
func (h *Host) ask(ctx context.Context, method, name, path string, content, value any) error {
	return askBy(ctx, h.asks, method, name, path, content, value)
}

func askBy(ctx context.Context, by *jsonhttp.Client, method, name, path string, content, value any) error {
	if !session.ValidName(name) {
		return &session.Error{Op: "open", Session: name, Err: session.ErrName}
	}
	return by.Call(ctx, jsonhttp.Request{Method: method, Path: keptPath + name + path, Content: content}, value)
}

// Terminals returns a client of the records of the terminals of a session that has ended. The caller must close it.
func (h *Host) Terminals(name string) *remote.Client {
	return wire.Terminals(h, keptPath+url.PathEscape(name))
}

// List implements [keeper.Place].
func (h *Host) List(ctx context.Context, all bool) (list []keeper.Listed, err error) {
	err = h.asks.Call(ctx, jsonhttp.Request{Method: http.MethodGet, Path: "/kept?all=" + strconv.FormatBool(all), Again: true}, &list)
	// A name is printed as it is, and is the beginning of a path.
	list = slices.DeleteFunc(list, func(one keeper.Listed) bool { return !session.ValidName(one.Record.Name) })
	return list, err
}

// Close ends a session.
func (h *Host) Close(ctx context.Context, k *keeper.Kept) error {
	return h.ask(ctx, http.MethodPost, k.Name(), closePath, connect.Close{Session: k.Record.SessionID()}, &struct{}{})
}

// ErrNoUpgrade means that the limpet over there is too old to have sessions upgraded to it.
var ErrNoUpgrade = errors.New("no session can be upgraded")

// Upgrade implements [keeper.Place]. The new keeper is of the limpet over there that answers this connection.
func (h *Host) Upgrade(ctx context.Context, k *keeper.Kept, how keeper.Upgrade) (lost []string, err error) {
	if err := h.can(connect.CanUpgrade, "upgrade sessions of", ErrNoUpgrade); err != nil {
		return nil, err
	}
	var did wire.Upgraded
	err = h.ask(ctx, http.MethodPost, k.Name(), "/upgrade", connect.Upgrade{Session: k.Record.SessionID(), NoWait: how.NoWait, Force: how.Force}, &did)
	return did.Lost, err
}

// UpgradesTo implements [keeper.Place].
func (h *Host) UpgradesTo() string { return h.Hello().Version }

// Keeps reports whether the limpet over there can keep a session that is made so, as far as it says what it lacks.
func (h *Host) Keeps(spec keeper.Spec) bool {
	lacks := h.Hello().Lacks
	return !(len(spec.Args) > 0 && slices.Contains(lacks, connect.LacksMCP) || spec.Audit != "" && slices.Contains(lacks, connect.LacksAudit))
}

// Kill implements [keeper.Place].
func (h *Host) Kill(ctx context.Context, name string) error {
	return h.ask(ctx, http.MethodPost, name, "/kill", nil, &struct{}{})
}

// The times for the sessions that end with the connection, and where that is lost already.
const (
	goodbyePatience = 15 * time.Second
	lostPatience    = 3 * time.Second
	unsurePatience  = 2 * time.Second // to say whether there is one: its request was not answered
	mutePatience    = 500 * time.Millisecond
)

// mayStayError is that of the goodbye to a session which may not have ended.
func (h *Host) mayStayError(name string, err error) error {
	how := "it stays for 24 hours, or until limpet session close --on ends it"
	h.mu.Lock()
	if _, shared := h.link.(*sharedLink); shared && h.why == nil { // After a loss another one shares it, which was not told.
		how = "the process that shares the connection ends it if there is an answer by then, and else " + how
	}
	h.mu.Unlock()
	return fmt.Errorf("session %q may be there, and stay: %w; %s", name, err, how)
}

// within is context.WithTimeout, with a cause that people can read.
func within(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, patience, fmt.Errorf("%w: no answer within %v", wire.ErrUnreachable, patience))
}

// Disconnect ends the sessions that are temporary, and lets go of the connection. The error is that a session could not be ended. It is
// safe to call twice.
func (h *Host) Disconnect() (err error) {
	h.closing.Do(func() {
		patience := goodbyePatience
		h.mu.Lock()
		ending, unsure := slices.Clone(h.temporary), h.unsure
		unsurePatience := unsurePatience
		switch {
		case h.why != nil:
			patience, unsurePatience = lostPatience, lostPatience
		case h.mute: // Somebody has waited already.
			patience, unsurePatience = mutePatience, mutePatience
		}
		h.mu.Unlock()
		ctx, cancel := within(context.Background(), patience)
		defer cancel()
		soon, cancel := within(ctx, unsurePatience)
		defer cancel()
		for _, l := range unsure {
			if l.isOpen() {
				continue // It is one of the others.
			}
			k, failed := h.Session(soon, l.name, nil)
			switch {
			case failed == nil:
				ending = append(ending, k)
			case !errors.Is(failed, session.ErrNotFound):
				err = errors.Join(err, h.mayStayError(l.name, failed))
			}
		}
		for _, k := range ending {
			how := connect.Close{Session: k.Record.SessionID(), Forget: true}
			if failed := h.ask(ctx, http.MethodPost, k.Name(), closePath, how, &struct{}{}); failed != nil {
				err = errors.Join(err, h.mayStayError(k.Name(), failed))
			}
		}
		h.asks.Close()
		h.ending.Close()
		h.mu.Lock()
		h.closed = true
		l := h.link
		if h.again != nil {
			h.again.cancel()
		}
		h.mu.Unlock()
		h.beside.Wait()
		l.close()
		h.mu.Lock()
		l = h.link // It may have been dialled again just then.
		h.mu.Unlock()
		l.close()
	})
	return err
}
