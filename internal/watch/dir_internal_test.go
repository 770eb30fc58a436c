package watch

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/errtext"
)

// What inotify lacks is no full disk, and the remedy is its own.
func TestLimitsOfFileEventsAreNamed(t *testing.T) {
	err := worded(syscall.ENOSPC)
	require.NotErrorIs(t, err, syscall.ENOSPC)
	assert.ErrorContains(t, err, "fs.inotify.max_user_watches")
	err = worded(syscall.EMFILE)
	require.ErrorIs(t, err, syscall.EMFILE)
	assert.ErrorContains(t, err, "fs.inotify.max_user_instances")
	assert.Empty(t, errtext.Remedy(err), "it says so itself")
	assert.Equal(t, syscall.ENOENT, worded(syscall.ENOENT))
}

func TestADirectoryThatIsNotThereIsNotWatched(t *testing.T) {
	_, err := Dir(t.TempDir() + "/none")
	require.ErrorIs(t, err, syscall.ENOENT)
	assert.ErrorContains(t, err, "/none")
}
