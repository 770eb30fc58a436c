package sandbox

import (
	"fmt"
	"path/filepath"
	"strings"
)

// Violation is something that was made while a sandbox ran, and that makes
// programs of the host run what it says. The sandbox made it, or somebody
// outside: there is no telling.
type Violation struct {
	Path  string
	Moved string // where it was moved to, by FS.Quarantine; empty if it is still there
	Err   error  // why it could not be moved
}

func (v Violation) String() string {
	switch {
	case v.Moved != "":
		return fmt.Sprintf("%s was made, and moved to %s", v.Path, filepath.Base(v.Moved))
	case v.Err != nil:
		return fmt.Sprintf("%s was made, and could not be moved away: %v", v.Path, v.Err)
	}
	return v.Path + " was made"
}

// violated is the error for what was found.
func violated(found []Violation) error {
	if len(found) == 0 {
		return nil
	}
	var texts []string
	for _, v := range found {
		texts = append(texts, v.String())
	}
	return &Error{
		Code: ErrViolation, Violations: found,
		Detail: "while the sandbox ran: " + strings.Join(texts, "; "),
		Hint:   "programs of the host would run what it says: look at it first",
	}
}

// tripwire is what is looked for, since nothing could be mounted on it.
type tripwire struct {
	missing []spot     // paths that were not there
	named   []spot     // symlinks with a protected name, which may not lead elsewhere
	gitDirs []string   // directories of git's that can be written; see [symlinks]
	bare    string     // the workspace, unless it was a repository by itself
	index   repository // that of the workspace, if its index can be written
}

// spot is a path in a directory that nobody can replace.
type spot struct{ top, rel string }

func (s spot) path() string { return filepath.Join(s.top, s.rel) }

// quarantined is in the names of what was moved away. It is behind the name, so
// that no program takes the file for what it was.
const quarantined = ".limpet-quarantine-"
