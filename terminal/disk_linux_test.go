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
