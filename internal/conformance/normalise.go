package conformance

import "regexp"

// A rule takes something out of stderr that says where bash is, not what it
// did. All of them hold at the beginning of a line only, and are applied to
// both sides.
type rule struct{ old, new string }

var rules = compile([]rule{
	// An interactive bash names itself where a script names itself, or the
	// "environment" that a function came from, and the line.
	//
	//	bash -c:    bash: line 3: nosuch: command not found
	//	persistent: bash: nosuch: command not found
	{`(?:bash|environment): line [0-9]+: `, "bash: "},

	// It does not name the file that it sources, either, but in a syntax
	// error, and then it names itself as well. Rows source files as ./NAME.
	//
	//	bash -c:    ./lib.sh: line 3: nosuch: command not found
	//	persistent: bash: nosuch: command not found
	//	bash -c:    ./lib.sh: line 1: syntax error near unexpected token `then'
	//	persistent: bash: ./lib.sh: line 1: syntax error near unexpected token `then'
	{`(?:bash: )?\./[^ :]+: line [0-9]+: `, "bash: "},

	// A persistent shell evals what bash -c is given. The line number stays.
	//
	//	bash -c:    bash: -c: line 3: unexpected EOF while looking for matching `"'
	//	persistent: bash: eval: line 3: unexpected EOF while looking for matching `"'
	{`bash: -c: (line [0-9]+: )`, "bash: eval: $1"},
})

type compiled struct {
	old *regexp.Regexp
	new string
}

func compile(rules []rule) []compiled {
	var all []compiled
	for _, r := range rules {
		all = append(all, compiled{regexp.MustCompile("(?m)^" + r.old), r.new})
	}
	return all
}

// Normalise takes out of stderr what differs between two bash processes that
// did the same.
func Normalise(stderr string) string {
	for _, r := range rules {
		stderr = r.old.ReplaceAllString(stderr, r.new)
	}
	return stderr
}
