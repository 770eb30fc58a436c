package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
)

// patience is how long tests wait for what comes at once on an idle machine.
const patience = time.Minute

// TestMain lets the test binary play limpet: in the scripts, and in the tests
// that start it on a terminal.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) != "limpet" {
		testenv.Reap()
	}
	testscript.Main(leaving{m}, map[string]func(){"limpet": main})
}

// leaving removes what tests have left for each other.
type leaving struct{ *testing.M }

func (l leaving) Run() int {
	defer func() { _ = os.RemoveAll(brought) }() // It is one for temporary files, or there is none.
	return l.M.Run()
}

func TestScript(t *testing.T) {
	testenv.Slow(t)
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition: func(cond string) (bool, error) {
			switch cond {
			case "hup":
				return !signal.Ignored(syscall.SIGHUP), nil // Under nohup it is.
			case "root":
				return os.Geteuid() == 0, nil
			case "sandbox":
				_, err := sandbox.Probe(context.Background())
				return err == nil, nil
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Setup: func(env *testscript.Env) error {
			env.Setenv("GORACE", "atexit_sleep_ms=0") // Else each program sleeps for a second at its end.
			env.Defer(func() {                        // What a script that failed has left on terminals.
				state := filepath.Join(env.WorkDir, "state", "limpet", "terminals")
				_ = exec.Command("limpet", "term", "stop", "--all", "--state", state).Run() // Mostly there are none.
				keep := filepath.Join(env.WorkDir, "state", "limpet", "keep")
				if _, err := os.Stat(filepath.Join(keep, "hosts")); err == nil {
					end := exec.Command("limpet", "hosts", "close", "--all")
					end.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(env.WorkDir, "state"))
					_ = end.Run() // Mostly it was done.
				}
				endKept(keep)
			})
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":   scriptCode,
			"signal": scriptSignal,
			"json":   scriptJSON,
		},
	})
}

// endKept ends the sessions that a script which failed has left.
func endKept(dir string) {
	r, err := keeper.Open(dir)
	if err != nil {
		return
	}
	list, _ := r.List(context.Background(), false) // Mostly there are none.
	for _, one := range list {
		_ = r.Kill(context.Background(), one.Record.Name) // As above.
	}
}

// scriptCode is "code N program args...": the program ends with exit code N.
func scriptCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N program args...")
	}
	checkCode(ts, args[0], ts.Exec(args[1], args[2:]...))
}

func checkCode(ts *testscript.TestScript, want string, err error) {
	got := 0
	if err != nil {
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = ended.ExitCode()
	}
	if strconv.Itoa(got) != want {
		ts.Fatalf("exit code is %d, want %s", got, want)
	}
}

// scriptSignal is "signal SIG N program args...": the program gets the signal
// as soon as something was written to the fifo $WORK/bell, and then ends with
// exit code N.
func scriptSignal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: signal SIG N program args...")
	}
	bell, err := newBell(ts.MkAbs("bell"))
	ts.Check(err)
	defer bell.close()
	cmd := exec.Command(args[2], args[3:]...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"))
	cmd.Stdout, cmd.Stderr = ts.Stdout(), ts.Stderr()
	ts.Check(cmd.Start())
	if err := bell.wait(); err != nil {
		_ = cmd.Process.Kill() // It is of no use any more.
		_ = cmd.Wait()
		ts.Fatalf("waiting for the bell: %v", err)
	}
	ts.Check(cmd.Process.Signal(unix.SignalNum("SIG" + args[0])))
	checkCode(ts, args[1], cmd.Wait())
}

// bell is a fifo by which a command says that it runs.
type bell struct {
	path string
	fifo *os.File
}

func newBell(path string) (*bell, error) {
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, err
	}
	// Open for both, there is always a writer, and so no end of file.
	fifo, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return &bell{path, fifo}, nil
}

func (b *bell) wait() error {
	if err := b.fifo.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := b.fifo.Read(make([]byte, 64))
	return err
}

func (b *bell) close() {
	_ = b.fifo.Close() // Nothing was written through it.
	_ = os.Remove(b.path)
}

// scriptJSON is "json LINE PATH WANT": in line number LINE of stdout the value
// at PATH, as in receipt.pipeline or leftover.0.command, is the JSON text WANT.
func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: [!] json LINE PATH WANT")
	}
	lines := strings.Split(strings.TrimSpace(ts.ReadFile("stdout")), "\n")
	number, err := strconv.Atoi(args[0])
	ts.Check(err)
	if number < 1 || number > len(lines) {
		ts.Fatalf("there is no line %d in %d lines", number, len(lines))
	}
	var value any
	ts.Check(json.Unmarshal([]byte(lines[number-1]), &value))
	for key := range strings.SplitSeq(args[1], ".") {
		value, err = member(value, key)
		ts.Check(err)
	}
	got, err := json.Marshal(value)
	ts.Check(err)
	if (string(got) == args[2]) == neg {
		ts.Fatalf("%s is %s, want %s", args[1], got, args[2])
	}
}

func member(value any, key string) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		if v, ok := value[key]; ok {
			return v, nil
		}
	case []any:
		if i, err := strconv.Atoi(key); err == nil && i < len(value) {
			return value[i], nil
		}
	}
	return nil, fmt.Errorf("no %q in %v", key, value)
}
