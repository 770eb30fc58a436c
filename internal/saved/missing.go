package saved

import (
	"bytes"
	"slices"
)

// Missing returns the pieces of the state that a bash does not have, or has otherwise,
// by the state that was saved of it.
func (s State) Missing(of State) (missing []Piece) {
	has := make(map[string]declaration)
	for _, d := range declarations(of.part[partVariables]) {
		has[d.name] = d
	}
	functions := make(map[string]bool)
	for _, p := range of.pieces(kindFunction) {
		functions[p.Name] = true
	}
	runs := s.runs()
	for _, p := range s.difference(of, false) {
		switch p.Kind {
		case "":
			continue // It is no part of the state.
		case kindVariable:
			d, found := has[p.Name]
			if slices.Contains(countedByBash, p.Name) || found && (runs || d.sameMap(declaration{p.Name, p.text})) {
				continue
			}
		case kindFunction: // Bash writes it anew, mostly as it was.
			if functions[p.Name] == !bytes.HasPrefix(p.text, []byte("unset ")) {
				continue
			}
		case kindMark:
			if !functions[p.Name] {
				continue // That the function is missing says enough.
			}
		}
		missing = append(missing, p)
	}
	return missing
}

// runs reports whether bash runs something by itself in this state, between commands: that may
// have changed any variable since it was restored.
func (s State) runs() bool {
	for _, d := range declarations(s.part[partVariables]) {
		if (Piece{Kind: kindVariable, Name: d.name, text: d.text}).runs() {
			return true
		}
	}
	return slices.ContainsFunc(s.pieces(kindTrap), Piece.runs)
}

// runs reports whether bash runs the piece by itself, between commands.
func (p Piece) runs() bool {
	switch p.Kind {
	case kindVariable:
		return p.Name == "PROMPT_COMMAND" || (p.Name == "PS0" || p.Name == "PS1") && bytes.ContainsAny(p.text, "$`")
	case kindTrap:
		return slices.Contains([]string{"DEBUG", "ERR", "RETURN"}, p.Name)
	}
	return false
}
