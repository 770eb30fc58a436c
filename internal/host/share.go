package host

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/connect"
	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/socket"
	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/internal/uptime"
	"github.com/limpet-sh/limpet/internal/wire"
)

// A connection that is shared has a process of its own on this machine, which keeps it until nobody has used it for a while. All
// programs of the user reach it by a socket:
//
//	program -- HTTP, unix socket --> limpet-host -- HTTP/2, pipes --> ssh ... limpet connect
//
// It is made by the program that needs it first, as only that one has a terminal at which ssh may ask, and is then left to the process.
// In a directory below that of the sessions that are kept, which no sandbox shows, there is for each target:
//
//	lock           held while somebody looks for the connection, or makes it
//	record.json    sharedRecord
//	s              the socket
//	why            why it was lost
//	said           what the process had to say; nothing, as a rule
const (
	sharedDir  = "hosts"
	lockFile   = "lock"
	recordFile = "record.json"
	socketFile = "s"
	whyFile    = "why"
	saidFile   = "said"

	mostRecord = 64 << 10
)

// argv0 is what a program is called that keeps a connection, and does nothing else. Its argument is the directory.
const argv0 = "limpet-host"

// sharedRecord is what is known of a connection that is shared.
type sharedRecord struct {
	Target string        `json:"target"`
	Hello  connect.Hello `json:"hello"`
	Since  time.Time     `json:"since"`
	Up     time.Duration `json:"uptime_ns,omitempty"` // uptime.Now of Since
	Idle   time.Duration `json:"idle_ns"`             // after which it ends

	// Process is the command that reaches the machine, which is not a child of the process. It is zero where a socket does.
	Process proc.ID `json:"process"`
	Name    string  `json:"name"`
}

// sharedNow is the answer to who asks whether a connection is there.
type sharedNow struct {
	sharedRecord
	Active int `json:"active"` // requests that are under way, but for this one
}

// DefaultIdle is how long a connection is shared that nobody uses.
const DefaultIdle = 10 * time.Minute

// sharedAt is the directory of all connections.
func sharedAt() (string, error) {
	dir, err := statedir.Default(statedir.Kept)
	if err != nil {
		return "", err
	}
	r, err := keeper.Open(dir)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, sharedDir, filepath.Base(r.Dir())), nil // Of this boot.
}

// errNotShared means that there is no directory in which a connection can be shared, or that the one which is there does not fit. Nothing was done.
var errNotShared = errors.New("the connection cannot be shared")

// share returns the link by the connection that is shared, which is made if there is none.
func share(ctx context.Context, t Target, o Options) (link, connect.Hello, error) {
	none := connect.Hello{}
	all, err := sharedAt()
	if err != nil {
		return nil, none, fmt.Errorf("%w: %w", errNotShared, err)
	}
	sum := sha256.Sum256([]byte(t.key()))
	const short = 8
	dir := filepath.Join(all, hex.EncodeToString(sum[:short]))
	if l, now := join(ctx, t.said, dir); l != nil {
		return l.fitting(now, o)
	}
	if err := makeShared(dir); err != nil {
		return nil, none, fmt.Errorf("%w: %s: %w", errNotShared, dir, err)
	}
	unlock, err := statedir.Lock(ctx, filepath.Join(dir, lockFile))
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, none, fmt.Errorf("another program is about to reach the machine: %w", err)
	case err != nil:
		return nil, none, fmt.Errorf("%w: %w", errNotShared, err)
	}
	defer unlock()
	if l, now := join(ctx, t.said, dir); l != nil { // It was made just now.
		return l.fitting(now, o)
	}
	d, hello, err := reach(ctx, t, o)
	if err != nil {
		return nil, none, err
	}
	if err := d.leave(dir, sharedRecord{Target: t.said, Hello: hello, Since: time.Now(), Up: uptime.Now(), Idle: o.Idle}); err != nil {
		d.process.end()
		return nil, none, fmt.Errorf("sharing the connection: %w", err)
	}
	const tries = 5 // On a busy machine it takes its time.
	for range tries {
		if l, now := join(ctx, t.said, dir); l != nil {
			return l.fitting(now, o)
		}
	}
	b, _, _ := statedir.Tail(filepath.Join(dir, saidFile), mostRecord) // For people.
	return nil, none, &Error{Op: "reach", Target: t.said, Err: fmt.Errorf("%w: the process that shares the connection ended at once", ErrUnreached), Said: plain(b)}
}

// key is what two targets have in common that mean the same machine: for a command also where it is executed, and what says which engine
// or cluster a client talks to: that is another one after docker context use, or kubectl config use-context.
func (t Target) key() string {
	parts := []string{t.said}
	if t.socket == "" && (t.argv[0] != "ssh" || !strings.HasPrefix(t.said, "ssh:")) {
		for _, name := range []string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST", "CONTAINER_CONNECTION", "KUBECONFIG", "PATH"} {
			parts = append(parts, name+"="+os.Getenv(name))
		}
		for _, file := range clientFiles() {
			if st, err := os.Stat(file); err == nil {
				parts = append(parts, fmt.Sprint(file, " ", st.Size(), " ", st.ModTime().UnixNano()))
			}
		}
	}
	if strings.HasPrefix(t.said, "exec:") {
		dir, err := os.Getwd()
		if err != nil {
			dir = rand.Text() // There is no telling: it is shared with nobody.
		}
		parts = append(parts, dir)
	}
	return strings.Join(parts, "\x00")
}

// clientFiles are those in which the clients of docker, podman and Kubernetes find which engine or cluster is the current one.
func clientFiles() []string {
	home, _ := os.UserHomeDir() // Without one they find none there.
	config := cmp.Or(os.Getenv("XDG_CONFIG_HOME"), filepath.Join(home, ".config"))
	files := []string{
		filepath.Join(cmp.Or(os.Getenv("DOCKER_CONFIG"), filepath.Join(home, ".docker")), "config.json"),
		filepath.Join(config, "containers", "containers.conf"), filepath.Join(config, "containers", "podman-connections.json"),
	}
	if kube := filepath.SplitList(os.Getenv("KUBECONFIG")); len(kube) > 0 {
		return append(files, kube...)
	}
	return append(files, filepath.Join(home, ".kube", "config"))
}

// makeShared makes a directory, for the user alone.
func makeShared(dir string) error {
	if err := private.MkdirAll(dir); err != nil {
		return err
	}
	return statedir.Private(dir)
}

// join returns the link by a connection that is there; nil if there is none that answers. Close it.
func join(ctx context.Context, target, dir string) (*sharedLink, sharedNow) {
	var now sharedNow
	if _, err := os.Lstat(filepath.Join(dir, socketFile)); err != nil {
		return nil, now
	}
	const patience = 2 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	l := &sharedLink{target: target, dir: dir}
	l.transport = jsonhttp.Dialing(l.dial)
	err := asking(l).Call(ctx, jsonhttp.Request{Method: http.MethodGet, Path: "/shared", Again: true}, &now)
	if err != nil || now.Target != target {
		l.close()
		return nil, now
	}
	l.since = now.Since
	return l, now
}

// fitting returns the link if what answers at the other end can do what is wanted of it.
func (l *sharedLink) fitting(now sharedNow, o Options) (link, connect.Hello, error) {
	if !o.fits(now.Hello) {
		l.close()
		return nil, now.Hello, fmt.Errorf("%w: %w", errNotShared, ErrPart)
	}
	return l, now.Hello, nil
}

// sharedLink is the way by the process that shares the connection.
type sharedLink struct {
	target, dir string
	since       time.Time // of the connection
	transport   *http.Transport
}

func (l *sharedLink) dial(ctx context.Context) (net.Conn, error) {
	return socket.Dial(ctx, l.dir, socketFile)
}

func (l *sharedLink) RoundTrip(r *http.Request) (*http.Response, error) {
	return l.transport.RoundTrip(r)
}

// lost is an error of a request: the process is gone when it can be asked no more, and has said why.
func (l *sharedLink) lost(err error) error {
	if !slices.ContainsFunc([]error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.EPIPE, fs.ErrNotExist}, func(gone error) bool { return errors.Is(err, gone) }) {
		return err
	}
	if again, now := join(context.Background(), l.target, l.dir); again != nil {
		again.close()
		if now.Since.Equal(l.since) { // It is there: this answer alone broke off.
			return fmt.Errorf("%w: the answer broke off", wire.ErrUnreachable)
		}
	}
	why, _ := statedir.Read(filepath.Join(l.dir, whyFile), mostRecord) // None is known then.
	if len(why) == 0 {
		why = []byte("the process that shared it is gone")
	}
	return &Error{Op: "ask", Target: l.target, Err: fmt.Errorf("%w: %s", ErrLost, plain(why))}
}

func (l *sharedLink) close() { l.transport.CloseIdleConnections() }

// leave leaves a connection to a process of its own, which is executed for that.
func (d *direct) leave(dir string, record sharedRecord) error {
	record.Name = d.process.name
	if d.process.cmd != nil {
		st, err := proc.Read(d.process.cmd.Process.Pid)
		if err != nil {
			return err
		}
		record.Process = st.ID()
	}
	for _, name := range []string{socketFile, socketFile + socket.NewExt, whyFile} { // Of the one before.
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := statedir.WriteJSON(filepath.Join(dir, recordFile), record); err != nil {
		return err
	}
	said, err := private.OpenFile(filepath.Join(dir, saidFile), os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	defer said.Close() // The process has its own.
	l, err := socket.Listen(dir, socketFile)
	if err != nil {
		return err
	}
	defer l.Close() // As above.
	listener, err := l.File()
	if err != nil {
		return err
	}
	defer listener.Close() // As above.
	d.process.detach()
	cmd := exec.Command(proc.Self())
	cmd.Args, cmd.Dir = []string{argv0, dir}, "/"
	cmd.Stdout, cmd.Stderr = said, said
	cmd.ExtraFiles = []*os.File{listener, d.process.in, d.process.out, d.process.drain}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := proc.Start(cmd); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // While this program lives there is nobody else to reap it.
	d.process.release()
	return nil
}

// Shared is a connection that is shared.
type Shared struct {
	Target string    `json:"target"`
	Since  time.Time `json:"since"`
	PID    int       `json:"pid"`    // of the limpet over there
	Active int       `json:"active"` // requests that are under way
	dir    string
}

// ListShared returns the connections that are shared now, and makes none.
func ListShared(ctx context.Context) ([]Shared, error) {
	all, err := sharedAt()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(all)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var list []Shared
	for _, e := range entries {
		dir := filepath.Join(all, e.Name())
		var record sharedRecord
		if statedir.ReadJSON(filepath.Join(dir, recordFile), &record, mostRecord) != nil {
			continue // It is about to be made.
		}
		if l, now := join(ctx, record.Target, dir); l != nil {
			list = append(list, Shared{Target: now.Target, Since: uptime.At(now.Since, now.Up), PID: now.Hello.PID, Active: now.Active, dir: dir})
			l.close()
		}
	}
	return list, nil
}

// End ends the connection, for all who use it.
func (s Shared) End(ctx context.Context) error {
	l, _ := join(ctx, s.Target, s.dir)
	if l == nil {
		return nil // It has ended.
	}
	defer l.close()
	if err := asking(l).Call(ctx, jsonhttp.Request{Method: http.MethodPost, Path: "/shared/end"}, &struct{}{}); err != nil {
		return err
	}
	const patience = 10 * time.Second
	for began := time.Now(); time.Since(began) < patience && ctx.Err() == nil; time.Sleep(time.Millisecond) {
		again, now := join(ctx, s.Target, s.dir)
		if again == nil {
			return context.Cause(ctx)
		}
		again.close()
		if !now.Since.Equal(s.Since) {
			return nil // It is the next one.
		}
	}
	return cmp.Or(context.Cause(ctx), fmt.Errorf("the connection to %s does not end", s.Target))
}
