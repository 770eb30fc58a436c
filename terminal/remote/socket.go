package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/limpet-sh/limpet/internal/socket"
)

// The names beside the records, as package terminal has them.
const (
	socketExt = ".sock"
	lockExt   = ".lock"
)

func socketPath(dir, owner string) string { return filepath.Join(dir, owner+socketExt) }

// checkOwner refuses what is no name in records: it becomes a part of a path.
func checkOwner(owner string) error {
	if owner == "" || strings.Trim(owner, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return fmt.Errorf("%q is no name of a program that has terminals", owner)
	}
	return nil
}

// alive reports whether the program lives that has the name: it holds the lock. It was
// locked before there was a socket.
func alive(dir, owner string) bool {
	f, err := os.Open(filepath.Join(dir, owner+lockExt))
	if err != nil {
		return false
	}
	defer f.Close() // It gives the lock back.
	err = retry(func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) })
	return errors.Is(err, syscall.EWOULDBLOCK)
}

func retry(do func() error) error {
	for {
		if err := do(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// sweep removes the sockets of programs that were killed.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir) // Where there is none nothing is to be done.
	for _, entry := range entries {
		if owner, ok := strings.CutSuffix(strings.TrimSuffix(entry.Name(), socket.NewExt), socketExt); ok && entry.Type()&fs.ModeSocket != 0 && !alive(dir, owner) {
			_ = os.Remove(filepath.Join(dir, entry.Name())) // Best effort: the next one tries again.
		}
	}
}
