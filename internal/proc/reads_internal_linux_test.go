package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// nullDevice stands for a terminal: it is a character device as well.
func nullDevice(t *testing.T) uint64 {
	t.Helper()
	var st unix.Stat_t
	require.NoError(t, unix.Stat("/dev/null", &st))
	return uint64(st.Rdev)
}

// A process as /proc shows it: descriptor 0 is the terminal; of each thread there is what it sleeps in.
func TestAThreadThatHasJustEndedHidesNothing(t *testing.T) {
	reading := fmt.Sprintf("%d 0x0%s\n", unix.SYS_READ, strings.Repeat(" 0x0", 7))
	const gone, unreadable = "", "/" // There is no file, or one that cannot be read.
	for name, test := range map[string]struct {
		threads []string
		reads   bool
		fails   bool
	}{
		"one that reads":             {[]string{reading}, true, false},
		"one that runs":              {[]string{"running\n"}, false, false},
		"gone":                       {[]string{gone}, false, false},
		"gone, before the reader":    {[]string{gone, reading}, true, false},
		"gone, behind the reader":    {[]string{reading, gone}, true, false},
		"unreadable":                 {[]string{unreadable}, false, true},
		"unreadable, after a reader": {[]string{reading, unreadable}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.Mkdir(filepath.Join(dir, "fd"), 0o700))
			require.NoError(t, os.Symlink("/dev/null", filepath.Join(dir, "fd", "0")))
			for i, sleeps := range test.threads {
				file := filepath.Join(dir, "task", fmt.Sprint(i+1), "syscall")
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
				switch sleeps {
				case gone:
				case unreadable:
					require.NoError(t, os.Mkdir(file, 0o700))
				default:
					require.NoError(t, os.WriteFile(file, []byte(sleeps), 0o600))
				}
			}
			reads, alone, err := threadsRead(dir, nullDevice(t))
			assert.Equal(t, test.reads, reads)
			assert.Equal(t, test.reads, alone)
			assert.Equal(t, test.fails, err != nil, "%v", err)
		})
	}
}
