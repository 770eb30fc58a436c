package noun

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Pick finds the name that a user means by a text: the name that is equal to it, or else the only name that
// begins with it. Found is false if no name does. If several do, the error is a [*UsageError].
func Pick(cmd *cobra.Command, kind, said string, all []string) (name string, found bool, err error) {
	like := slices.DeleteFunc(slices.Clone(all), func(name string) bool { return !strings.HasPrefix(name, said) })
	return pick(cmd, kind+"s", kind, said, all, like)
}

// PickID is Pick for ids, such as job-make-k3x5qzpd. A part is enough: the beginning, with or without "job-", the
// beginning of the random letters, or an end of the whole. See [Meant].
func PickID(cmd *cobra.Command, kind, said string, all []string) (id string, found bool, err error) {
	return pick(cmd, kind+"s", "id", said, all, Meant(said, all))
}

func pick(cmd *cobra.Command, kinds, what, said string, all, like []string) (string, bool, error) {
	if said == "" {
		return "", false, Usagef(cmd, `"" is no %s; is a variable empty?`, what)
	}
	if slices.Contains(all, said) {
		return said, true, nil
	}
	switch len(like) {
	case 0:
		return "", false, nil
	case 1:
		return like[0], true, nil
	}
	return "", false, Usagef(cmd, "%q means %d %s: %s; write more of the one that is meant", said, len(like), kinds, Some(like))
}

// Meant returns the ids that a text may mean: those of what it names in full, as wc does job-wc-k3x5qzpd, or else those that it is a part of.
// Random letters may begin as a name does.
func Meant(said string, all []string) []string {
	var named, like []string
	for _, id := range all {
		_, name, _ := strings.Cut(id, "-")
		last := strings.LastIndex(name, "-")
		random := name[last+1:]
		switch {
		case last >= 0 && name[:last] == said:
			named = append(named, id)
		case strings.HasPrefix(id, said), strings.HasPrefix(name, said), strings.HasPrefix(random, said), strings.HasSuffix(id, said):
			like = append(like, id)
		}
	}
	if len(named) > 0 {
		return named
	}
	return like
}

// Near returns the ids that may be what was meant by a text that picks none.
func Near(said string, all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !resembles(said, id) })
}

// resembles reports whether a text may be a mistyped id: at most two letters differ from the id or from its name, or the text is a part from the
// middle of the id.
func resembles(said, id string) bool {
	const most = 2
	if strings.Contains(id, said) {
		return true
	}
	_, name, _ := strings.Cut(id, "-")
	program := name
	if i := strings.LastIndex(name, "-"); i >= 0 {
		program = name[:i]
	}
	for _, text := range []string{id, name, program} {
		if len(said) > most && Distance(said, text) <= most {
			return true
		}
	}
	return false
}

// Distance is how many letters must be changed, put in or left out (Levenshtein).
func Distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := before
			if a[i] != b[j] {
				change++
			}
			before = row[j+1]
			row[j+1] = min(change, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}
