package keeper_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/session/sessiontest"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // It cannot fail. Else a keeper sleeps for a second when it exits.
	if len(os.Args) == 4 && os.Args[1] == "keeper" {
		if err := keeper.Serve(os.Args[3], keeper.Program{Version: os.Args[2], Execute: asKeeper(os.Args[2])}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	play := map[string]func(dir, name, what string) error{"client": playClient, "upgrader": playUpgrader, "stranger": playStranger}
	if len(os.Args) == 5 && play[os.Args[1]] != nil {
		if err := play[os.Args[1]](os.Args[2], os.Args[3], os.Args[4]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testenv.Main(m))
}

// asKeeper has this program serve a directory, as limpet of a version.
func asKeeper(version string) func(dir string) *exec.Cmd {
	return func(dir string) *exec.Cmd { return exec.Command(os.Args[0], "keeper", version, dir) }
}

// registry returns one of a directory of its own, whose sessions end with the test.
func registry(t *testing.T, dir string) *keeper.Registry {
	t.Helper()
	r, err := keeper.Open(dir)
	require.NoError(t, err)
	r.Version = "test"
	r.Execute = asKeeper(r.Version)
	t.Cleanup(func() {
		list, err := r.List(testenv.Context(t), false)
		require.NoError(t, err)
		for _, one := range list {
			if err := r.Kill(testenv.Context(t), one.Record.Name); !errors.Is(err, session.ErrNotFound) { // It ends just now.
				require.NoError(t, err)
			}
		}
	})
	return r
}

// kept opens a session in /tmp, unless spec says otherwise.
func kept(t *testing.T, r *keeper.Registry, name string, spec *keeper.Spec) *keeper.Kept {
	t.Helper()
	if spec == nil {
		spec = &keeper.Spec{Dir: "/tmp"}
	}
	k, err := r.Session(testenv.Context(t), name, spec)
	require.NoError(t, err)
	t.Cleanup(k.Disconnect)
	return k
}

func says(t *testing.T, s session.Handle, script string) string {
	t.Helper()
	res, err := s.Run(testenv.Context(t), script)
	require.NoError(t, err, script)
	return strings.TrimSuffix(res.Stdout.String(), "\n")
}

func TestASessionOutlivesWhoMadeIt(t *testing.T) {
	dir := testenv.TempDir(t)
	first := kept(t, registry(t, dir), "build", nil)
	assert.True(t, first.Made)
	assert.Nil(t, first.Was)
	assert.Equal(t, "/tmp", says(t, first, "pwd; cd /usr; x=1; f() { echo f; }"))
	pid := says(t, first, "echo $$")
	first.Disconnect()

	again := kept(t, registry(t, dir), "build", &keeper.Spec{Dir: "/"})
	assert.False(t, again.Made)
	assert.Equal(t, "/usr 1 f "+pid, says(t, again, "echo $PWD $x $(f) $$"))
	there, err := registry(t, dir).Session(testenv.Context(t), "build", nil)
	require.NoError(t, err)
	defer there.Disconnect()
	assert.Equal(t, "/usr", says(t, there, "pwd"))
}

func TestASessionThatIsKeptKeepsThePromises(t *testing.T) {
	testenv.Slow(t)
	sessiontest.Run(t, func(t *testing.T) session.Handle {
		return kept(t, registry(t, testenv.TempDir(t)), "s", nil)
	})
}

func TestWhoAskAtOnceGetTheSameSession(t *testing.T) {
	dir := testenv.TempDir(t)
	r := registry(t, dir)
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		made int
		pids = make(map[string]bool)
	)
	for range 10 {
		all.Go(func() {
			k, err := r.Session(testenv.Context(t), "one", &keeper.Spec{})
			if !assert.NoError(t, err) {
				return
			}
			defer k.Disconnect()
			res, err := k.Run(testenv.Context(t), "echo $$")
			assert.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			pids[res.Stdout.String()] = true
			if k.Made {
				made++
			}
		})
	}
	all.Wait()
	assert.Equal(t, 1, made)
	assert.Len(t, pids, 1)
}

func TestManySessionsStartAtOnce(t *testing.T) {
	r := registry(t, testenv.TempDir(t))
	many := testenv.Repeats(4, 8, 100)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			name := fmt.Sprint("s", i)
			k, err := r.Session(testenv.Context(t), name, &keeper.Spec{})
			if !assert.NoError(t, err) {
				return
			}
			defer k.Disconnect()
			res, err := k.Run(testenv.Context(t), "echo "+name)
			assert.NoError(t, err)
			assert.Equal(t, name+"\n", res.Stdout.String())
		})
	}
	all.Wait()
	list, err := r.List(testenv.Context(t), false)
	require.NoError(t, err)
	assert.Len(t, list, many)
}

func TestCloseFreesTheNameAndIsRemembered(t *testing.T) {
	r := registry(t, testenv.TempDir(t))
	k := kept(t, r, "build", nil)
	says(t, k, "cd /usr; x=1")
	require.NoError(t, r.Close(testenv.Context(t), k))
	_, err := k.Run(testenv.Context(t), "true")
	require.ErrorIs(t, err, session.ErrClosed)
	_, err = r.Session(testenv.Context(t), "build", nil)
	require.ErrorIs(t, err, session.ErrNotFound)
	assert.EqualError(t, err, `session: find "build": there is none of that name: the last one was closed; it was in /usr`)
	all, err := r.List(testenv.Context(t), true)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.False(t, all[0].Alive)
	assert.Equal(t, keeper.Ended, all[0].Record.State)

	again := kept(t, r, "build", nil)
	assert.True(t, again.Made)
	require.NotNil(t, again.Was)
	assert.Equal(t, "was closed; it was in /usr", again.Was.String())
	assert.Equal(t, "none", says(t, again, "echo ${x-none}"))
	all, err = r.List(testenv.Context(t), true)
	require.NoError(t, err)
	assert.Len(t, all, 1, "it is told once")
}

func TestWhoComesWhileItClosesGetsANewOne(t *testing.T) {
	testenv.Slow(t)
	r := registry(t, testenv.TempDir(t))
	for range 5 {
		k := kept(t, r, "s", nil)
		says(t, k, "trap '' TERM; sleep 1000 & x=1") // It takes a while to end.
		closed := make(chan error, 1)
		go func() { closed <- k.Close() }()
		again := kept(t, r, "s", nil)
		res, err := again.Run(testenv.Context(t), "echo ${x-none}")
		if err == nil && res.Stdout.String() == "1\n" { // It came before the other.
			require.NoError(t, <-closed)
			continue
		}
		if !again.Made { // It came in between.
			require.ErrorIs(t, err, session.ErrClosed)
		} else {
			require.NoError(t, err)
			assert.Equal(t, "none\n", res.Stdout.String())
		}
		<-closed
	}
}

func TestAKeeperWhoseFilesAreRemoved(t *testing.T) {
	testenv.Slow(t)
	r := registry(t, testenv.TempDir(t))
	k := kept(t, r, "socket", nil)
	says(t, k, "x=1")
	k.Disconnect()
	require.NoError(t, os.Remove(filepath.Join(r.Dir(), k.Record.ID, "s")))
	assert.Equal(t, "1", says(t, kept(t, r, "socket", nil), "echo $x"), "it is made anew")

	// One whose directory is removed ends, and one whose registry is, which nobody can be told.
	whole := registry(t, testenv.TempDir(t))
	lost, k := kept(t, whole, "all", nil), kept(t, r, "all", nil)
	pids := []string{says(t, lost, "echo $$"), says(t, k, "cd /usr; echo $$")}
	require.NoError(t, os.RemoveAll(whole.Dir()))
	require.NoError(t, os.RemoveAll(filepath.Join(r.Dir(), k.Record.ID)))
	testenv.Await(t, "the keepers and their bashes to end", func() bool {
		return !slices.ContainsFunc(pids, func(pid string) bool { return alive(t, pid) }) && !testenv.Alive(k.Record.PID) && !testenv.Alive(lost.Record.PID)
	})
	assert.NoDirExists(t, whole.Dir(), "what was removed as a whole is not made again")
	again := kept(t, r, "all", nil)
	assert.True(t, again.Made)
	require.NotNil(t, again.Was, "its loss is told")
	assert.Equal(t, "ended when its directory was removed; it was in /usr", again.Was.String())
}

// Logind does it at a user's last logout: RemoveIPC in logind.conf(5).
func TestASessionOutlivesTheFilesOfItsShell(t *testing.T) {
	r := registry(t, testenv.TempDir(t))
	k := kept(t, r, "s", nil)
	says(t, k, "x=1; f() { echo $x; }")
	dir := testenv.TempDir(t)
	begun, goOn := filepath.Join(dir, "begun"), filepath.Join(dir, "go")
	require.NoError(t, syscall.Mkfifo(goOn, 0o600))
	done := make(chan command.Result, 1)
	go func() {
		res, err := k.Run(testenv.Context(t), "echo >"+begun+"; read -r line <"+goOn+"; x=$line; echo end")
		assert.NoError(t, err)
		done <- res
	}()
	testenv.AwaitFile(t, begun)
	removed := 0
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", k.Record.PID))
	require.NoError(t, err)
	for _, fd := range fds {
		if path, _ := os.Readlink(fd); strings.Contains(path, "/limpet-") && filepath.Base(path) == "lock" && !strings.HasPrefix(path, r.Dir()) {
			testenv.Await(t, "it to be removed", func() bool { return os.RemoveAll(filepath.Dir(path)) == nil }) // What is missed is made anew meanwhile.
			removed++
		}
	}
	require.Equal(t, 1, removed, "the directory of its shell")
	require.NoError(t, os.WriteFile(goOn, []byte("2\n"), 0))
	assert.Equal(t, "end\n", (<-done).Stdout.String())
	assert.Equal(t, "2", says(t, k, "f"))
}

func TestAKeeperThatIsKilledIsSaidToBe(t *testing.T) {
	testenv.Slow(t)
	r := registry(t, testenv.TempDir(t))
	k := kept(t, r, "build", nil)
	says(t, k, "cd /usr")
	begun := filepath.Join(testenv.TempDir(t), "begun")
	done := make(chan error, 1)
	go func() {
		_, err := k.Do(testenv.Context(t), command.Request{Script: "echo $$ >" + begun + "; sleep 1000"})
		done <- err
	}()
	pid := testenv.AwaitFile(t, begun)
	testenv.Await(t, "it to be written down", func() bool {
		b, err := os.ReadFile(filepath.Join(r.Dir(), k.Record.ID, "now"))
		return err == nil && strings.Contains(string(b), "sleep 1000")
	})
	require.NoError(t, syscall.Kill(k.Record.PID, syscall.SIGKILL))
	require.ErrorIs(t, <-done, wire.ErrGone)

	again := kept(t, r, "build", nil)
	assert.True(t, again.Made)
	require.NotNil(t, again.Was)
	assert.Equal(t, "ended when its keeper was killed; it was in /usr, and ran echo $$ >"+begun+"; sleep 1000", again.Was.String())
	testenv.Await(t, "its bash to end", func() bool { return proc.State(proc.ID{PID: atoi(t, pid)}) == 0 || !alive(t, pid) })
}

func atoi(t *testing.T, text string) (n int) {
	t.Helper()
	_, err := fmt.Sscan(text, &n)
	require.NoError(t, err)
	return n
}

func alive(t *testing.T, pid string) bool {
	t.Helper()
	return testenv.Alive(atoi(t, pid))
}

func TestAKeeperThatDoesNotAnswerIsToldAndCanBeKilled(t *testing.T) {
	testenv.Slow(t)
	r := registry(t, testenv.TempDir(t))
	k := kept(t, r, "stuck", nil)
	says(t, k, "cd /usr")
	require.NoError(t, syscall.Kill(k.Record.PID, syscall.SIGSTOP))
	testenv.Await(t, "it to stand still", func() bool {
		st, err := proc.Read(k.Record.PID)
		return err == nil && st.State == 'T'
	})
	_, err := r.Session(testenv.Context(t), "stuck", &keeper.Spec{})
	require.ErrorIs(t, err, keeper.ErrMute)
	assert.ErrorContains(t, err, "limpet session close --force stuck")
	list, err := r.List(testenv.Context(t), false)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Nil(t, list[0].Info)
	require.NoError(t, r.Kill(testenv.Context(t), "stuck"))
	assert.True(t, kept(t, r, "stuck", nil).Made)
}

func TestAnIdleSessionEnds(t *testing.T) {
	testenv.Slow(t)
	r := registry(t, testenv.TempDir(t))
	k := kept(t, r, "idle", &keeper.Spec{Dir: "/", Idle: 500 * time.Millisecond})
	says(t, k, "cd /usr; sleep 1") // Work counts.
	assert.Equal(t, "/usr", says(t, k, "pwd"))
	testenv.Await(t, "its end", func() bool {
		list, err := r.List(testenv.Context(t), false)
		return err == nil && len(list) == 0
	})
	again := kept(t, r, "idle", nil)
	require.NotNil(t, again.Was)
	assert.Equal(t, "ended after 500ms idle; it was in /usr", again.Was.String())
}

func TestSIGTERMEndsAKeeperInGoodOrder(t *testing.T) {
	r := registry(t, testenv.TempDir(t))
	k := kept(t, r, "s", nil)
	says(t, k, "cd /usr; sleep 1000 &")
	require.NoError(t, syscall.Kill(k.Record.PID, syscall.SIGHUP)) // It is not for it.
	assert.Equal(t, "/usr", says(t, k, "pwd"))
	require.NoError(t, syscall.Kill(k.Record.PID, syscall.SIGTERM))
	testenv.Await(t, "its end", func() bool {
		list, err := r.List(testenv.Context(t), false)
		return err == nil && len(list) == 0
	})
	again := kept(t, r, "s", nil)
	require.NotNil(t, again.Was)
	assert.Equal(t, "was ended by SIGTERM; it was in /usr", again.Was.String())
}

func TestAKeeperThatCannotStartSaysWhy(t *testing.T) {
	testenv.Slow(t)
	r := registry(t, testenv.TempDir(t))
	r.Execute = func(string) *exec.Cmd { return exec.Command("sh", "-c", "echo no luck >&2; exit 3") }
	_, err := r.Session(testenv.Context(t), "s", &keeper.Spec{})
	require.EqualError(t, err, `session: open "s": its keeper ended at once: no luck`)
	// A keeper takes its socket away before it says why it ends.
	r.Execute = func(dir string) *exec.Cmd {
		return exec.Command("sh", "-c", `exec 3<&-; rm "$1/s"; sleep 0.3; echo no luck >&2; exit 3`, "sh", dir)
	}
	_, err = r.Session(testenv.Context(t), "s", &keeper.Spec{})
	require.EqualError(t, err, `session: open "s": its keeper ended at once: no luck`)
	r.Execute = func(string) *exec.Cmd { return exec.Command("/no/such/program") }
	_, err = r.Session(testenv.Context(t), "s", &keeper.Spec{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	list, err := r.List(testenv.Context(t), false)
	require.NoError(t, err)
	assert.Empty(t, list)
}

func TestADirectoryThatCannotBeHadIsSaid(t *testing.T) {
	file := filepath.Join(testenv.TempDir(t), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	r := registry(t, filepath.Join(testenv.TempDir(t), "none"))
	list, err := r.List(testenv.Context(t), true)
	require.NoError(t, err)
	assert.Empty(t, list, "nothing was made for a look")
	assert.NoDirExists(t, r.Dir())

	bad, err := keeper.Open(file)
	require.NoError(t, err)
	_, err = bad.Session(testenv.Context(t), "s", &keeper.Spec{})
	require.ErrorIs(t, err, syscall.ENOTDIR)
	assert.ErrorContains(t, err, "set XDG_STATE_HOME to a directory that can be written")
	t.Setenv("HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	_, err = keeper.Open("")
	assert.ErrorContains(t, err, "set XDG_STATE_HOME, or HOME")
}

func TestOthersAreKeptOut(t *testing.T) {
	dir := testenv.TempDir(t)
	old := syscall.Umask(0)
	k := kept(t, registry(t, dir), "s", nil)
	syscall.Umask(old)
	assert.Equal(t, "0000", says(t, k, "umask"), "it is the caller's")
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		assert.Zero(t, info.Mode().Perm()&0o077, "%s: %v", path, info.Mode())
		return nil
	}))
}

func TestAPathOfAnyLengthWillDo(t *testing.T) {
	testenv.NeedProc(t)
	dir := filepath.Join(testenv.TempDir(t), strings.Repeat("long/", 40))
	assert.Equal(t, "/tmp", says(t, kept(t, registry(t, dir), "s", nil), "pwd"))
}

func TestNamesThatCannotBe(t *testing.T) {
	r := registry(t, testenv.TempDir(t))
	for _, name := range []string{"", ".", "a/b", "-x", "../x", strings.Repeat("a", 65)} {
		_, err := r.Session(testenv.Context(t), name, &keeper.Spec{})
		require.ErrorIs(t, err, session.ErrName, "%q", name)
	}
}

func TestNobodyIsAKeeperByChance(t *testing.T) {
	require.True(t, errors.Is(keeper.Serve(testenv.TempDir(t), keeper.Program{Version: "test", Execute: asKeeper("test")}), keeper.ErrNotForPeople))
}
