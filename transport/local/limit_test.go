package local_test

import (
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/local"
)

// starts starts a bash with files.
func starts(t *testing.T, files ...*os.File) error {
	t.Helper()
	bash, err := transport.FindBash("")
	require.NoError(t, err)
	c, err := local.Transport{}.Start(testenv.Context(t), transport.Spec{Path: bash, Argv: []string{"bash", "-c", ":"}, Files: files})
	if err == nil {
		<-c.Done()
		require.NoError(t, c.Close())
	}
	return err
}

// The kernel has one error for both: only where the limit of open files is the reason that is said, with what to do about it.
func TestAFileThatIsNotOpenIsNotTakenForTheLimit(t *testing.T) {
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close() // Read only.
	require.NoError(t, starts(t, null))

	const high = 500 // Nobody else gets it meanwhile.
	fd, err := unix.FcntlInt(null.Fd(), unix.F_DUPFD_CLOEXEC, high)
	require.NoError(t, err)
	gone := os.NewFile(uintptr(fd), "gone")
	require.NoError(t, unix.Close(fd))
	err = starts(t, null, gone)
	require.ErrorIs(t, err, syscall.EBADF)
	require.NotErrorIs(t, err, syscall.EMFILE)
	require.ErrorIs(t, gone.Close(), syscall.EBADF)

	low := lower(t)
	require.ErrorIs(t, starts(t, slices.Repeat([]*os.File{null}, low)...), syscall.EMFILE)
	require.NoError(t, starts(t, slices.Repeat([]*os.File{null}, low/4)...)) // Those that are moved, too, stay below the limit.
}

// Start makes pipes, which may have the highest numbers of all: however few numbers are left, an error says that it is the limit.
func TestPipesNearTheLimitAreTakenForIt(t *testing.T) {
	require.NoError(t, starts(t)) // What is opened once is open now.
	low := lower(t)
	files := slices.Repeat([]*os.File{os.Stdin}, low/4) // It has the lowest number of all, so each of them is moved.
	var held []*os.File
	defer func() {
		for _, f := range held {
			_ = f.Close() // Read only.
		}
	}()
	for {
		f, err := os.Open(os.DevNull)
		if err != nil {
			require.ErrorIs(t, err, syscall.EMFILE)
			break
		}
		held = append(held, f)
	}
	refused := 0
	for len(held) > 0 {
		err := starts(t, files...)
		if err == nil {
			break
		}
		require.ErrorIs(t, err, syscall.EMFILE, "%d numbers are left", refused)
		refused++
		last := len(held) - 1 // The highest one, or nearly.
		require.NoError(t, held[last].Close())
		held = held[:last]
	}
	assert.NotEmpty(t, held, "it never starts")
	assert.Greater(t, refused, len(files), "the files that are moved need numbers, too")
}

// lower lowers the limit of open files while a test runs, and returns it.
func lower(t *testing.T) int {
	t.Helper()
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	t.Cleanup(func() { assert.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)) })
	low := limit
	low.Cur = 64
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low))
	return int(low.Cur)
}
