package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/internal/exact"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// A terminal needs a program as long as it runs, and a command ends. So "term start"
// executes limpet again as "term host", which has the one terminal:
//
//	term start                 term host
//	   | -- order, by a pipe ----> |   as JSON: values of the environment are not to be
//	   |                           |   read in a list of processes
//	   |                           | opens the registry, serves it, starts the program
//	   | <-- report, by a pipe --- |   the ID, or what is wrong
//	   x                           |
//	                               | until the program has ended, and whoever is attached
//	                               x has read all

// The descriptors of a host.
const (
	hostOrderFD = 3 + iota
	hostReportFD
)

// hostOrder is what a host is told.
type hostOrder struct {
	State   exact.String  `json:"state"` // the directory of the terminals
	Argv    exact.Strings `json:"argv"`
	Line    exact.String  `json:"line"`
	Dir     exact.String  `json:"dir"`
	Env     exact.Strings `json:"env"` // what the program gets in any case
	Own     exact.Strings `json:"own"` // what was asked for by name
	Size    terminal.Size `json:"size"`
	Session string        `json:"session"`
	Buffer  int64         `json:"buffer"`
	Record  exact.String  `json:"record"`
	Sandbox []string      `json:"sandbox"` // flags
	Pass    []string      `json:"pass"`    // names of variables
}

// hostReport is what a host says.
type hostReport struct {
	Info  terminal.Info   `json:"info"`
	Error json.RawMessage `json:"error"` // null: it runs
	Code  int             `json:"code"`  // the exit code for the error
}

// hostError is an error of the host's, with its exit code.
type hostError struct {
	error
	code int
}

func (e *hostError) Unwrap() error { return e.error }

// startHost starts a host, and returns when the program runs.
func startHost(ctx context.Context, o hostOrder) (terminal.Info, error) {
	fail := func(err error) (terminal.Info, error) { return terminal.Info{}, err }
	orderR, orderW, err := os.Pipe()
	if err != nil {
		return fail(err)
	}
	defer orderW.Close() // All was written by then.
	reportR, reportW, err := os.Pipe()
	if err != nil {
		_ = orderR.Close() // Nothing was written.
		return fail(err)
	}
	defer reportR.Close() // Read only.
	keepToItself()
	cmd := exec.Command(proc.Self())
	cmd.Args = []string{"limpet", "term", "host"}
	cmd.Env = withoutMarks()
	cmd.ExtraFiles = []*os.File{orderR, reportW}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // No hangup and no Ctrl-C of the caller's terminal is for it.
	err = proc.Start(cmd)
	_, _ = orderR.Close(), reportW.Close() // The host has its own.
	if err != nil {
		return fail(fmt.Errorf("executing limpet again: %w", err))
	}
	defer func() { _ = cmd.Process.Release() }() // It is waited for by whoever adopts it.
	stop := context.AfterFunc(ctx, func() {
		_ = orderW.SetWriteDeadline(time.Unix(1, 0)) // A pipe can.
		_ = reportR.SetReadDeadline(time.Unix(1, 0)) // As above. The host ends, as nobody takes its report.
	})
	defer stop()
	var report hostReport
	if err = json.NewEncoder(orderW).Encode(o); err == nil {
		err = json.NewDecoder(reportR).Decode(&report)
	}
	if ctx.Err() != nil {
		return fail(context.Cause(ctx))
	}
	if err != nil {
		return fail(fmt.Errorf("%w (%w)", errNoHost, err))
	}
	said, err := remote.UnmarshalError(report.Error)
	if err != nil || said != nil {
		return fail(&hostError{errors.Join(said, err), report.Code})
	}
	return report.Info, nil
}

// keepToItself keeps the descriptors that limpet was started with from what it starts: a
// host that had a pipe of the caller's would keep its reader waiting.
func keepToItself() {
	entries, err := os.ReadDir("/dev/fd")
	if err != nil {
		return // Whoever passes such on has to close them.
	}
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > int(os.Stderr.Fd()) {
			syscall.CloseOnExec(fd)
		}
	}
}

func termHostCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "host",
		Short:  "Look after one terminal; for limpet itself",
		Hidden: true,
		Args:   noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var o hostOrder
			orders, reports := os.NewFile(hostOrderFD, "order"), os.NewFile(hostReportFD, "report")
			for _, f := range []*os.File{orders, reports} {
				if st, err := f.Stat(); err != nil || st.Mode()&fs.ModeNamedPipe == 0 {
					return notForPeople(cmd)
				}
				syscall.CloseOnExec(int(f.Fd()))
			}
			if err := json.NewDecoder(orders).Decode(&o); err != nil {
				return notForPeople(cmd)
			}
			_ = orders.Close() // Read only.
			return hostTerminal(o, reports)
		},
	}
}

func notForPeople(cmd *cobra.Command) error {
	return usagef(cmd, "this is for limpet itself: use limpet term start")
}

// hostFarewell is how long the host waits for those who are attached, or wait, when the
// program has ended.
const hostFarewell = 5 * time.Second

// hostTerminal has a terminal from its start to its end.
func hostTerminal(o hostOrder, reports *os.File) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT) // Also if they were ignored: nobody else can end it in good order.
	report := func(info terminal.Info, err error) error {
		defer reports.Close() // Encode has the error.
		said := hostReport{Info: info, Error: remote.MarshalError(err)}
		if err != nil {
			said.Code = codeOf(err)
		}
		return errors.Join(err, json.NewEncoder(reports).Encode(said))
	}
	r, err := terminal.Open(string(o.State), &terminal.Options{Env: o.Env, MaxWait: math.MaxInt64})
	if err != nil {
		return report(terminal.Info{}, err)
	}
	server, err := remote.Serve(r)
	if err != nil {
		return errors.Join(report(terminal.Info{}, err), r.Close())
	}
	t, err := startHosted(r, o)
	if err != nil {
		return errors.Join(report(terminal.Info{}, err), server.Close(), r.Close())
	}
	if report(t.Info(), nil) == nil { // Else nobody knows of it.
		select {
		case <-t.Done():
		case <-signals:
		}
	}
	err = t.Close()
	<-t.Done()
	untilSaved(t, r.Dir(), signals)
	ctx, cancel := context.WithTimeout(context.Background(), hostFarewell)
	defer cancel()
	_ = server.Drain(ctx) // Who is slower misses the end; it is in the log.
	return errors.Join(err, server.Close(), r.Close())
}

// untilSaved waits until all of a terminal is written down: on a full disk nothing is lost
// as long as somebody may make room. Where the directory stays away it was removed, and
// nobody will ask for what was in it.
func untilSaved(t *terminal.Terminal, dir string, signals <-chan os.Signal) {
	const again = time.Second
	for gone := time.Duration(0); t.Save() != nil && gone < hostFarewell; {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			gone += again
		} else {
			gone = 0
		}
		select {
		case <-time.After(again):
		case <-signals:
			return
		}
	}
}

// startHosted starts the program.
func startHosted(r *terminal.Registry, o hostOrder) (*terminal.Terminal, error) {
	spec := terminal.Spec{
		Argv: o.Argv, Line: string(o.Line), Dir: string(o.Dir), Env: o.Own, Size: o.Size, Session: o.Session, BufferLimit: o.Buffer, Record: string(o.Record),
	}
	cmd, flags := &cobra.Command{}, sandboxFlags{}
	flags.add(cmd, "")
	if err := cmd.ParseFlags(o.Sandbox); err != nil {
		return nil, err
	}
	policy, asked, err := flags.policy(cmd, string(o.Dir))
	if err != nil {
		return nil, err
	}
	if asked {
		policy.Env.Pass = o.Pass
		where, err := sandbox.New(policy)
		if err != nil {
			return nil, err
		}
		spec.Transport = where
		if spec.Dir == "" {
			spec.Dir = flags.workspace
		}
	}
	return r.Start(context.Background(), spec)
}
