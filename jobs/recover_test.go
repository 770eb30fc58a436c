package jobs_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/jobs"
)

// holdingProgram opens a registry, starts the jobs that it reads, a Spec a line, says
// their IDs, and lives on.
func holdingProgram() {
	r, err := jobs.Open(os.Args[1], nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var spec jobs.Spec
		if err := json.Unmarshal(in.Bytes(), &spec); err != nil {
			panic(err)
		}
		job, err := r.Start(context.Background(), spec)
		if err != nil {
			panic(err)
		}
		fmt.Println(job.ID)
	}
	_ = r.Close() // The end of its input: in good order.
}

// reapedProgram is a holdingProgram with a reaper of its own, as tests have one.
func reapedProgram() {
	testenv.Reap()
	holdingProgram()
}

// program is a run of the test binary as another program.
type program struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func play(t *testing.T, name string, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &program{Cmd: exec.Command(self, args...)}
	p.begin(t, name)
	return p
}

// begin starts it.
func (p *program) begin(t *testing.T, name string) {
	t.Helper()
	p.Env = append(os.Environ(), programVar+"="+name)
	if name == "reap" {
		p.Env = append(p.Env, testenv.OwnReaper)
	}
	p.Stderr = os.Stderr
	var err error
	p.in, err = p.StdinPipe()
	require.NoError(t, err)
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	p.out = bufio.NewReader(out)
	require.NoError(t, p.Start())
	t.Cleanup(p.kill)
}

// kill ends it as kill -9 does. It is safe to call twice.
func (p *program) kill() {
	_ = p.Process.Kill() // It may have ended.
	_ = p.Wait()         // As above.
}

func (p *program) start(t *testing.T, spec jobs.Spec) (id string) {
	t.Helper()
	b, err := json.Marshal(spec)
	require.NoError(t, err)
	_, err = p.in.Write(append(b, '\n'))
	require.NoError(t, err)
	line, err := p.out.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

func TestAfterAKillEveryJobIsFoundAsItIs(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	dir, fifo := t.TempDir(), fifoDir(t)
	require.NoError(t, syscall.Mkfifo(filepath.Join(fifo, "fifo2"), 0o600))
	p := play(t, "hold", dir)
	over := p.start(t, jobs.Spec{Command: "echo early; exit 3", Lifetime: jobs.Detached, Notify: true})
	going := p.start(t, jobs.Spec{Command: "echo begin; read x <fifo; seq 1 5; read x <fifo; echo MATCH; exit 4", Dir: fifo, Lifetime: jobs.Detached, Watch: []string{"MATCH"}})
	meanwhile := p.start(t, jobs.Spec{Command: "read x <fifo2; echo between; exit 5", Dir: fifo, Lifetime: jobs.Detached, Notify: true})
	with := p.start(t, jobs.Spec{Command: "echo with; setsid sleep 1000 & sleep 1000", Lifetime: jobs.WithProgram})
	onPTY := p.start(t, jobs.Spec{Command: "read x; echo got $x; sleep 1000", PTY: true, Lifetime: jobs.Detached})

	watch := openIn(t, dir, &jobs.Options{ReadOnly: true})
	require.NotEmpty(t, until(t, watch, going, "begin").Text)
	until(t, watch, with, "with")
	p.kill()
	writeFIFO(t, filepath.Join(fifo, "fifo2")) // One ends while nobody is there.
	writeFIFO(t, filepath.Join(fifo, "fifo"))
	end(t, watch, meanwhile)
	until(t, watch, going, "^5$")

	k := &taker{}
	r := openIn(t, dir, &jobs.Options{OnEvent: k.take})
	list, err := r.List(jobs.Filter{})
	require.NoError(t, err)
	require.Len(t, list, 5)

	k.await(t, jobs.Completed, 2)
	job, err := r.Get(over)
	require.NoError(t, err)
	assert.Equal(t, 3, job.Exit.Code)
	assert.Equal(t, "early\n", output(t, r, over))
	job, err = r.Get(meanwhile)
	require.NoError(t, err)
	assert.Equal(t, 5, job.Exit.Code)
	assert.Equal(t, "between\n", output(t, r, meanwhile))

	job = end(t, r, with)
	assert.Equal(t, jobs.ByProgram, job.Exit.Stopped)
	settle(t, r, with)

	job, err = r.Get(going)
	require.NoError(t, err)
	assert.Equal(t, jobs.Running, job.State)
	assert.Equal(t, []string{"MATCH"}, job.Watch)
	writeFIFO(t, filepath.Join(fifo, "fifo"))
	assert.Equal(t, going, k.await(t, jobs.Matched, 1)[0].Job.ID, "its pattern is armed again")
	job = end(t, r, going)
	assert.Equal(t, 4, job.Exit.Code)
	assert.Equal(t, "begin\n1\n2\n3\n4\n5\nMATCH\n", output(t, r, going))

	// It can be spoken to, and stopped, by who has not started it.
	require.NoError(t, r.Submit(onPTY, "hello"))
	until(t, r, onPTY, "^got hello")
	s, err := r.Stop(testenv.Context(t), onPTY)
	require.NoError(t, err)
	assert.Equal(t, jobs.ByRequest, s.Job.Exit.Stopped)
	assert.Len(t, k.of(jobs.Completed), 2, "each once")
	history, err := r.History(going)
	require.NoError(t, err)
	var kinds []jobs.EventKind
	for _, e := range history {
		kinds = append(kinds, e.Kind)
	}
	assert.Equal(t, []jobs.EventKind{jobs.Started, jobs.Recovered, jobs.Matched, jobs.Ended}, kinds)
	assert.Equal(t, "exit 4", history[3].Why)
	require.NoError(t, r.Close())

	// What was told is not told again.
	again := &taker{}
	r = openIn(t, dir, &jobs.Options{OnEvent: again.take})
	require.NoError(t, r.Close())
	assert.Empty(t, again.events)
}

// Neither the program nor the supervisor is there to end the job.
func TestAJobThatWasToEndWithItsProgramDoesInAnyCase(t *testing.T) {
	testenv.NeedProc(t)
	dir := t.TempDir()
	p := play(t, "hold", dir)
	id := p.start(t, jobs.Spec{Command: "echo $$; exec sleep 1000"})
	reader := openIn(t, dir, &jobs.Options{ReadOnly: true})
	pid, err := strconv.Atoi(until(t, reader, id, `^\d+$`).Text)
	require.NoError(t, err)
	killSupervisor(t, dir, id)
	p.kill()
	r := openIn(t, dir, nil)
	job := end(t, r, id)
	assert.Equal(t, jobs.Lost, job.State)
	assert.Equal(t, jobs.ByProgram, job.Exit.Stopped)
	assert.False(t, testenv.Alive(pid))
}

func TestWhatWasPolledIsRememberedOverACrash(t *testing.T) {
	dir := t.TempDir()
	r, err := jobs.Open(dir, nil)
	require.NoError(t, err)
	job := start(t, r, jobs.Spec{Command: "echo one; read x; echo two", Stdin: true, Lifetime: jobs.Detached})
	until(t, r, job.ID, "one")
	_, err = r.Poll(job.ID, nil)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	r = openIn(t, dir, nil)
	require.NoError(t, r.Submit(job.ID, ""))
	end(t, r, job.ID)
	p, err := r.Poll(job.ID, nil)
	require.NoError(t, err)
	assert.Equal(t, "two\n", p.New)
}

// A pid that somebody else has by now is neither reported alive nor signalled.
func TestAPidThatIsAnothersByNowIsNobodys(t *testing.T) {
	testenv.NeedProc(t)
	bystander := exec.Command("sleep", "1000")
	require.NoError(t, bystander.Start())
	defer func() {
		_ = bystander.Process.Kill() // It lives.
		_ = bystander.Wait()         // Killed.
	}()
	for name, change := range map[string]func(record map[string]any){
		"a later process": func(record map[string]any) {
			record["job"] = map[string]any{"PID": bystander.Process.Pid, "Start": 1}
			record["supervisor"] = record["job"]
		},
		"another boot": func(record map[string]any) {
			stat := startOf(t, bystander.Process.Pid)
			record["job"] = map[string]any{"PID": bystander.Process.Pid, "Start": stat}
			record["supervisor"], record["boot"] = record["job"], "another"
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r, err := jobs.Open(dir, nil)
			require.NoError(t, err)
			job, _ := run(t, r, jobs.Spec{Command: "echo x"})
			require.NoError(t, r.Close())
			require.NoError(t, os.Remove(filepath.Join(dir, job.ID, "exit.json")))
			require.NoError(t, syscall.Mkfifo(filepath.Join(dir, job.ID, "control"), 0o600), "as of a supervisor that was killed")
			path := filepath.Join(dir, job.ID, "process.json")
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			var record map[string]any
			require.NoError(t, json.Unmarshal(b, &record))
			change(record)
			b, err = json.Marshal(record)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, b, 0o600))

			r = openIn(t, dir, nil)
			job = end(t, r, job.ID)
			assert.Equal(t, jobs.Lost, job.State)
			assert.Equal(t, "x\n", output(t, r, job.ID))
			_, err = r.Stop(testenv.Context(t), job.ID)
			assert.ErrorIs(t, err, jobs.ErrFinished)
			require.NoError(t, r.Close())
			assert.True(t, testenv.Alive(bystander.Process.Pid))
		})
	}
}

func startOf(t *testing.T, pid int) uint64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := strings.Fields(string(b)[strings.LastIndexByte(string(b), ')')+1:])
	start, err := strconv.ParseUint(fields[19], 10, 64)
	require.NoError(t, err)
	return start
}

func TestOpenWaitsForOwnersThatAreBrief(t *testing.T) {
	testenv.Slow(t)
	dir := t.TempDir()
	first, err := jobs.Open(dir, &jobs.Options{Brief: true})
	require.NoError(t, err)
	source := interrupt.New()
	_, stopped := opening(dir, &jobs.Options{Interrupts: source})
	opened, failed := opening(dir, &jobs.Options{Brief: true})
	const longerThanForOthers = time.Second
	select {
	case err := <-failed:
		require.NoError(t, err, "it did not wait")
	case err := <-stopped:
		require.NoError(t, err, "as above")
	case <-opened:
		require.Fail(t, "two own it")
	case <-time.After(longerThanForOthers):
	}
	reason := errors.New("enough")
	source.Stop(reason)
	require.ErrorIs(t, <-stopped, reason)
	require.NoError(t, first.Close())
	var second *jobs.Registry
	select {
	case second = <-opened:
	case err := <-failed:
		require.NoError(t, err)
	}
	require.NoError(t, second.Close())

	r := openIn(t, dir, nil) // One that stays is not waited for.
	_, err = jobs.Open(dir, &jobs.Options{Brief: true})
	require.ErrorIs(t, err, jobs.ErrOwned)
	require.NoError(t, r.Close())
}

// opening opens a registry, beside the test.
func opening(dir string, opts *jobs.Options) (<-chan *jobs.Registry, <-chan error) {
	opened, failed := make(chan *jobs.Registry, 1), make(chan error, 1)
	go func() {
		if r, err := jobs.Open(dir, opts); err != nil {
			failed <- err
		} else {
			opened <- r
		}
	}()
	return opened, failed
}

func TestOneProgramOwnsARegistryAndOthersRead(t *testing.T) {
	testenv.Slow(t)
	dir := t.TempDir()
	p := play(t, "hold", dir)
	id := p.start(t, jobs.Spec{Command: "echo hello; read x; exit 6", Stdin: true, Lifetime: jobs.WithProgram, Notify: true})
	_, err := jobs.Open(dir, nil)
	require.ErrorIs(t, err, jobs.ErrOwned)
	assert.ErrorContains(t, err, fmt.Sprintf("pid %d", p.Process.Pid))
	assert.ErrorContains(t, err, "ReadOnly")

	r := openIn(t, dir, &jobs.Options{ReadOnly: true})
	until(t, r, id, "hello")
	poll, err := r.Poll(id, nil)
	require.NoError(t, err)
	assert.Equal(t, "hello\n", poll.New)
	poll, err = r.Poll(id, nil)
	require.NoError(t, err)
	assert.Empty(t, poll.New, "a reader has a count of its own")
	for _, err := range []error{
		func() error { _, err := r.Start(t.Context(), jobs.Spec{Command: "true"}); return err }(),
		func() error { _, err := r.Stop(t.Context(), id); return err }(),
		func() error { _, err := r.StopAll(t.Context(), jobs.Filter{}); return err }(),
		r.Submit(id, ""), r.CloseStdin(id), r.Forget(id), r.Resize(id, jobs.Size{Rows: 1, Cols: 1}),
	} {
		assert.ErrorIs(t, err, jobs.ErrNotPossible)
		assert.ErrorContains(t, err, "owner")
	}
	assert.Empty(t, r.Drain())
	_, open := <-r.Events()
	assert.False(t, open)

	require.NoError(t, p.in.Close())
	require.NoError(t, p.Wait())
	job := end(t, r, id)
	assert.Equal(t, jobs.ByProgram, job.Exit.Stopped)
	openIn(t, dir, nil)
	empty := openIn(t, filepath.Join(dir, "not", "there"), &jobs.Options{ReadOnly: true})
	list, err := empty.List(jobs.Filter{})
	require.NoError(t, err)
	assert.Empty(t, list)
	assert.NoDirExists(t, filepath.Join(dir, "not"))
}

// What is in the directory besides is left alone, and does no harm.
func TestADamagedRegistryIsOpened(t *testing.T) {
	dir := t.TempDir()
	r, err := jobs.Open(dir, nil)
	require.NoError(t, err)
	good, _ := run(t, r, jobs.Spec{Command: "echo good"})
	bad, _ := run(t, r, jobs.Spec{Command: "echo bad"})
	worse, _ := run(t, r, jobs.Spec{Command: "echo worse"})
	require.NoError(t, r.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, bad.ID, "spec.json"), []byte("{"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, worse.ID, "exit.json"), []byte("nonsense"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "job-file-abcdefgh"), nil, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "job-half-abcdefgh"), 0o700)) // Its program was killed before it had a spec.
	require.NoError(t, os.Mkdir(filepath.Join(dir, "something"), 0o700))
	r = openIn(t, dir, nil)
	assert.Equal(t, "good\n", output(t, r, good.ID))
	_, err = r.Get(bad.ID)
	assert.ErrorIs(t, err, jobs.ErrNotFound)
	_, err = r.Get(worse.ID)
	assert.ErrorContains(t, err, "damaged")
	assert.NoDirExists(t, filepath.Join(dir, "job-half-abcdefgh"))
	assert.DirExists(t, filepath.Join(dir, "something"))
	assert.DirExists(t, filepath.Join(dir, bad.ID))
	run(t, r, jobs.Spec{Command: "true"})
}
