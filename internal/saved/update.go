package saved

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/internal/script"
)

// Update returns a piece by which bash changes a variable, which it exports, if that is still as it
// was; else bash refuses the piece. Was and now are "NAME=value", or "NAME" for a variable that is not
// there, of the same name. A variable with attributes besides that of being exported (readonly, say, or
// an array's) is refused as well: somebody has made it so.
//
// The comparison is a keyword, and fails by one: no function has its name, and neither set -u nor an ERR trap
// minds it.
func Update(was, now string) Piece {
	name, before, had := strings.Cut(was, "=")
	patterns := []string{":", "x:"} // The attributes; behind the colon an x, if there is a value, and the value.
	switch {
	case had:
		quoted := script.Quote("x" + before)
		patterns = []string{":" + quoted, "x:" + quoted}
	case name == "TERM":
		patterns = append(patterns, ":xdumb") // Bash gives itself this one, and exports it not.
	}
	check := fmt.Sprintf(`case "${%s[@]@a}:${%s+x}${%s-}" in %s) ;; *) ((0)) ;; esac`, name, name, name, strings.Join(patterns, "|"))
	set := call("unset -v -- %s", name)
	if _, value, has := strings.Cut(now, "="); has {
		set = call("export %s=%s", name, script.Quote(value))
	}
	return Piece{Kind: kindVariable, Name: name, text: []byte(now), steps: []step{{text: []byte(check), assignment: true}, set}}
}

// Given is what limpet has set of the variables of a shell: by the environment of its first bash, and by
// updates since, as "NAME=value", or "NAME" for a variable that was unset. A value is never changed.
type Given struct {
	Env     []string // the last entry of a name counts
	updates map[string]string
}

// Last returns what limpet has set a variable to last.
func (g Given) Last(name string) string {
	if entry, ok := g.updates[name]; ok {
		return entry
	}
	for _, entry := range slices.Backward(g.Env) {
		if NameOf(entry) == name {
			return entry
		}
	}
	return name
}

// With returns it after updates.
func (g Given) With(entries []string) Given {
	updates := maps.Clone(g.updates)
	if updates == nil {
		updates = make(map[string]string)
	}
	for _, entry := range entries {
		updates[NameOf(entry)] = entry
	}
	g.updates = updates
	return g
}

// NameOf is the name in "NAME=value", or in "NAME".
func NameOf(entry string) string {
	name, _, _ := strings.Cut(entry, "=")
	return name
}
