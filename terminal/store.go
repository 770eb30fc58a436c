package terminal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/limpet-sh/limpet/internal/statedir"
)

// What is in the directory of a registry. All files are written whole, or not at all.
//
//	ID.json      an Info: what is known of a terminal
//	ID.log       what it has printed last, raw; written at its end
//	ID.replay    what else it takes to see it again: a replay
//	OWNER.lock   locked by flock(2) as long as the program lives that has the terminals
const (
	recordExt = ".json"
	logExt    = ".log"
	replayExt = ".replay"
	lockExt   = ".lock"
)

// store is the directory.
type store struct{ dir string }

func (s store) path(id, ext string) string { return filepath.Join(s.dir, id+ext) }

// recordMax and logMax bound what is read: somebody may have put anything there.
const (
	recordMax = 4 << 20
	logMax    = 1 << 30
)

func (s store) writeJSON(id, ext string, v any) error { return statedir.WriteJSON(s.path(id, ext), v) }

func (s store) readJSON(id, ext string, v any) error {
	return statedir.ReadJSON(s.path(id, ext), v, recordMax)
}

// info reads the record of a terminal. The error is fs.ErrNotExist if there is none.
func (s store) info(id string) (info Info, err error) {
	if !ValidID(id) {
		return info, fs.ErrNotExist
	}
	if err := s.readJSON(id, recordExt, &info); err != nil {
		return Info{}, err
	}
	if info.ID != id {
		return Info{}, fmt.Errorf("%q says that it is of %q", s.path(id, recordExt), info.ID)
	}
	return info, nil
}

// ids lists the terminals that there are.
func (s store) ids() ([]string, error) {
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, entry := range entries {
		if id, ok := strings.CutSuffix(entry.Name(), recordExt); ok && ValidID(id) {
			ids = append(ids, id)
		}
	}
	return ids, err
}

// remove removes all of a terminal, the record first: without it there is none.
func (s store) remove(id string) error {
	var errs []error
	for _, ext := range []string{recordExt, logExt, replayExt} {
		if err := os.Remove(s.path(id, ext)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
