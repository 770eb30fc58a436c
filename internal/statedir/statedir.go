// Package statedir keeps directories in which programs of a user remember things: where
// they are, who may write to them, and files that are whole whenever they are read.
package statedir

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/errtext"
	"github.com/limpet-sh/limpet/internal/private"
)

// The modes of directories and files: they are nobody else's business.
const (
	DirMode  fs.FileMode = 0o700
	FileMode fs.FileMode = 0o600
)

// Kept is the name of the state of sessions that are kept. No sandbox sees it.
const Kept = "keep"

// Default is where a user's state of that name is: $XDG_STATE_HOME/limpet/NAME, or
// ~/.local/state/limpet/NAME (XDG base directory specification). It fails where neither
// is set.
func Default(name string) (string, error) {
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) { // Relative ones are to be ignored.
		home, err := os.UserHomeDir()
		if err != nil {
			return "", errors.New("there is no directory of the user's")
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "limpet", name), nil
}

// Fallbacks are the directories of a user's state of that name where the one of [Default] cannot be written, as in a
// container: below /var/tmp, /tmp and /dev/shm, in limpet-UID/NAME. The first that can be written is to be used, and
// only if it is [Private]: another user may have made it.
func Fallbacks(name string) []string {
	var dirs []string
	for _, dir := range []string{"/var/tmp", "/tmp", "/dev/shm"} {
		dirs = append(dirs, filepath.Join(dir, fmt.Sprintf("limpet-%d", os.Getuid()), name))
	}
	return dirs
}

// Private refuses a directory that others can write to: what is in it says which
// processes are signalled.
func Private(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	const others = 0o022
	if owner, ok := st.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() || st.Mode().Perm()&others != 0 {
		return fmt.Errorf("others than this user can write to it, or own it: mode %v", st.Mode().Perm())
	}
	return nil
}

// Write writes a file, which is there whole or not at all, and is on the disk then.
func Write(path string, b []byte) error {
	return renameio.WriteFile(path, b, FileMode, renameio.IgnoreUmask(), renameio.WithTempDir(filepath.Dir(path)))
}

// WriteJSON is Write of a value, with a newline.
func WriteJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return Write(path, append(b, '\n'))
}

// reserveFile becomes the last record when there is no room for that, and is removed when there is.
const (
	reserveFile = "reserve"
	reserveSize = 8 << 10
)

// Reserve keeps room in a directory for [WriteLastJSON]: 8 KiB, and so many bytes more as a record is expected to have besides what has
// a place in these. A file system that copies on write may have none all the same.
func Reserve(dir string, more int) error {
	room := make([]byte, reserveSize+more)
	_, _ = rand.Read(room) // It never fails. Some file systems give zeros no room.
	return private.WriteFile(filepath.Join(dir, reserveFile), room)
}

// WriteLastJSON is WriteJSON for the last record of a directory: how a job or a session has ended. If the disk is full, the file of
// [Reserve] becomes the record, so that no other program takes its room meanwhile. That may fail if the record is larger than the room.
// When the record is written, the file is gone.
func WriteLastJSON(path string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	reserve := filepath.Join(filepath.Dir(path), reserveFile)
	err = Write(path, b)
	if errtext.NoRoom(err) {
		if become(reserve, path, b) == nil {
			return nil
		}
		if os.Remove(reserve) == nil { // A file system that copies on write needs other room.
			err = Write(path, b)
		}
	}
	if err == nil {
		_ = os.Remove(reserve) // It may be gone.
	}
	return err
}

// become writes a file over one that is there, which gets its name then. It does not wait for what is no file, nor write over a file that
// has another name, as in a backup.
func become(there, path string, b []byte) error {
	f, err := os.OpenFile(there, os.O_WRONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	var st unix.Stat_t
	err = unix.Fstat(int(f.Fd()), &st)
	if err == nil && (st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink != 1) {
		err = fs.ErrInvalid
	}
	if err == nil {
		_, err = f.Write(b)
	}
	if err == nil {
		err = f.Truncate(int64(len(b)))
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(there, path)
}

// Read reads a file of at most so many bytes. It does not wait for what is no file, and
// follows no symbolic link: whoever owns the directory may have put anything there.
func Read(path string, most int64) ([]byte, error) {
	f, size, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // Read only.
	if size > most {
		return nil, fmt.Errorf("%s is larger than it can be, which is %d bytes: %w", path, most, fs.ErrInvalid)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// Tail is Read of the last part of a file that may be larger, and of how many bytes there
// are before it.
func Tail(path string, most int64) (b []byte, skipped int64, err error) {
	f, size, err := open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close() // Read only.
	if skipped = max(size-most, 0); skipped > 0 {
		if _, err := f.Seek(skipped, io.SeekStart); err != nil {
			return nil, 0, err
		}
	}
	b, err = io.ReadAll(io.LimitReader(f, most))
	return b, skipped, err
}

// open opens a regular file, and says how large it is.
func open(path string) (*os.File, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		if errors.Is(err, syscall.ELOOP) {
			return nil, 0, fmt.Errorf("%s is a symbolic link: %w", path, fs.ErrInvalid)
		}
		return nil, 0, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file: %w", path, fs.ErrInvalid)
	}
	if err != nil {
		_ = f.Close() // Read only.
		return nil, 0, err
	}
	return f, st.Size(), nil
}

// ReadJSON is Read of a value, which is at the beginning of the file.
func ReadJSON(path string, v any, most int64) error {
	b, err := Read(path, most)
	if err != nil {
		return err
	}
	if err := json.NewDecoder(bytes.NewReader(b)).Decode(v); err != nil {
		return fmt.Errorf("%s is damaged: %w: %w", path, fs.ErrInvalid, err)
	}
	return nil
}

// Lock takes the lock of a file, which is made if it is not there. It waits while another program has the lock; ctx bounds that, and the
// error is its cause then. The caller must call unlock.
func Lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := private.OpenFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // Nothing was written.
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			_ = f.Close() // As above.
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			_ = f.Close() // As above.
			return nil, context.Cause(ctx)
		}
	}
}
