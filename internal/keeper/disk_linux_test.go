package keeper_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// A full disk costs no session anything, and nothing is started that would not be found again.
func TestOnAFullDiskSessionsGoOnAndNewOnesAreRefused(t *testing.T) {
	dir := testenv.MountTmpfs(t, "size=256k", 0)
	r := registry(t, dir)
	k := kept(t, r, "s", &keeper.Spec{Dir: "/tmp"})
	says(t, k, "x=kept")
	free := testenv.Fill(t, dir)

	assert.Equal(t, "kept /usr", says(t, k, "cd /usr; sleep 0.02; echo $x $PWD"))
	_, err := r.Session(testenv.Context(t), "new", &keeper.Spec{})
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.ErrorContains(t, err, "make room there")
	_, err = k.Do(testenv.Context(t), command.Request{Script: "y=ran", ID: "once"})
	require.ErrorIs(t, err, syscall.ENOSPC)
	_, err = k.Fork(testenv.Context(t), "fork")
	require.ErrorIs(t, err, syscall.ENOSPC)
	_, err = r.Upgrade(testenv.Context(t), k, keeper.Upgrade{Force: true})
	require.Error(t, err)
	assert.Equal(t, "kept none", says(t, k, "echo $x ${y-none}"))
	list, err := r.List(testenv.Context(t), true)
	require.NoError(t, err)
	assert.Len(t, list, 1, "nothing is left of what could not be")

	free()
	other := kept(t, r, "new", &keeper.Spec{})
	assert.Equal(t, "here", says(t, other, "echo here"))
	_, err = k.Do(testenv.Context(t), command.Request{Script: "y=ran", ID: "once"})
	require.NoError(t, err)
	assert.Equal(t, "kept ran", says(t, k, "echo $x $y"))
	require.NoError(t, r.Close(testenv.Context(t), k))
}

// A keeper has kept room for writing down how its session ended, and its name is free.
func TestASessionThatEndsOnAFullDiskIsToldHowAndFreesItsName(t *testing.T) {
	dir := testenv.MountTmpfs(t, "size=512k", 0)
	r := registry(t, dir)
	init := filepath.Join(testenv.TempDir(t), strings.Repeat("i", 200))
	require.NoError(t, os.WriteFile(init, nil, 0o600))
	k := kept(t, r, "s", &keeper.Spec{Dir: "/tmp", InitFiles: slices.Repeat([]string{init}, 100)}) // A large record has room, too.
	f, err := os.Create(filepath.Join(dir, "ballast"))
	require.NoError(t, err)
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	require.NoError(t, f.Close())
	require.NoError(t, r.Close(testenv.Context(t), k))
	require.NoError(t, os.Remove(f.Name()))
	again := kept(t, r, "s", &keeper.Spec{Dir: "/tmp"})
	assert.True(t, again.Made)
	require.NotNil(t, again.Was)
	assert.Equal(t, "was closed; it was in /tmp", again.Was.String())
}

// Where nothing can be written the error says so, and what to do.
func TestAReadOnlyFileSystemIsSaid(t *testing.T) {
	dir := testenv.MountTmpfs(t, "size=64k", unix.MS_RDONLY)
	r := registry(t, filepath.Join(dir, "keep"))
	list, err := r.List(testenv.Context(t), true)
	require.NoError(t, err)
	assert.Empty(t, list)
	_, err = r.Session(testenv.Context(t), "s", &keeper.Spec{})
	require.ErrorIs(t, err, syscall.EROFS)
	assert.EqualError(t, err, `session: open "s": the directory of kept sessions, `+r.Dir()+`, cannot be had: mkdir `+dir+
		`/keep: read-only file system; set XDG_STATE_HOME to a directory that can be written`)
}
