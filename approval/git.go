package approval

import "strings"

// gitRemedy is how git is asked without running what a repository's configuration says: a monitor, an external diff, a
// filter of text, a pager, a program that checks signatures, a fetch of what is missing.
const gitRemedy = "a repository's configuration may run programs here: write git --no-pager --no-lazy-fetch -c core.fsmonitor=false"

// gitVerbs are what git may be asked in that form: options, and those that must be there.
var gitVerbs = map[string]struct {
	options optionSet
	must    string
	list    bool // an operand makes something, unless --list or -l says that it is a pattern
}{
	"log": {optionSet{short: "pn:L:S:G:iEFqsM?C?wbz", number: true, long: "oneline graph decorate? decorate-refs= all branches? tags? remotes? stat? shortstat numstat name-only name-status patch no-patch follow max-count= skip= since= after= until= before= " +
		"author= committer= grep= merges no-merges first-parent reverse format= pretty? date= abbrev-commit no-color color? no-decorate topo-order date-order no-ext-diff no-textconv no-show-signature word-diff? relative-date full-history diff-filter= submodule="}, "no-ext-diff no-textconv no-show-signature submodule=short", false},
	"show":          {optionSet{short: "pqsUwz", number: true, long: "stat? shortstat numstat name-only name-status patch no-patch format= pretty? oneline abbrev-commit date= no-color color? no-ext-diff no-textconv no-show-signature submodule="}, "no-ext-diff no-textconv no-show-signature submodule=short", false},
	"rev-parse":     {optionSet{short: "q", long: "show-toplevel git-dir git-common-dir is-inside-work-tree is-bare-repository show-prefix show-cdup abbrev-ref? short? verify quiet symbolic-full-name symbolic absolute-git-dir all branches tags"}, "", false},
	"rev-list":      {optionSet{short: "n:", number: true, long: "count max-count= all since= until= no-merges merges first-parent reverse left-right left-only right-only"}, "", false},
	"ls-files":      {optionSet{short: "cdmosukzt", long: "cached deleted modified others stage exclude-standard full-name error-unmatch unmerged"}, "", false},
	"ls-tree":       {optionSet{short: "rdtlz", long: "name-only name-status long full-name full-tree abbrev?"}, "", false},
	"branch":        {optionSet{short: "avrl", long: "all verbose remotes list show-current contains= merged? no-merged? sort= format= no-color no-column points-at="}, "", true},
	"tag":           {optionSet{short: "ln?", long: "list sort= format= contains= merged? points-at= no-color no-column"}, "", true},
	"describe":      {optionSet{long: "tags always abbrev= long all exact-match match= exclude= contains first-parent"}, "", false},
	"merge-base":    {optionSet{short: "a", long: "all is-ancestor octopus fork-point"}, "", false},
	"shortlog":      {optionSet{short: "sne", long: "summary numbered email since= until= no-merges all"}, "", false},
	"for-each-ref":  {optionSet{long: "format= sort= count= contains= merged? points-at="}, "", false},
	"show-ref":      {optionSet{short: "sqd", long: "heads tags branches hash? verify quiet head dereference"}, "", false},
	"name-rev":      {optionSet{long: "tags name-only all always refs="}, "", false},
	"diff-tree":     {optionSet{short: "rpst", long: "name-only name-status stat? no-commit-id root no-ext-diff no-textconv numstat shortstat submodule="}, "no-ext-diff no-textconv submodule=short", false},
	"count-objects": {optionSet{short: "vH", long: "verbose human-readable"}, "", false},
	"symbolic-ref":  {optionSet{short: "q", long: "quiet short"}, "", false},
}

// plainGit are forms that read neither objects nor the index, and run nothing.
func plainGit(args []value) bool {
	text := words(args)
	switch text {
	case "--version", "version", "remote", "remote -v", "branch --show-current":
		return true
	}
	rest, ok := strings.CutPrefix(text, "rev-parse ")
	return ok && (rest == "HEAD" || rest == "--abbrev-ref HEAD" || rest == "--short HEAD" || strings.HasPrefix(rest, "--") && !strings.Contains(rest, " ") &&
		strings.Contains(" --show-toplevel --git-dir --git-common-dir --is-inside-work-tree --is-bare-repository --show-prefix --show-cdup --absolute-git-dir ", " "+rest+" "))
}

// words joins values that are known, and is empty if one is not.
func words(args []value) string {
	var text []string
	for _, v := range args {
		if !v.known || v.many || v.home || strings.ContainsAny(v.text, " \n") {
			return ""
		}
		text = append(text, v.text)
	}
	return strings.Join(text, " ")
}

// gitAllows knows the neutral form of git.
func gitAllows(c *call) string {
	if plainGit(c.args) {
		return ""
	}
	args, global := gitGlobal(c.args)
	if len(args) == 0 || !args[0].known {
		return "which of its commands it runs is not known"
	}
	verb := args[0].text
	if strings.HasPrefix(verb, "-") {
		return "this option of git may run programs, or is about another repository"
	}
	known, ok := gitVerbs[verb]
	if !ok {
		if verb == "status" || verb == "diff" || verb == "blame" || verb == "grep" || verb == "stash" {
			return "git " + verb + " may run filters that the repository's configuration names, which no option switches off"
		}
		return "git " + verb + " is not known to change nothing"
	}
	options, operands, why := known.options.parse(args[1:])
	if why != "" {
		return why
	}
	has := make(map[string]bool)
	for _, o := range options {
		has[o.name] = true
		if o.name == "submodule" {
			if !o.arg.known || o.arg.text != "short" {
				return "a difference within a submodule is made by a git of its own: write --submodule=short"
			}
			has["submodule=short"] = true
		}
		if (o.name == "format" || o.name == "pretty") && (!o.arg.known || strings.Contains(o.arg.text, "%G") || strings.Contains(o.arg.text, "%(sig") || strings.Contains(o.arg.text, "%(trailers")) {
			return "a format may check signatures with a program"
		}
	}
	listing := has["list"] || has["l"] || verb == "tag" && has["n"] || has["contains"] || has["merged"] || has["no-merged"] || has["points-at"]
	if known.list && len(operands) > 0 && !listing || verb == "symbolic-ref" && len(operands) != 1 {
		return "an operand of git " + verb + " makes something: write --list for a pattern"
	}
	var missing []string
	for name := range strings.FieldsSeq(known.must) {
		if !has[name] {
			missing = append(missing, "--"+name)
		}
	}
	if !global || len(missing) > 0 {
		return strings.TrimSpace(gitRemedy + " " + verb + " " + strings.Join(missing, " "))
	}
	return ""
}

// gitGlobal takes the options that stand before git's command, and reports whether they are the neutral ones, all of them and no others.
func gitGlobal(args []value) ([]value, bool) {
	var pager, fetch, monitor bool
	for len(args) > 0 {
		switch {
		case args[0].is("--no-pager"):
			pager = true
		case args[0].is("--no-lazy-fetch"):
			fetch = true
		case args[0].is("--no-optional-locks"):
		case args[0].is("-c") && len(args) > 1 && (args[1].is("core.fsmonitor=false") || args[1].is("core.hooksPath=/dev/null")):
			monitor = monitor || args[1].text == "core.fsmonitor=false"
			args = args[1:]
		default:
			return args, pager && fetch && monitor
		}
		args = args[1:]
	}
	return args, false
}

// gitVerb returns the command of git and what follows, whatever stands before it.
func (c *call) gitVerb() (string, *call) {
	for i := 0; i < len(c.args); i++ {
		text := c.args[i].pattern
		switch {
		case text == "-c" || text == "-C" || text == "--git-dir" || text == "--work-tree" || text == "--namespace" || text == "--config-env" || text == "--exec-path":
			i++
		case strings.HasPrefix(text, "-"):
		default:
			in := *c
			in.args = c.args[i+1:]
			return text, &in
		}
	}
	return "", c
}
