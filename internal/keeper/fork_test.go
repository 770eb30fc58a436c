package keeper_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
)

// fork forks a session, for the time of a test.
func fork(t *testing.T, k *keeper.Kept, name string) *keeper.Kept {
	t.Helper()
	one, err := k.Fork(testenv.Context(t), name)
	require.NoError(t, err)
	far, ok := one.(*keeper.Kept)
	require.True(t, ok)
	t.Cleanup(far.Disconnect)
	return far
}

func TestAForkHasAllOfTheStateAndAKeeperOfItsOwn(t *testing.T) {
	dir := testenv.TempDir(t)
	r := registry(t, dir)
	old := syscall.Umask(0o027)
	parent := kept(t, r, "parent", &keeper.Spec{Dir: "/tmp", Env: []string{"PATH=" + os.Getenv("PATH"), "BORN=with", "a.b=nameless"}})
	syscall.Umask(old)
	says(t, parent, "cd /usr; x=1; a=(1 '2 3'); f() { echo f $x; }; export E=s3cret; set -o noglob; shopt -s nullglob; alias l='echo l'; trap 'echo usr' USR1")
	says(t, parent, "set -- one 'two three'; pushd /tmp >/dev/null")

	one := fork(t, parent, "fork")
	assert.NotEqual(t, parent.Record.PID, one.Record.PID)
	says(t, parent, "x=parent; cd /")
	parent.Disconnect()
	require.NoError(t, r.Kill(testenv.Context(t), "parent"))

	assert.Equal(t, "/tmp 1 2 3 f 1 s3cret with 0027 two three /tmp /usr", says(t, one, `echo $PWD $x "${a[1]}" $(f) $(bash -c 'echo $E $BORN') $(umask) $2 $(dirs -l)`))
	assert.Equal(t, "on on alias l='echo l' a.b=nameless", says(t, one, "[[ -o noglob ]] && printf 'on '; shopt -q nullglob && printf 'on '; echo $(alias -p) $(env | grep -F a.b)"))
	assert.Contains(t, says(t, one, "trap -p USR1"), "echo usr")
	assert.Equal(t, "1", says(t, kept(t, registry(t, dir), "fork", nil), "echo $x"), "others find it by its name")

	require.NoError(t, one.Reset(testenv.Context(t)))
	assert.Equal(t, "none /tmp with", says(t, one, "echo ${x-none} $PWD $BORN"), "a reset is that of the session that it was made from")
}

func TestNothingOfTheStateStaysInAFile(t *testing.T) {
	dir := testenv.TempDir(t)
	parent := kept(t, registry(t, dir), "parent", nil)
	says(t, parent, "export E=s3cr3t-value")
	one := fork(t, parent, "fork")
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		require.NoError(t, err)
		if e.Type().IsRegular() {
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.False(t, bytes.Contains(b, []byte("s3cr3t-value")), path)
		}
		return nil
	}))
	out, err := exec.Command("ls", "-l", fmt.Sprintf("/proc/%d/fd", one.Record.PID)).Output()
	if err == nil { // There is a /proc.
		assert.NotContains(t, string(out), "given", "the file is gone for good")
	}
	assert.NotContains(t, says(t, one, "ls -l /proc/$$/fd/ 2>/dev/null; :"), "given")
}

func TestAForkWaitsForTheCommandThatRuns(t *testing.T) {
	r := registry(t, testenv.TempDir(t))
	k := kept(t, r, "s", nil)
	dir := testenv.TempDir(t)
	done := make(chan error, 1)
	go func() {
		_, err := k.Do(testenv.Context(t), command.Request{Script: "echo $$ >" + dir + "/begun; until [ -e " + dir + "/go ]; do sleep 0.01; done; x=late"})
		done <- err
	}()
	testenv.AwaitFile(t, dir+"/begun")
	soon, cancel := context.WithTimeout(testenv.Context(t), 50*time.Millisecond)
	defer cancel()
	_, err := k.Fork(soon, "never")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	forked := make(chan session.Handle, 1)
	go func() {
		one, err := k.Fork(testenv.Context(t), "fork")
		assert.NoError(t, err)
		forked <- one
	}()
	require.NoError(t, os.WriteFile(dir+"/go", nil, 0o600))
	require.NoError(t, <-done)
	one := (<-forked).(*keeper.Kept)
	defer one.Disconnect()
	assert.Equal(t, "late", says(t, one, "echo ${x-early}"))
	_, err = r.Session(testenv.Context(t), "never", nil)
	require.ErrorIs(t, err, session.ErrNotFound)
}

func TestForksThatCannotBe(t *testing.T) {
	r := registry(t, testenv.TempDir(t))
	bash := filepath.Join(testenv.TempDir(t), "bash")
	path, err := exec.LookPath("bash")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(path, bash))
	k := kept(t, r, "s", &keeper.Spec{Bash: bash})
	says(t, k, "x=1")
	for _, name := range []string{"", ".", "a/b", strings.Repeat("a", 65)} {
		_, err := k.Fork(testenv.Context(t), name)
		require.ErrorIs(t, err, session.ErrName, "%q", name)
	}
	kept(t, r, "there", nil)
	for _, name := range []string{"s", "there"} {
		_, err = k.Fork(testenv.Context(t), name)
		require.ErrorIs(t, err, session.ErrExists)
		assert.EqualError(t, err, `session: fork to "`+name+`": there is one of that name`)
	}
	require.NoError(t, os.Remove(bash))
	_, err = k.Fork(testenv.Context(t), "new")
	require.ErrorContains(t, err, "its keeper ended at once: ")
	assert.ErrorContains(t, err, bash)
	list, err := r.List(testenv.Context(t), true)
	require.NoError(t, err)
	assert.Len(t, list, 2, "nothing is left of it")
	assert.Equal(t, "1", says(t, k, "echo $x"))
}
