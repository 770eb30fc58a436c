// Package audit writes down what was done, a JSON object a line, in files that are only appended to. Several programs may write to the same
// file. Secrets are masked, as far as package mask knows them.
package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/private"
)

// mostBytes is how large a file gets. A larger one is renamed, with the time behind its name, and another one begun. Nothing is ever removed.
const mostBytes = 64 << 20

// Log is a file, or a directory with a file for each day. It is safe for concurrent use, also by several programs. It holds nothing open: there is
// nothing to close.
type Log struct {
	path string
	dir  bool
	most int64

	mu sync.Mutex
}

// Open returns the log at a path: a file, or a directory if there is one, or the path ends with a slash. What is not there is made, for this
// user alone. The error says what is wrong with it.
func Open(path string) (*Log, error) {
	if path == "" {
		return nil, errors.New("no file is named")
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	l := &Log{path: abs, dir: strings.HasSuffix(path, string(filepath.Separator)), most: mostBytes}
	if st, err := os.Stat(abs); err == nil && st.IsDir() {
		l.dir = true
	} else if l.dir {
		if err := private.Mkdir(abs); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := l.open(time.Now())
	if err != nil {
		return nil, err
	}
	return l, f.Close()
}

// Path is where it is: a file, or a directory.
func (l *Log) Path() string { return l.path }

// file is the name of the file in which something is written down.
func (l *Log) file(now time.Time) string {
	if l.dir {
		return filepath.Join(l.path, now.UTC().Format(time.DateOnly)+".jsonl")
	}
	return l.path
}

// open opens the file, and locks it. Close it, and it is not locked any more.
func (l *Log) open(now time.Time) (*os.File, error) {
	path := l.file(now)
	for {
		// Of a pipe whose other end nobody reads, and of a terminal, this returns, too.
		f, err := private.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK)
		if errors.Is(err, syscall.ELOOP) {
			return nil, fmt.Errorf("%s is a symbolic link: name the file itself", path)
		}
		if err != nil {
			return nil, err
		}
		again, err := l.usable(f, path)
		if err == nil && !again {
			return f, nil
		}
		_ = f.Close() // Nothing was written.
		if err != nil {
			return nil, err
		}
	}
}

// usable locks a file, and renames it if it is full. Again means that the file at the path is another one.
func (l *Log) usable(f *os.File, path string) (again bool, err error) {
	st, err := f.Stat()
	if err != nil {
		return false, err
	}
	if !st.Mode().IsRegular() {
		return false, fmt.Errorf("%s is no file that can be appended to", path)
	}
	if st.Mode().Perm()&0o077 != 0 {
		return false, fmt.Errorf("%s can be read or written by others: chmod 600 it, or name another file", path)
	}
	if err := lock(f); err != nil {
		return false, fmt.Errorf("locking %s: %w", path, err)
	}
	there, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	if !os.SameFile(st, there) {
		return true, nil
	}
	if there.Size() < l.most {
		return false, nil
	}
	ext := filepath.Ext(path)
	// The time of this moment: lines may have the same, and whoever waits for the lock an old one, and then this would take the place of another file.
	full := strings.TrimSuffix(path, ext) + "-" + time.Now().UTC().Format("20060102T150405.000000000Z") + ext
	// Where it cannot be renamed, as where it can only be appended to (chattr +a), it gets larger.
	return os.Rename(path, full) == nil, nil
}

// patience is how long another program may have the lock, which it needs for one line. Tests have less.
var patience = 5 * time.Second

var errLocked = errors.New("another program has it locked and does not go on: see which by lsof, or name another file")

// lock locks a file. Who is stopped with the lock, or keeps it on purpose, holds nobody up for long.
func lock(f *os.File) error {
	for began, pause := time.Now(), time.Millisecond; ; pause = min(2*pause, 4*time.Millisecond) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		if time.Since(began) > patience {
			return errLocked
		}
		time.Sleep(pause) // The kernel tells of no lock that is free.
	}
}

// write appends a line. One that is not whole is taken back.
func (l *Log) write(now time.Time, line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	f, err := l.open(now)
	if err != nil {
		return err
	}
	end, err := f.Seek(0, 2)
	if err == nil && end > 0 { // Whoever wrote before may have been killed at it.
		last := make([]byte, 1)
		if _, err := f.ReadAt(last, end-1); err == nil && last[0] != '\n' {
			line = append([]byte{'\n'}, line...)
		}
	}
	if err == nil {
		if _, err = f.Write(line); err != nil {
			_ = f.Truncate(end) // Else half of a line is left, and the next begins behind it.
		}
	}
	return errors.Join(err, f.Close())
}

// Write writes an entry down. It blocks as long as that takes, and waits up to 5 s for another program that has the file locked.
func (l *Log) Write(e Entry) error {
	line, err := json.Marshal(e)
	if err == nil {
		err = l.write(e.Time, append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing to %s: %w", l.file(e.Time), err)
	}
	return nil
}
