package terminal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
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

	dirMode  = 0o700
	fileMode = 0o600
)

// store is the directory.
type store struct{ dir string }

func (s store) path(id, ext string) string { return filepath.Join(s.dir, id+ext) }

func (s store) write(id, ext string, b []byte) error {
	return renameio.WriteFile(s.path(id, ext), b, fileMode, renameio.IgnoreUmask(), renameio.WithTempDir(s.dir))
}

func (s store) writeJSON(id, ext string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.write(id, ext, append(b, '\n'))
}

// recordMax and logMax bound what is read: somebody may have put anything there.
const (
	recordMax = 4 << 20
	logMax    = 1 << 30
)

// read reads a file, if it is one.
func (s store) read(id, ext string, most int64) ([]byte, error) {
	path := s.path(id, ext)
	if st, err := os.Lstat(path); err != nil {
		return nil, err
	} else if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // Read only.
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = fmt.Errorf("%q is larger than %d bytes", path, most)
	}
	return b, err
}

func (s store) readJSON(id, ext string, v any) error {
	b, err := s.read(id, ext, recordMax)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%q: %w", s.path(id, ext), err)
	}
	return nil
}

// info reads the record of a terminal. The error is fs.ErrNotExist if there is none.
func (s store) info(id string) (info Info, err error) {
	if !validID(id) {
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
		if id, ok := strings.CutSuffix(entry.Name(), recordExt); ok && validID(id) {
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

// replay is what it takes, besides the log, to see again what was on the screen, and when.
type replay struct {
	Offset  int64    `json:"offset"`            // of the first byte of the log
	Restore []byte   `json:"restore,omitempty"` // what a terminal has to be told before it gets the log from From on
	From    int64    `json:"from"`
	History timeline `json:"history"`
}
