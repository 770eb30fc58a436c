package approve

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"golang.org/x/sys/unix"
)

func TestWhoCanWriteAFile(t *testing.T) {
	me, other := uint32(os.Geteuid()), uint32(4711)
	const file, dir, link = unix.S_IFREG, unix.S_IFDIR, unix.S_IFLNK
	for _, row := range []struct {
		mode uint32
		uid  uint32
		want string
	}{
		{file | 0o755, 0, ""}, {file | 0o4755, 0, ""}, {dir | 0o755, 0, ""}, {link | 0o777, 0, ""}, {dir | unix.S_ISVTX | 0o775, 0, ""},
		{file | 0o775, 0, "which the group 7 can write"}, {file | 0o757, 0, "which everybody can write"}, {dir | 0o775, 0, "the group 7 can write /x"},
		{dir | unix.S_ISVTX | 0o777, 0, "everybody can write /x"}, {file | 0o555, other, "which the user 4711 can write"}, {link | 0o777, other, "the user 4711 can write /x"},
	} {
		var st unix.Stat_t
		st.Uid, st.Gid = row.uid, 7
		setMode(&st.Mode, row.mode)
		assert.Equal(t, row.want, writable("/x", st), fmt.Sprintf("%o of %d", row.mode, row.uid))
		if st.Uid = me; me != 0 && row.uid == other {
			assert.Contains(t, writable("/x", st), "this user can write")
		}
	}
}

// setMode is for a mode that has 16 bits on some systems.
func setMode[M uint16 | uint32](at *M, mode uint32) { *at = M(mode) }
