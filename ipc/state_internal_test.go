package ipc

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/saved"
	"github.com/limpet-sh/limpet/internal/script"
)

// What one bash saves another can be given, and what that refuses is known.
func TestAStateGoesFromOneBashToAnother(t *testing.T) {
	d, _ := hostileDir(t)
	read := func(lines ...string) {
		t.Helper()
		cmd := exec.Command("bash", "--noprofile", "--norc", "--noediting", "-i")
		cmd.Stdin, cmd.Stdout = strings.NewReader(strings.Join(lines, "")), d.stdout
		d.rewind()
		_ = cmd.Run() // Its status is that of the last line.
	}
	save := func(lines ...string) saved.State {
		t.Helper()
		id := environ.NewID()
		require.NoError(t, d.renameState())
		read(append(lines, d.saveLines(script.ViaBuiltin, id, "", saved.Nothing))...)
		state, err := d.takeState(d.stateName, id, "seal")
		require.NoError(t, err)
		return state
	}
	before, after := save(), save("x=1 y=2 z=3\n")
	pieces := after.Since(before)
	require.Len(t, pieces, 3)

	id := environ.NewID()
	lines, err := d.restore(script.ViaBuiltin, pieces, id)
	require.NoError(t, err)
	read("readonly y=0\n", lines)
	rec, done := d.reported(id)
	require.True(t, done)
	assert.Zero(t, rec.Status)
	assert.Equal(t, []int{1}, d.refused())

	lines, err = d.restore(script.ViaBuiltin, pieces, id)
	require.NoError(t, err)
	got := save(lines)
	assert.Empty(t, d.refused())
	assert.Empty(t, after.Since(got))
	assert.Empty(t, got.Since(after))
}
