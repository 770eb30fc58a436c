package terminal_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

func TestOnAFullDiskTheErrorOfATerminalSaysWhatToDo(t *testing.T) {
	dir := testenv.MountTmpfs(t, "size=256k", 0)
	r := openIn(t, filepath.Join(dir, "terminals"), nil)
	free := testenv.Fill(t, dir)
	_, err := r.Start(testenv.Context(t), terminal.Spec{Argv: []string{"true"}})
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.ErrorContains(t, err, "; make room there")
	free()
	_, err = r.Start(testenv.Context(t), terminal.Spec{Argv: []string{"true"}})
	require.NoError(t, err)
}

func TestTheEndOfATerminalSaysWhyItsRecordingIsNotWhole(t *testing.T) {
	dir := testenv.MountTmpfs(t, "size=64k", 0)
	dirOfAll := filepath.Join(t.TempDir(), "terminals")
	r, other := openIn(t, dirOfAll, nil), openIn(t, dirOfAll, nil)
	term := startSpec(t, r, terminal.Spec{Line: "seq 100000", Record: filepath.Join(dir, "cast")})
	info := ended(t, term)
	assert.Equal(t, terminal.Succeeded, info.State)
	assert.Contains(t, info.RecordingFailed, syscall.ENOSPC.Error())
	past, err := other.Get(term.ID())
	require.NoError(t, err)
	assert.Equal(t, info.RecordingFailed, past.Info().RecordingFailed)
}
