package watch

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/fsnotify/fsnotify"
)

// Dir returns a watcher of one directory. The caller closes it.
func Dir(path string) (*fsnotify.Watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, worded(err)
	}
	if err := w.Add(path); err != nil {
		_ = w.Close() // Nothing is lost.
		return nil, fmt.Errorf("%s: %w", path, worded(err))
	}
	return w, nil
}

// worded says what inotify(7) has run out of. ENOSPC is no full disk here, and is not passed on.
func worded(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return errors.New("the user watches as many files as fs.inotify.max_user_watches allows: raise that (sysctl(8)), or end programs that watch files")
	case errors.Is(err, syscall.EMFILE):
		return fmt.Errorf("%w: raise fs.inotify.max_user_instances (sysctl(8)), or the limit of open files (ulimit -n)", err)
	}
	return err
}
