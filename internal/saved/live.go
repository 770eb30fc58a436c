package saved

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/environ"
)

// Live returns what of the state decides what a script means. The state must have been printed with [Names]. Descriptors and libraries
// are not in it: bash does not tell them.
func (s State) Live() command.LiveState {
	live := command.LiveState{Hashed: make(map[string]string), Env: s.Given.All()}
	for _, m := range marks(s.part[partMarks]) {
		live.Functions = append(live.Functions, m.name)
	}
	for _, p := range aliasPieces(s.part[partAliases]) {
		if p.Kind == kindTrap {
			live.Traps = append(live.Traps, p.Name)
		} else {
			live.Aliases = append(live.Aliases, p.Name)
		}
	}
	for _, d := range declarations(s.part[partVariables]) {
		if d.name != "" && d.name != StatusVar && d.name != environ.SessionVar {
			value, _ := d.plain()
			live.Variables = append(live.Variables, command.LiveVariable{Name: d.name, Attributes: d.attributes(), Value: value})
		}
	}
	for _, p := range optionPieces(append(statements(s.part[partOptions]), s.settings("set")...)) {
		if p.set() {
			live.Options = append(live.Options, p.Name)
		}
	}
	live.Builtins, live.Disabled = s.builtins()
	for _, text := range statements(s.part[partMore]) {
		if words := quotedWords(bytes.TrimSuffix(text, []byte("\n"))); len(words) == 5 && bytes.HasPrefix(text, []byte("builtin hash -p ")) {
			live.Hashed[unquoted(words[4])] = unquoted(words[3])
		}
	}
	return live
}

// builtins are those that bash lists by "enable -a".
func (s State) builtins() (enabled, disabled []string) {
	for line := range bytes.Lines(s.part[partMore]) {
		text := strings.TrimSuffix(string(line), "\n")
		if name, ok := strings.CutPrefix(text, "enable -n "); ok {
			disabled = append(disabled, name)
		} else if name, ok := strings.CutPrefix(text, "enable "); ok {
			enabled = append(enabled, name)
		}
	}
	return enabled, disabled
}

// All returns what limpet has set, as "NAME=value", or "NAME"; the last entry of a name counts.
func (g Given) All() []string {
	all := slices.Clone(g.Env)
	for _, entry := range g.updates {
		all = append(all, entry)
	}
	return all
}

// plain returns the value without bash's quotes, and whether it is one text.
func (d declaration) plain() (value string, ok bool) {
	if d.has("a") || d.has("A") {
		return "", false
	}
	_, text, set := bytes.Cut(bytes.TrimSuffix(d.text, []byte("\n")), []byte("="))
	return unquoted(text), set
}

// unquoted undoes what bash does to a word when it lists it: "...", $'...', '...' and backslashes.
func unquoted(word []byte) string {
	var b strings.Builder
	switch {
	case bytes.HasPrefix(word, []byte("$'")):
		text := bytes.TrimSuffix(word[2:], []byte("'"))
		for i := 0; i < len(text); i++ {
			if text[i] != '\\' || i+1 == len(text) {
				b.WriteByte(text[i])
				continue
			}
			i++
			if at := strings.IndexByte("abeEfnrtv", text[i]); at >= 0 {
				b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v"[at])
			} else if n, err := strconv.ParseUint(string(text[i:min(i+3, len(text))]), 8, 8); err == nil { // Bash writes three digits.
				b.WriteByte(byte(n))
				i += 2
			} else {
				b.WriteByte(text[i])
			}
		}
		return b.String()
	case bytes.HasPrefix(word, []byte("'")):
		return strings.ReplaceAll(string(bytes.TrimSuffix(word[1:], []byte("'"))), `'\''`, "'")
	}
	quoted := bytes.HasPrefix(word, []byte(`"`))
	if quoted {
		word = bytes.TrimSuffix(word[1:], []byte(`"`))
	}
	for i := 0; i < len(word); i++ {
		if word[i] == '\\' && i+1 < len(word) && (!quoted || bytes.IndexByte([]byte("$`\"\\\n"), word[i+1]) >= 0) {
			i++
		}
		b.WriteByte(word[i])
	}
	return b.String()
}
