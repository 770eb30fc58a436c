package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/session"
)

// Names are the machines that have names, as they are in a file that people may edit.
type Names struct {
	path  string
	Hosts map[string]Named `json:"hosts"`
}

// Named is a machine that has a name.
type Named struct {
	Target string `json:"target"`
}

// ErrNoName means that no machine has that name.
var ErrNoName = errors.New("no machine has that name")

// ReadNames reads the user's: limpet/hosts.json in the directory for configurations (os.UserConfigDir). There need not be any.
func ReadNames() (*Names, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf("finding hosts.json: %w", err)
	}
	n := &Names{path: filepath.Join(dir, "limpet", "hosts.json")}
	const most = 1 << 20
	b, err := statedir.Read(n.path, most)
	if err == nil {
		err = n.parse(b)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if n.Hosts == nil {
		n.Hosts = make(map[string]Named)
	}
	return n, nil
}

// parse reads what is in the file. An error is for the person who has edited the file.
func (n *Names) parse(b []byte) error {
	err := json.NewDecoder(bytes.NewReader(b)).Decode(n)
	if err == nil {
		return nil
	}
	wrong, at := err.Error(), int64(len(b))
	syntax, isSyntax := errors.AsType[*json.SyntaxError](err)
	kind, isKind := errors.AsType[*json.UnmarshalTypeError](err)
	switch {
	case len(bytes.TrimSpace(b)) == 0:
		wrong = "the file is empty"
	case errors.Is(err, io.ErrUnexpectedEOF):
		wrong = "the file ends too early"
	case isSyntax:
		at = syntax.Offset - 1 // It is behind what is wrong.
	case isKind:
		at = kind.Offset
		wrong = fmt.Sprintf("there is a JSON %s where another value belongs", kind.Value)
	}
	line := 1 + bytes.Count(b[:min(at, int64(len(b)))], []byte("\n"))
	return fmt.Errorf("%s, line %d: %s; write it as {\"hosts\": {\"NAME\": {\"target\": \"TARGET\"}}}, or remove the file: limpet hosts add makes it anew", n.path, line, wrong)
}

// Write writes them.
func (n *Names) Write() error {
	if err := private.MkdirAll(filepath.Dir(n.path)); err != nil {
		return err
	}
	return statedir.WriteJSON(n.path, n)
}

// Add gives a machine a name, which is one that a session could have. The caller writes it.
func (n *Names) Add(name, target string) error {
	if !session.ValidName(name) {
		return fmt.Errorf("%q: %w", name, session.ErrName)
	}
	if _, err := ParseTarget(target); err != nil {
		return err
	}
	n.Hosts[name] = Named{target}
	return nil
}

// Resolve is [ParseTarget] of a text that may also be a name.
func Resolve(said string) (Target, error) {
	if strings.Contains(said, ":") || said == "" {
		return ParseTarget(said)
	}
	n, err := ReadNames()
	if err != nil {
		return Target{}, err
	}
	named, ok := n.Hosts[said]
	if !ok {
		return Target{}, fmt.Errorf("%q %w: %w; limpet hosts add %s TARGET gives it to one, and a TARGET is ssh://[USER@]HOST[:PORT], docker://CONTAINER, podman://CONTAINER, kube://NAMESPACE/POD, unix:///PATH, or exec:ARGV", said, ErrTarget, ErrNoName, said)
	}
	t, err := ParseTarget(named.Target)
	if err != nil {
		return t, fmt.Errorf("%s: %q: %w", n.path, said, err)
	}
	return t, nil
}
