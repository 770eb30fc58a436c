package audit

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// On a full disk the error says so, and the line that did not fit is not there in part.
func TestALineThatDoesNotFitIsTakenBack(t *testing.T) {
	dir := testenv.MountTmpfs(t, "size=64k", 0)
	l, err := Open(filepath.Join(dir, "a.jsonl"))
	require.NoError(t, err)
	for err == nil {
		err = l.Write(Entry{Time: time.Now(), Kind: "begin", Script: strings.Repeat("x", 5000)})
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	assert.ErrorContains(t, err, "a.jsonl")
	got, broken := entries(t, dir)
	assert.NotEmpty(t, got)
	assert.Zero(t, broken)
}
