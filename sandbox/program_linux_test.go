package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/local"
)

// helpers are the programs that the test binary can be.
var helpers = map[string]func() error{"program": programHelper, "tool": toolHelper, "probe": probeHelper}

// configVar has the config of a program, as JSON.
const configVar = "TEST_PROGRAM"

// config says which shell a program keeps. A program is what limpet is for: it
// has one persistent shell, and does what it is told by its stdin. It is a
// process of its own so that it can run as another user, be killed, and crash or
// hang without taking the tests with it.
type config struct {
	Policy          *sandbox.Policy // nil: there is no sandbox
	Child           *sandbox.Policy // what a child asks for, who then has the shell
	Naive           []string        // without a Policy: arguments of bwrap that leave a hole
	Dir, RuntimeDir string

	OutputLimit, SpoolLimit int64
	NoSave                  bool     // the state is not saved when the shell is idle
	Backends                []string // where bwrap is looked for, instead of its usual places
	OnDyingThread           bool     // the shell is started by a thread that then ends
	Leaks                   string   // a file that the program opens as descriptor 77, for whoever inherits it
	Neighbour               string   // what another shell of the program ran
	Files                   uint64   // that the program may have open
}

// order is what a program is told to do.
type order struct {
	Script, Stdin string
	Dir           string
	Env           []string
	Timeout       time.Duration
	Reset, Close  bool
	Here          bool // where the shell is, wherever that is
}

// reply is what came of it. The first one is about the start.
type reply struct {
	Err     string
	Output  string // its ends
	Length  int    // of the whole
	Code    int
	Dir     string
	Restart string
	Memory  uint64 // that the program has taken from the system so far
}

func programHelper() error {
	var c config
	if err := json.Unmarshal([]byte(os.Getenv(configVar)), &c); err != nil {
		return err
	}
	// Bash shall have neither.
	_, _ = os.Unsetenv(configVar), os.Unsetenv(helperVar) // They were set.
	replies, orders := json.NewEncoder(os.Stdout), json.NewDecoder(os.Stdin)
	shells, err := c.start()
	defer func() {
		for _, sh := range shells {
			_ = sh.Close() // Always nil.
		}
	}()
	if err != nil {
		return replies.Encode(reply{Err: err.Error()})
	}
	for r := (reply{}); ; {
		if err := replies.Encode(r); err != nil {
			return err
		}
		var o order
		if err := orders.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r = obey(shells[0], o)
	}
}

func (c config) start() (shells []*shell.PersistentShell, err error) {
	if len(c.Backends) > 0 {
		sandbox.SetBackendDirs(c.Backends)
	}
	if c.Files > 0 {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: c.Files, Max: c.Files}); err != nil {
			return nil, err
		}
	}
	opts := &shell.Options{Dir: c.Dir, RuntimeDir: c.RuntimeDir, OutputLimit: c.OutputLimit, SpoolLimit: c.SpoolLimit}
	if c.NoSave {
		opts.SaveDelay = time.Hour
	}
	if c.Policy != nil {
		policy := *c.Policy
		if c.Child != nil {
			if policy, err = policy.Narrow(*c.Child); err != nil {
				return nil, err
			}
		}
		where, err := sandbox.New(policy)
		if err != nil {
			return nil, err
		}
		opts.Transport = where
	} else if c.Naive != nil {
		opts.Transport = naive(c.Naive)
	}
	if c.Leaks != "" {
		// Not the first sandbox is the one that inherits it.
		first, err := shell.Start(context.Background(), opts)
		if err != nil {
			return nil, err
		}
		_ = first.Close() // Always nil.
		fd, err := syscall.Open(c.Leaks, syscall.O_RDONLY, 0)
		if err != nil {
			return nil, err
		}
		if err := syscall.Dup3(fd, 77, 0); err != nil {
			return nil, err
		}
	}
	var sh *shell.PersistentShell
	if c.OnDyingThread {
		onDyingThread(func() { sh, err = shell.Start(context.Background(), opts) })
	} else {
		sh, err = shell.Start(context.Background(), opts)
	}
	if err != nil {
		return nil, err
	}
	shells = append(shells, sh)
	if c.Neighbour != "" {
		other, err := shell.Start(context.Background(), opts)
		if err != nil {
			return shells, err
		}
		shells = append(shells, other)
		_, err = other.Run(context.Background(), c.Neighbour)
		return shells, err
	}
	return shells, nil
}

// onDyingThread runs f on a thread, and returns when the thread has ended.
func onDyingThread(f func()) {
	tid := make(chan int)
	go func() {
		runtime.LockOSThread() // Not unlocked: the thread ends with the goroutine.
		if syscall.Gettid() == os.Getpid() {
			onDyingThread(f) // The first thread does not end.
			tid <- 0
			return
		}
		f()
		tid <- syscall.Gettid()
	}()
	path := fmt.Sprintf("/proc/self/task/%d", <-tid)
	for err := error(nil); err == nil; runtime.Gosched() {
		_, err = os.Stat(path)
	}
}

// obey gives a command as long as it wants to be given. The shell has to keep
// to that: who waits for the reply has less patience.
func obey(sh *shell.PersistentShell, o order) (r reply) {
	ctx, cancel := context.WithTimeout(context.Background(), o.Timeout)
	defer cancel()
	var res command.Result
	var err error
	switch {
	case o.Close:
		err = sh.Close()
	case o.Reset:
		err = sh.Reset(ctx)
	default:
		req := command.Request{Script: o.Script, Dir: o.Dir, Env: o.Env}
		if o.Stdin != "" {
			req.Stdin = strings.NewReader(o.Stdin)
		}
		res, err = sh.Do(ctx, req)
		r.Output, r.Code, r.Dir = res.Stdout.String()+res.Stderr.String(), res.ExitCode, res.Dir
		for _, out := range []command.Output{res.Stdout, res.Stderr} {
			if out.Path != "" {
				spooled, _ := os.ReadFile(out.Path) // What can be read is what counts.
				r.Output += string(spooled)
			}
		}
		if res.Restart != nil {
			r.Restart = res.Restart.String()
		}
	}
	if err != nil {
		r.Err = err.Error()
	}
	const end = 32 << 10 // NULs take six bytes each on their way.
	if r.Length = len(r.Output); r.Length > 2*end {
		r.Output = r.Output[:end] + r.Output[r.Length-end:]
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	r.Memory = stats.Sys
	return r
}

// naive wraps what it starts with bwrap as a program may that was not told what
// is wrong with it.
type naive []string

func (n naive) Start(ctx context.Context, spec transport.Spec) (transport.Conn, error) {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return nil, err
	}
	spec.Argv = slices.Concat([]string{"bwrap"}, n, []string{"--", spec.Path}, spec.Argv[1:])
	spec.Path = bwrap
	return local.Transport{}.Start(ctx, spec)
}
