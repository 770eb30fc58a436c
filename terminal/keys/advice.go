package keys

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// strangers are modifiers of other systems, with what is meant here, if anything is.
var strangers = map[string]string{
	"cmd": "", "command": "", "super": "", "win": "", "windows": "", "hyper": "", "fn": "", "strg": "Ctrl", "opt": "Alt", "altgr": "Alt",
}

// likeModifier returns the modifier that is meant by a word that is none; it may be
// one that no terminal has.
func likeModifier(word string) (meant string, ok bool) {
	word = strings.ToLower(word)
	if meant, ok := strangers[word]; ok {
		return meant, true
	}
	const shortest = 3 // Below that, everything is like everything.
	for _, name := range []string{"Ctrl", "Control", "Alt", "Meta", "Shift"} {
		if len(word) >= shortest && distance(word, strings.ToLower(name)) == 1 {
			return name, true
		}
	}
	return "", false
}

// advice says what to write instead of a name that no key has.
func advice(name string, mods modifier, rest string) string {
	head := name[:len(name)-len(rest)]
	if i := strings.IndexAny(rest, "-+"); i > 0 {
		if meant, ok := likeModifier(rest[:i]); ok && meant == "" {
			return fmt.Sprintf("terminals know no %s, only Ctrl, Alt and Shift", rest[:i])
		} else if ok {
			return fmt.Sprintf("did you mean %q?", head+meant+rest[i:])
		}
	}
	if isFunctionKey(rest) {
		return fmt.Sprintf("there are F1 to F%d", lastFunction)
	}
	if like := near(rest); len(like) > 0 {
		for i := range like {
			like[i] = fmt.Sprintf("%q", head+like[i])
		}
		return "did you mean " + strings.Join(like, " or ") + "?"
	}
	if mods != 0 {
		return fmt.Sprintf("behind %q goes one character, or a name such as Enter, Up, PageUp or F5", head)
	}
	return "a key is one character, or a name such as Enter, Up, F5 or Ctrl-C"
}

// spaces are what names of several words have between them elsewhere.
var spaces = strings.NewReplacer("-", "", "_", "", " ", "")

// near returns the names that are most like a word, up to three.
func near(word string) []string {
	word = spaces.Replace(strings.ToLower(word))
	const (
		longest   = 16 // No name is longer.
		perLetter = 3  // One of so many may be wrong,
		prefix    = 3  // or so many are the start of it.
		most      = 3
	)
	if len(word) > longest {
		return nil
	}
	best := map[string]int{}
	for name, key := range byName() {
		d := distance(word, name)
		if len(word) >= prefix && strings.HasPrefix(name, word) {
			d = min(d, 1)
		}
		if d > max(1, len(word)/perLetter) || d >= len(word) {
			continue
		}
		if old, ok := best[key.name]; !ok || d < old {
			best[key.name] = d
		}
	}
	var names []string
	for _, key := range table {
		if _, ok := best[key.name]; ok {
			names = append(names, key.name)
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(best[a], best[b]) })
	return names[:min(len(names), most)]
}

// distance counts the letters to insert, drop or change, and the neighbours to swap,
// to make b of a.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
