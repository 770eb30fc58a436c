package connect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/pipe"
	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/internal/wire"
)

// Ready is what the line begins with that says that the program is ready.
const Ready = "limpet-ready"

// NoNonce is the nonce of a program that nobody has given one: who connects to the socket at which it is offered has not started it.
const NoNonce = "-"

// ErrNotForPeople means that the program has no pipes for its standard input and output.
var ErrNotForPeople = errors.New("limpet connect is started by limpet itself, with pipes for its standard input and output: use --on")

// Program is what [Serve] has to know of the program that it runs in.
type Program struct {
	Version string
	Execute func(dir string) *exec.Cmd // as in keeper.Registry
	Lacks   []string                   // as in Hello
}

// OfPart is the Program of an executable that is not limpet as a whole: package connect is all that it has of it.
func OfPart() Program {
	return Program{Version: keeper.Version(), Execute: keeper.Itself, Lacks: []string{LacksMCP, LacksAudit}}
}

// Hello is what the program says of itself in the line that says that it is ready.
type Hello struct {
	wire.Hello

	// Place identifies the directory of sessions, by a random ID that is written there once. If it changes between two connections,
	// the sessions of the first are not here: the container was made anew, say.
	Place string `json:"place"`

	// Executable is the path of the program that answers; empty if it is not known.
	Executable string `json:"executable,omitempty"`

	// CallerEnv is what the connection brings to a session there: an SSH agent that is forwarded, for one.
	CallerEnv []string `json:"caller_env,omitempty"`

	// Can names what the program can do which not all can that speak this version of the protocol.
	Can []string `json:"can,omitempty"`

	// Lacks names what limpet does and the program does not, as it is only a part of limpet. One that is too old to say so lacks nothing, unless a
	// Go program other than limpet has brought itself.
	Lacks []string `json:"lacks,omitempty"`
}

// What is in Hello.Can.
const (
	CanFiles   = "files"   // files can be copied
	CanUpgrade = "upgrade" // sessions can be upgraded to the program

	CanQuestions = "questions" // what its sessions ask a person can be answered

	CanRun = "run" // a session can be opened by the request that runs a command in it: see Run
)

// What is in Hello.Lacks.
const (
	LacksMCP   = "mcp"   // its executable is not to be executed as limpet mcp, and keeps no sessions that were made by that
	LacksAudit = "audit" // it cannot keep sessions that have an audit
)

// Serve answers on the standard input and output until the other side closes them, or is not heard any more.
func Serve(nonce string, p Program) error {
	if !pollable(os.Stdin) || !pollable(os.Stdout) {
		return ErrNotForPeople
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer stop()
	complete()
	registry, place, err := registryHere()
	if err != nil {
		return err
	}
	registry.Version, registry.Execute = p.Version, p.Execute
	in, out, err := pipes()
	if err != nil {
		return err
	}
	executable, _ := os.Executable() // Empty, as said.
	hello, err := json.Marshal(Hello{
		Hello: wire.Hello{
			Protocol: [2]int{wire.Version, wire.Version}, Version: p.Version, PID: os.Getpid(),
			Boot: filepath.Base(registry.Dir()), Machine: machine(),
		},
		Place: place, Executable: executable, CallerEnv: registry.CallerEnv(), Can: []string{CanFiles, CanUpgrade, CanQuestions, CanRun}, Lacks: p.Lacks,
	})
	if err == nil {
		_, err = fmt.Fprintf(out, "%s %s %s\n", Ready, nonce, hello)
	}
	if err != nil {
		return err
	}
	tidy(time.Now())
	rt := newRouter(registry)
	defer rt.close()
	conn := pipe.New(nil, in, out, pipe.Times{})
	rt.lost = func() bool { return conn.Err() != nil || ctx.Err() != nil }
	err = pipe.Serve(ctx, conn, rt)
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
		return nil // Also where the goodbye of the other side is read before its end: net/http closes then.
	}
	return err
}

// pollable reports whether a file is a pipe or a socket.
func pollable(f *os.File) bool {
	st, err := f.Stat()
	return err == nil && st.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

// pipes moves the standard input and output to descriptors that no program gets which is started from here, and that have
// deadlines. A write to a pipe that is broken is an error then, and no SIGPIPE.
func pipes() (in, out *os.File, err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	defer null.Close() // Nothing was written.
	var moved [2]*os.File
	for fd := range moved {
		const behind = 10 // The others are for programs that are started.
		to, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, behind)
		if err == nil {
			err = unix.SetNonblock(to, true)
		}
		if err == nil {
			err = dup(int(null.Fd()), fd)
		}
		if err != nil {
			return nil, nil, err
		}
		moved[fd] = os.NewFile(uintptr(to), []string{"stdin", "stdout"}[fd])
	}
	return moved[0], moved[1], nil
}

// complete adds to the environment what a login would have set, where it is missing. A relative HOME would be another directory for each program.
func complete() {
	if os.Getenv("PATH") == "" {
		_ = os.Setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin") // The name is a good one.
	}
	if !filepath.IsAbs(os.Getenv("HOME")) {
		_ = os.Unsetenv("HOME") // As above. Else it would be that of a user whom nobody knows.
		if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) {
			_ = os.Setenv("HOME", u.HomeDir) // As above.
		}
	}
}

// registryHere is that of the user, or, where that cannot be written, one in the first directory for temporary files that can.
func registryHere() (*keeper.Registry, string, error) {
	var tried []string
	for _, dir := range append([]string{""}, statedir.Fallbacks(statedir.Kept)...) {
		r, err := keeper.Open(dir)
		if err == nil {
			var place string
			if place, err = r.Place(); err == nil {
				return r, place, nil
			}
		}
		tried = append(tried, err.Error())
	}
	return nil, "", fmt.Errorf("no directory can be had for sessions: %s", strings.Join(tried, "; "))
}

// machine names the machine; empty if it has no name.
func machine() string {
	const most = 100
	b, err := statedir.Read("/etc/machine-id", most)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
