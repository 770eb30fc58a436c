package keeper_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// newer is the registry of a directory as a limpet of another version has it.
func newer(t *testing.T, dir string) *keeper.Registry {
	t.Helper()
	r := registry(t, dir)
	r.Version, r.Execute = "newer", asKeeper("newer")
	return r
}

// upgraded upgrades a session, which must work.
func upgraded(t *testing.T, r *keeper.Registry, name string, how keeper.Upgrade) *keeper.Kept {
	t.Helper()
	k := kept(t, r, name, nil)
	_, err := r.Upgrade(testenv.Context(t), k, how)
	require.NoError(t, err)
	return k
}

// aloneIs makes sure that the registry has one session, and that one keeper runs, with its directory, and
// nothing else.
func aloneIs(t *testing.T, r *keeper.Registry, name string) keeper.Listed {
	t.Helper()
	one := alone(t, r, name)
	dirs, err := filepath.Glob(filepath.Join(r.Dir(), "*", "record.json"))
	require.NoError(t, err)
	assert.Len(t, dirs, 1)
	return one
}

// alone is aloneIs where a keeper that was killed may have left its directory.
func alone(t *testing.T, r *keeper.Registry, name string) keeper.Listed {
	t.Helper()
	var list []keeper.Listed
	testenv.Await(t, "other keepers to end", func() bool {
		var err error
		list, err = r.List(testenv.Context(t), true)
		require.NoError(t, err)
		return len(list) == 1 && len(keepers(t, r)) == 1
	})
	assert.Equal(t, name, list[0].Record.Name)
	assert.True(t, list[0].Alive)
	return list[0]
}

// keepers are the processes that were executed to keep sessions of a registry.
func keepers(t *testing.T, r *keeper.Registry) (pids []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, path := range all {
		b, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(b), "\x00keeper\x00") && strings.Contains(string(b), r.Dir()) {
			pids = append(pids, filepath.Base(filepath.Dir(path)))
		}
	}
	return pids
}

func TestAnUpgradeKeepsTheSession(t *testing.T) {
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	old := syscall.Umask(0o027)
	user := kept(t, registry(t, dir), "s", &keeper.Spec{Dir: "/tmp", Env: []string{"PATH=" + os.Getenv("PATH"), "BORN=with"}})
	syscall.Umask(old)
	bash := says(t, user, "cd /usr; x=1; f() { echo f $x; }; alias l='echo l'; export E=e; echo $$")
	require.NoError(t, user.Checkpoint(testenv.Context(t), "good"))
	says(t, user, "x=2")

	r := newer(t, dir)
	k := kept(t, r, "s", nil)
	lost, err := r.Upgrade(testenv.Context(t), k, keeper.Upgrade{})
	require.NoError(t, err)
	assert.Empty(t, lost)
	for _, who := range []*keeper.Kept{k, user, kept(t, r, "s", &keeper.Spec{})} {
		assert.False(t, who == k && who.Made)
		assert.Equal(t, "/usr 2 f 2 e with 0027", says(t, who, `echo $PWD $x $(f) $(bash -c 'echo $E $BORN') $(umask)`))
		assert.NotEqual(t, bash, says(t, who, "echo $$"))
	}
	one := aloneIs(t, r, "s")
	assert.Equal(t, "newer", one.Record.Version)
	assert.WithinDuration(t, user.Record.Created, one.Record.Created, 0)
	assert.True(t, one.Record.Settled)
	assert.False(t, alive(t, bash))

	_, err = user.Rollback(testenv.Context(t), "good")
	require.NoError(t, err)
	assert.Equal(t, "1", says(t, user, "echo $x"), "checkpoints come along")
	require.NoError(t, user.Reset(testenv.Context(t)))
	assert.Equal(t, "none /tmp", says(t, user, "echo ${x-none} $PWD"))

	upgraded(t, registry(t, dir), "s", keeper.Upgrade{}) // And once more, from another one.
	assert.Equal(t, "/tmp", says(t, user, "pwd"))
	assert.Equal(t, "test", aloneIs(t, r, "s").Record.Version)
	require.NoError(t, r.Close(testenv.Context(t), user))
	_, err = r.Session(testenv.Context(t), "s", nil)
	require.ErrorContains(t, err, "the last one was closed; it was in /tmp")
}

func TestAnUpgradeRefusesToLoseAnything(t *testing.T) {
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	r := newer(t, dir)
	for _, row := range []struct{ name, script, want string }{
		{"process", "sleep 1000 & echo $!", `process \d+ \(sleep 1000\)`},
		{"descriptor", "exec 5</dev/null; echo $$", "open descriptors"},
	} {
		k := kept(t, registry(t, dir), row.name, nil)
		pid := says(t, k, row.script)
		_, err := r.Upgrade(testenv.Context(t), k, keeper.Upgrade{})
		require.ErrorIs(t, err, wire.ErrWouldLose)
		assert.Regexp(t, `^session: upgrade "`+row.name+`": an upgrade would lose `+row.want+`.*; --force does it all the same$`, err.Error())
		assert.True(t, alive(t, pid))
		assert.Equal(t, "/tmp", says(t, k, "pwd"))
		lost, err := r.Upgrade(testenv.Context(t), k, keeper.Upgrade{Force: true})
		require.NoError(t, err)
		require.Len(t, lost, 1)
		assert.Regexp(t, row.want, lost[0])
		testenv.Await(t, "it to end", func() bool { return !alive(t, pid) })
		assert.Equal(t, "/tmp", says(t, k, "pwd"))
	}

	k := kept(t, registry(t, dir), "job", nil)
	begun := filepath.Join(testenv.TempDir(t), "begun")
	done := make(chan error, 1)
	go func() {
		_, err := k.Do(testenv.Context(t), command.Request{Script: "echo $BASHPID >" + begun + "; sleep 1000", HandOver: true})
		done <- err
	}()
	testenv.AwaitFile(t, begun)
	require.NoError(t, k.HandOver(testenv.Context(t)))
	err := <-done
	require.ErrorIs(t, err, shell.ErrHandedOver)
	_, err = r.Upgrade(testenv.Context(t), k, keeper.Upgrade{})
	require.ErrorIs(t, err, wire.ErrWouldLose)
	assert.ErrorContains(t, err, "jobs that were commands: 1")
}

func TestAnUpgradeWaitsForTheCommandThatRuns(t *testing.T) {
	dir := testenv.TempDir(t)
	r := newer(t, dir)
	k := kept(t, registry(t, dir), "s", nil)
	files := testenv.TempDir(t)
	done := make(chan error, 1)
	go func() {
		_, err := k.Do(testenv.Context(t), command.Request{Script: "echo $$ >" + files + "/begun; until [ -e " + files + "/go ]; do sleep 0.01; done; x=late"})
		done <- err
	}()
	testenv.AwaitFile(t, files+"/begun")
	_, err := r.Upgrade(testenv.Context(t), k, keeper.Upgrade{NoWait: true})
	require.ErrorIs(t, err, shell.ErrBusy)
	soon, cancel := context.WithTimeout(testenv.Context(t), 50*time.Millisecond)
	defer cancel()
	_, err = r.Upgrade(soon, k, keeper.Upgrade{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	after := make(chan error, 1)
	go func() {
		_, err := r.Upgrade(testenv.Context(t), k, keeper.Upgrade{})
		after <- err
	}()
	testenv.Await(t, "the upgrade to wait", func() bool {
		_, err := k.Do(testenv.Context(t), command.Request{Script: "true", TurnTimeout: time.Millisecond})
		return assert.ErrorIs(t, err, shell.ErrBusy) && err != nil
	})
	info, err := k.Info(testenv.Context(t))
	require.NoError(t, err, "it is told meanwhile what runs")
	assert.Contains(t, info.Running, "x=late")
	require.NoError(t, os.WriteFile(files+"/go", nil, 0o600))
	require.NoError(t, <-done)
	require.NoError(t, <-after)
	assert.Equal(t, "late", says(t, k, "echo $x"))
	aloneIs(t, r, "s")
}

func TestAnUpgradeThatCannotBeChangesNothing(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	k := kept(t, registry(t, dir), "s", nil)
	top := testenv.TempDir(t)
	bash := says(t, k, "x=1; mkdir "+top+"/d; cd "+top+"/d; echo $$")
	for _, row := range []struct {
		what    string
		execute func(dir string) *exec.Cmd
		want    string
	}{
		{"ends", func(string) *exec.Cmd { return exec.Command("/bin/sh", "-c", "echo no luck >&2; exit 3") }, "its keeper ended at once: no luck"},
		{"is no limpet", func(string) *exec.Cmd { return exec.Command("/bin/true") }, "its keeper ended at once: it said nothing"},
		{"is not there", func(string) *exec.Cmd { return exec.Command("/no/such/limpet") }, "/no/such/limpet: no such file"},
		{"is of another version", asKeeper("odd"), "the new keeper is of limpet odd, and not of newer"},
		{"hangs", func(dir string) *exec.Cmd { return exec.Command("/bin/sh", "-c", "exec sleep 1000", "keeper", dir) }, "context deadline exceeded"},
	} {
		r := newer(t, dir)
		r.Execute = row.execute
		ctx, cancel := context.WithTimeout(testenv.Context(t), 3*time.Second)
		_, err := r.Upgrade(ctx, k, keeper.Upgrade{})
		cancel()
		require.Error(t, err, row.what)
		assert.Regexp(t, row.want, err.Error(), row.what)
		assert.Equal(t, "1 "+bash, says(t, k, "echo $x $$"), row.what)
		aloneIs(t, r, "s")
	}
	r := newer(t, dir)
	require.NoError(t, os.Remove(top+"/d"))
	_, err := r.Upgrade(testenv.Context(t), k, keeper.Upgrade{})
	require.ErrorContains(t, err, `the new shell is in "`+top+`", and not in "`+top+`/d": is that directory gone?`)
	aloneIs(t, r, "s")
	says(t, k, "cd /")
	_, err = r.Upgrade(testenv.Context(t), k, keeper.Upgrade{})
	require.NoError(t, err, "nothing of that is in the way")
	assert.Equal(t, "1", says(t, k, "echo $x"))
}

func TestARequestForAnUpgradeIsChecked(t *testing.T) {
	r := registry(t, testenv.TempDir(t))
	k := kept(t, r, "s", nil)
	good := wire.Upgrade{ID: strings.Repeat("a", 26), Version: "newer", Path: "/bin/sh", Args: []string{"sh"}}
	_, err := k.Session.Upgrade(testenv.Context(t), good)
	require.ErrorContains(t, err, `"/bin/sh" is another file for the keeper of the session: is that in another container?`)
	st, err := os.Stat("/bin/sh")
	require.NoError(t, err)
	of := st.Sys().(*syscall.Stat_t)
	good.Device, good.Inode = uint64(of.Dev), of.Ino
	for _, id := range []string{"", "x", "../" + strings.Repeat("a", 23), k.Record.ID} {
		bad := good
		bad.ID = id
		_, err := k.Session.Upgrade(testenv.Context(t), bad)
		require.Error(t, err, "%q", id)
	}
	assert.Equal(t, "/tmp", says(t, k, "pwd"))
	assert.DirExists(t, filepath.Join(r.Dir(), k.Record.ID), "it was there")
}

func TestWhatEndsASessionEndsItDuringAnUpgrade(t *testing.T) {
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	r := newer(t, dir)
	for round := range testenv.Repeats(2, 10, 100) {
		k := kept(t, registry(t, dir), "s", nil)
		says(t, k, "cd /usr")
		old := keepers(t, r)
		require.Len(t, old, 1)
		done := make(chan error, 1)
		go func() {
			one, err := r.Session(testenv.Context(t), "s", nil)
			if err == nil {
				_, err = r.Upgrade(testenv.Context(t), one, keeper.Upgrade{})
				one.Disconnect()
			}
			done <- err
		}()
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
		if round%2 == 0 {
			require.NoError(t, r.Close(testenv.Context(t), k), "round %d", round)
			_, err := r.Session(testenv.Context(t), "s", nil)
			require.ErrorIs(t, err, session.ErrNotFound, "round %d", round)
			assert.ErrorContains(t, err, "the last one was closed; it was in /usr", "round %d", round)
			<-done // It was before, or in vain.
		} else {
			_ = syscall.Kill(atoi(t, old[0]), syscall.SIGTERM) // It may be gone.
			if err := <-done; err == nil {
				require.NoError(t, r.Close(testenv.Context(t), k))
			}
		}
		testenv.Await(t, "all keepers to end", func() bool { return len(keepers(t, r)) == 0 })
		k.Disconnect()
	}
}

func TestCallersDoNotNoticeAnUpgrade(t *testing.T) {
	testenv.Slow(t)
	dir := testenv.TempDir(t)
	versions := []*keeper.Registry{registry(t, dir), newer(t, dir)}
	user := kept(t, versions[0], "s", nil)
	says(t, user, "n=0")
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		runs int
		over = make(chan struct{})
	)
	ask := func(get func() (session.Handle, func(), error)) {
		all.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				k, done, err := get()
				if !assert.NoError(t, err) {
					return
				}
				res, err := k.Run(testenv.Context(t), "n=$((n + 1)); echo $n")
				done()
				if !assert.NoError(t, err) || !assert.NotEmpty(t, res.Stdout.String()) {
					return
				}
				mu.Lock()
				runs++
				mu.Unlock()
			}
		})
	}
	nothing := func() {}
	for range 2 {
		ask(func() (session.Handle, func(), error) { return user, nothing, nil })
		for _, spec := range []*keeper.Spec{nil, {Dir: "/"}} {
			ask(func() (session.Handle, func(), error) {
				k, err := versions[0].Session(testenv.Context(t), "s", spec)
				if err != nil {
					return nil, nil, err
				}
				assert.False(t, k.Made)
				return k, k.Disconnect, nil
			})
		}
	}
	all.Go(func() {
		for {
			select {
			case <-over:
				return
			default:
			}
			list, err := versions[0].List(testenv.Context(t), true)
			if !assert.NoError(t, err) || !assert.Len(t, list, 1) || !assert.NotNil(t, list[0].Info) {
				return
			}
		}
	})
	for i := range testenv.Repeats(2, 6, 40) {
		r := versions[(i+1)%2]
		k, err := r.Session(testenv.Context(t), "s", nil)
		require.NoError(t, err)
		_, err = r.Upgrade(testenv.Context(t), k, keeper.Upgrade{})
		require.NoError(t, err)
		k.Disconnect()
	}
	close(over)
	all.Wait()
	assert.Equal(t, fmt.Sprint(runs), says(t, user, "echo $n"), "each ran once")
	aloneIs(t, versions[0], "s")
}

// What callers bring still follows them, in an upgrade and in a fork, and a command that ran once does not run again.
func TestWhatCallersBringSurvivesAnUpgrade(t *testing.T) {
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	r := registry(t, dir)
	k := kept(t, r, "s", &keeper.Spec{Dir: "/tmp", Env: []string{"PATH=" + os.Getenv("PATH"), "DISPLAY=:0", "TERM=dumb", "GORACE=atexit_sleep_ms=0"}})
	const ask = `echo "${DISPLAY-none} $TERM"`
	assert.Equal(t, ":1 xterm", asCaller(t, k, ask, "DISPLAY=:1", "TERM=xterm"))
	says(t, k, "export TERM=mine")
	once := command.Request{Script: "echo ran >>$PWD/" + filepath.Base(dir), ID: "once", Dir: testenv.TempDir(t)}
	_, err := k.Do(testenv.Context(t), once)
	require.NoError(t, err)

	upgraded(t, newer(t, dir), "s", keeper.Upgrade{})
	assert.Equal(t, ":2 mine", asCaller(t, k, ask, "DISPLAY=:2", "TERM=vt100"), "what was set by hand stays")
	assert.Equal(t, "none mine", asCaller(t, k, ask, "TERM=vt100"))
	_, err = k.Do(testenv.Context(t), once)
	var ended *wire.EndedError
	require.ErrorAs(t, err, &ended)
	b, err := os.ReadFile(filepath.Join(once.Dir, filepath.Base(dir)))
	require.NoError(t, err)
	assert.Equal(t, "ran\n", string(b))

	fork, err := k.Fork(testenv.Context(t), "fork")
	require.NoError(t, err)
	other, ok := fork.(*keeper.Kept)
	require.True(t, ok)
	defer other.Disconnect()
	assert.Equal(t, ":3 mine", asCaller(t, other, ask, "DISPLAY=:3", "TERM=vt100"))
	assert.Equal(t, ":4 mine", asCaller(t, k, ask, "DISPLAY=:4", "TERM=vt100"))
}

// A job that has a supervisor of its own is the new keeper's.
func TestJobsSurviveAnUpgrade(t *testing.T) {
	testenv.NeedProc(t)
	ctx, dir := testenv.Context(t), testenv.TempDir(t)
	r := newer(t, dir)
	k := kept(t, registry(t, dir), "s", &keeper.Spec{Dir: "/tmp"})
	job, err := k.StartJob(ctx, jobs.Spec{Command: "echo begun; read -r x; echo got $x", Stdin: true, Lifetime: jobs.Detached})
	require.NoError(t, err)
	over, err := k.StartJob(ctx, jobs.Spec{Command: "echo over"})
	require.NoError(t, err)
	of, err := k.Jobs()
	require.NoError(t, err)
	_, err = of.Wait(ctx, jobs.WaitOptions{IDs: []string{over.ID}})
	require.NoError(t, err)

	waited := make(chan jobs.Waited, 1)
	go func() { // It is led on.
		got, err := of.Wait(ctx, jobs.WaitOptions{IDs: []string{job.ID}})
		assert.NoError(t, err)
		waited <- got
	}()
	followed := make(chan string, 1)
	go func() { // As above.
		text := ""
		for c, err := range of.Follow(ctx, job.ID, 0) {
			assert.NoError(t, err)
			text += string(c.Data)
		}
		followed <- text
	}()
	lost, err := r.Upgrade(ctx, k, keeper.Upgrade{})
	require.NoError(t, err)
	assert.Empty(t, lost)
	aloneIs(t, r, "s")
	testenv.Await(t, "the new keeper to count the job", func() bool {
		info, err := k.Info(ctx)
		return err == nil && info.Jobs == 1
	})
	require.NoError(t, of.Submit(job.ID, "typed"))
	assert.Equal(t, jobs.WaitExited, (<-waited).Reason)
	assert.Equal(t, "begun\ngot typed\n", <-followed)
	log, err := of.Log(job.ID, jobs.LogOptions{})
	require.NoError(t, err)
	assert.Equal(t, "begun\ngot typed\n", log.Text)
	log, err = of.Log(over.ID, jobs.LogOptions{})
	require.NoError(t, err)
	assert.Equal(t, "over\n", log.Text)
}
