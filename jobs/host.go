package jobs

import (
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/supervisor"
	"github.com/limpet-sh/limpet/internal/tty"
	"github.com/limpet-sh/limpet/transport"
)

// host starts the job by its transport, which needs this program: it may prepare much,
// and go on with it while the job runs. A supervisor takes the output, and ends
// the job if this program is gone.
func (j *job) host(ctx context.Context, r *Registry, bash string, spec Spec) (err error) {
	var p plumbing
	defer p.close()
	if err := p.connect(spec); err != nil {
		return err
	}
	conn, err := spec.Transport.Start(ctx, transport.Spec{
		Path: bash, Argv: hostedArgv(spec), Dir: spec.Dir, Env: spec.Env, Own: append(slices.Clone(spec.own), j.spec.Mark),
		Stdin: p.stdin, Stdout: p.stdout, Stderr: p.stdout,
	})
	if err != nil {
		return err
	}
	p.started()
	fail := func(err error) error { return errors.Join(err, conn.Close()) }
	if p.feed != nil && len(spec.Command) > longestArg {
		stop := context.AfterFunc(ctx, func() { _ = p.feed.SetWriteDeadline(time.Unix(1, 0)) }) // A pipe can.
		defer stop()
		if _, err := p.feed.WriteString(spec.Command + "\x00"); err != nil {
			return fail(err)
		}
	}
	o := j.order(r)
	o.Adopt = &supervisor.Adoption{Job: identify(conn.PID()), Started: time.Now()}
	files := []*os.File{p.output}
	switch {
	case spec.PTY:
		o.PTY = &supervisor.Size{Rows: spec.Size.Rows, Cols: spec.Size.Cols}
	case spec.Stdin:
		files = append(files, p.feed)
	}
	if err = j.supervise(supervisor.Start(ctx, o, files...)); err != nil {
		return fail(err)
	}
	r.work.Go(func() { r.await(j, conn) })
	return nil
}

// identify is the identity of a process that was not waited for.
func identify(pid int) proc.ID {
	id := proc.ID{PID: pid}
	if st, err := proc.Read(pid); err == nil {
		id = st.ID()
	}
	return id
}

// hostedArgv is bash -c COMMAND. A command that is too long for an argument comes by
// stdin, up to a NUL: the job may see no file of this machine. What makes a terminal
// the controlling one has to be done by the job, as its transport does not.
func hostedArgv(spec Spec) []string {
	args := []string{"bash", "--noprofile", "--norc", "-c"}
	script := spec.Command
	if len(script) > longestArg {
		script = `IFS= read -r -d "" REPLY; `
		if !spec.Stdin && !spec.PTY {
			script += "exec </dev/null; "
		}
		script += `eval "unset -v REPLY; $REPLY"`
	}
	if spec.PTY {
		// Where setsid(1) has to fork it gives no signal back, so a bash makes a code of it.
		// Ctrl-C is for the command, and not for that bash.
		return append(args, `exec setsid -cw bash --noprofile --norc -c 'trap : INT QUIT; bash --noprofile --norc -c "$0"; exit $?' "$0"`, script)
	}
	return append(args, script)
}

// plumbing is what connects a job that its transport starts.
type plumbing struct {
	stdin, stdout *os.File // the job's ends
	output        *os.File // what it prints; of a terminal also what it reads
	feed          *os.File // what it reads; nil if that is nothing
}

func (p *plumbing) connect(spec Spec) (err error) {
	if spec.PTY {
		p.output, p.stdout, err = tty.Open(tty.Size{Rows: spec.Size.Rows, Cols: spec.Size.Cols})
		p.stdin = p.stdout
		if len(spec.Command) > longestArg {
			p.feed = p.output
		}
		return err
	}
	if p.output, p.stdout, err = os.Pipe(); err != nil {
		return err
	}
	if spec.Stdin || len(spec.Command) > longestArg {
		p.stdin, p.feed, err = os.Pipe()
	} else {
		p.stdin, err = os.Open(os.DevNull)
	}
	return err
}

// started closes the job's ends: it has its own.
func (p *plumbing) started() {
	for _, f := range []*os.File{p.stdin, p.stdout} {
		if f != nil {
			_ = f.Close() // Nothing was written by it. One that is both is closed by then.
		}
	}
	p.stdin, p.stdout = nil, nil
}

// close closes all: the supervisor has its own.
func (p *plumbing) close() {
	p.started()
	for _, f := range []*os.File{p.output, p.feed} {
		if f != nil {
			_ = f.Close() // As above.
		}
	}
}

// await waits for a job of this program's, and has its supervisor record how it ended.
// Registry.Close ends the job.
func (r *Registry) await(j *job, conn transport.Conn) {
	<-conn.Done()
	exit := conn.Exit()
	r.ended(j, exit) // First: to close it may take longer than the supervisor waits for a word.
	if err := conn.Close(); err != nil {
		r.opts.Logger.Warn("limpet: after a job", "job", j.spec.ID, "err", err)
	}
}

// ended tells the supervisor how a job of this program's has ended.
func (r *Registry) ended(j *job, exit transport.Exit) {
	end := supervisor.Exit{Code: exit.Code, Signal: exit.Signal}
	if u := exit.Rusage; u != nil {
		end.User, end.System, end.MaxRSS = supervisor.Usage(u)
	}
	if err := supervisor.Ended(j.dir, end); err != nil {
		r.opts.Logger.Warn("limpet: the end of a job could not be told to its supervisor", "job", j.spec.ID, "err", err)
	}
}
