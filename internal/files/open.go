package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// The modes of what limpet makes: nobody but the owner comes near it.
const (
	DirMode  = 0o700
	FileMode = 0o600
)

// OpenRegular opens a file that a command may have replaced: not through a
// symlink at its end, not out of root, and without waiting for the other side of
// a fifo. The error is [fs.ErrInvalid] if name is no regular file.
//
// [os.Root.OpenFile] follows symlinks within root, with O_NOFOLLOW too. So what was opened
// must be the very file that the name was of, and is truncated (O_TRUNC) only then.
func OpenRegular(root *os.Root, name string, flag int) (*os.File, error) {
	const tries = 3 // A command may put another file there in between, which is its right.
	for try := 1; ; try++ {
		st, err := root.Lstat(name)
		if err != nil {
			return nil, err
		}
		if !st.Mode().IsRegular() {
			return nil, replaced(name)
		}
		f, err := root.OpenFile(name, flag&^os.O_TRUNC|syscall.O_NONBLOCK, 0)
		if err != nil {
			return nil, err
		}
		if !Same(f, st) {
			_ = f.Close() // Nothing was written.
			if try < tries {
				continue
			}
			return nil, replaced(name)
		}
		if flag&os.O_TRUNC != 0 {
			if err := f.Truncate(0); err != nil {
				_ = f.Close() // As above.
				return nil, err
			}
		}
		return f, nil
	}
}

func replaced(name string) error {
	return fmt.Errorf("ipc: %q was replaced by what is no file: %w", name, fs.ErrInvalid)
}

// Named reports whether name, in root, is the very file that is open. The error is
// [fs.ErrNotExist] if nothing has the name.
func Named(root *os.Root, name string, f *os.File) (bool, error) {
	st, err := root.Lstat(name)
	if err != nil {
		return false, err
	}
	return Same(f, st), nil
}

// Same reports whether the open file is the one that st is of.
func Same(f *os.File, st fs.FileInfo) bool {
	own, err := f.Stat()
	return err == nil && os.SameFile(own, st)
}

// ReadRange reads n bytes from off on, or what there is of them.
func ReadRange(r io.ReaderAt, off, n int64) ([]byte, error) {
	if n <= 0 {
		return nil, nil
	}
	b := make([]byte, n)
	m, err := r.ReadAt(b, off)
	if errors.Is(err, io.EOF) {
		err = nil // The file is shorter than its size was: a job has just truncated it.
	}
	if err != nil {
		err = fmt.Errorf("ipc: reading output: %w", err)
	}
	return b[:m], err
}
