package keeper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// given is what a keeper begins with, whose session is not empty. The values of variables are in it,
// which may be secrets. So it is in a file without a name, which the keeper gets as a descriptor and which
// is gone when nobody has that any more, whoever is killed.
type given struct {
	State       []byte            `json:"state"` // of shell.State.MarshalBinary
	Checkpoints []givenCheckpoint `json:"checkpoints,omitempty"`
}

type givenCheckpoint struct {
	Name  string `json:"name"`
	State []byte `json:"state"`
}

// mostGiven bounds the file: a state has 64 MiB at most, but seldom more than one.
const mostGiven = 256 << 20

// given returns the file, made in a directory. Close it.
func (s Spec) given(dir string) (*os.File, error) {
	var g given
	var err error
	if g.State, err = s.State.MarshalBinary(); err != nil {
		return nil, err
	}
	for _, c := range s.Checkpoints {
		b, err := c.State.MarshalBinary()
		if err != nil {
			return nil, err
		}
		g.Checkpoints = append(g.Checkpoints, givenCheckpoint{c.Name, b})
	}
	b, err := json.Marshal(g)
	if err != nil {
		return nil, err
	}
	if len(b) > mostGiven {
		return nil, fmt.Errorf("the state of the session has %d MiB, and can have %d", len(b)>>20, mostGiven>>20)
	}
	path := filepath.Join(dir, givenFile)
	f, err := private.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, err
	}
	err = os.Remove(path) // Before anything is in it.
	if err == nil {
		_, err = f.WriteAt(b, 0)
	}
	if err != nil {
		_ = f.Close() // Nobody gets it.
		return nil, fmt.Errorf("writing the state of the session: %w", err)
	}
	return f, nil
}

var errGiven = errors.New("what the session is to begin with cannot be read")

// take reads what the keeper was given, and closes the descriptor: the file is gone then.
func (s *Spec) take(f *os.File) error {
	defer f.Close() // Read only.
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() || st.Size() > mostGiven {
		return fmt.Errorf("%w: %w", errGiven, errors.Join(err, fs.ErrInvalid))
	}
	b := make([]byte, st.Size())
	if _, err := f.ReadAt(b, 0); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %w", errGiven, err)
	}
	var g given
	if err := json.Unmarshal(b, &g); err != nil {
		return fmt.Errorf("%w: %w", errGiven, err)
	}
	s.State = &shell.State{}
	if err := s.State.UnmarshalBinary(g.State); err != nil {
		return fmt.Errorf("%w: %w", errGiven, err)
	}
	for _, c := range g.Checkpoints {
		one := session.Checkpoint{Name: c.Name}
		if err := one.State.UnmarshalBinary(c.State); err != nil {
			return fmt.Errorf("%w: checkpoint %q: %w", errGiven, c.Name, err)
		}
		s.Checkpoints = append(s.Checkpoints, one)
	}
	return nil
}
