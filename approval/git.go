package approval

import (
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

// gitRemedy is how git is asked without running what a repository's configuration says: a monitor, an external diff, a
// filter of text, a pager, a program that checks signatures, a fetch of what is missing.
const gitRemedy = "a repository's configuration may run programs here: write git --no-pager --no-lazy-fetch -c core.fsmonitor=false"

// gitVerbs are what git may be asked in that form: options, and those that must be there.
var gitVerbs = map[string]struct {
	options optionSet
	must    string
	list    bool // an operand makes something, unless --list or -l says that it is a pattern
	format  bool // the configuration names a format, unless an option has one
}{
	"log": {optionSet{short: "pn:L:S:G:iEFqsM?C?wbz", number: true, long: "oneline graph decorate? decorate-refs= all branches? tags? remotes? stat? shortstat numstat name-only name-status patch no-patch follow max-count= skip= since= after= until= before= " +
		"author= committer= grep= merges no-merges first-parent reverse format= pretty? date= abbrev-commit no-color color? no-decorate topo-order date-order no-ext-diff no-textconv no-show-signature word-diff? relative-date full-history diff-filter= submodule="}, "no-ext-diff no-textconv no-show-signature submodule=short", false, true},
	"show":          {optionSet{short: "pqsUwz", number: true, long: "stat? shortstat numstat name-only name-status patch no-patch format= pretty? oneline abbrev-commit date= no-color color? no-ext-diff no-textconv no-show-signature submodule="}, "no-ext-diff no-textconv no-show-signature submodule=short", false, true},
	"rev-parse":     {optionSet{short: "q", long: "show-toplevel git-dir git-common-dir is-inside-work-tree is-bare-repository show-prefix show-cdup abbrev-ref? short? verify quiet symbolic-full-name symbolic absolute-git-dir all branches tags"}, "", false, false},
	"rev-list":      {optionSet{short: "n:", number: true, long: "count max-count= all since= until= no-merges merges first-parent reverse left-right left-only right-only"}, "", false, false},
	"ls-files":      {optionSet{short: "cdmosukzt", long: "cached deleted modified others stage exclude-standard full-name error-unmatch unmerged"}, "", false, false},
	"ls-tree":       {optionSet{short: "rdtlz", long: "name-only name-status long full-name full-tree abbrev?"}, "", false, false},
	"branch":        {optionSet{short: "avrl", long: "all verbose remotes list show-current contains= merged? no-merged? sort= format= no-color no-column points-at="}, "", true, false},
	"tag":           {optionSet{short: "ln?", long: "list sort= format= contains= merged? points-at= no-color no-column"}, "", true, false},
	"describe":      {optionSet{long: "tags always abbrev= long all exact-match match= exclude= contains first-parent"}, "", false, false},
	"merge-base":    {optionSet{short: "a", long: "all is-ancestor octopus fork-point"}, "", false, false},
	"shortlog":      {optionSet{short: "sne", long: "summary numbered email since= until= no-merges all"}, "", false, false},
	"for-each-ref":  {optionSet{long: "format= sort= count= contains= merged? points-at="}, "", false, false},
	"show-ref":      {optionSet{short: "sqd", long: "heads tags branches hash? verify quiet head dereference"}, "", false, false},
	"name-rev":      {optionSet{long: "tags name-only all always refs="}, "", false, false},
	"diff-tree":     {optionSet{short: "rpst", long: "name-only name-status stat? no-commit-id root no-ext-diff no-textconv numstat shortstat submodule="}, "no-ext-diff no-textconv submodule=short", false, false},
	"count-objects": {optionSet{short: "vH", long: "verbose human-readable"}, "", false, false},
	"symbolic-ref":  {optionSet{short: "q", long: "quiet short"}, "", false, false},
}

var (
	// gitChecks are placeholders of a format for which git runs a program that checks signatures, or another git.
	gitChecks = lazyregexp.New(`%[-+ ]*(G|\([^)]*(sig|trailers|describe))`)
	// gitFormat are formats that the configuration gives no other meaning.
	gitFormat = lazyregexp.New(`%|^t?format:|^(oneline|short|medium|full|fuller|reference|email|mboxrd|raw)$`)
)

// plainGit are forms that read neither objects nor the index, and run nothing.
func plainGit(args []value) bool {
	text := words(args)
	switch text {
	case "--version", "version", "remote", "branch --show-current":
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

// gitReads are verbs that may only be asked where it is known how git is set up: they read files that are checked out, by filters and
// hooks, or have options that the neutral form lacks.
var gitReads = map[string]struct {
	options  optionSet
	worktree bool
	most     int // operands; -1: any number
}{
	"status": {optionSet{short: "sbu?z", long: "short branch porcelain? long untracked-files? ignored? ahead-behind no-ahead-behind show-stash no-column column? find-renames? no-renames ignore-submodules?"}, true, -1},
	"diff": {optionSet{short: "puU:sbwzRaM?C?DS:G:", number: true, long: "stat? shortstat numstat name-only name-status cached staged check color? no-color word-diff? unified= diff-filter= summary patch no-patch minimal patience histogram " +
		"ignore-space-change ignore-all-space ignore-blank-lines exit-code quiet raw compact-summary dirstat? merge-base find-renames? no-renames relative? src-prefix= dst-prefix= no-prefix text ignore-submodules? no-ext-diff no-textconv color-words? function-context"}, true, -1},
	"diff-index": {optionSet{short: "pmurRszM?C?", long: "cached name-only name-status quiet raw patch no-patch stat? numstat shortstat summary diff-filter= exit-code ignore-submodules? find-renames? no-renames full-index abbrev? merge-base"}, true, -1},
	"diff-files": {optionSet{short: "purRszq", long: "name-only name-status quiet raw patch no-patch stat? numstat shortstat summary diff-filter= exit-code ignore-submodules? no-renames"}, true, -1},
	"blame":      {optionSet{short: "lestwCMfnpL:", long: "porcelain line-porcelain date= show-email show-name show-number root since= ignore-rev= first-parent abbrev= color-lines color-by-age"}, true, -1},
	"grep": {optionSet{short: "niIwvhHlLcEFGPopqWrA:B:C:e:m:z", number: true, long: "line-number ignore-case word-regexp invert-match files-with-matches name-only files-without-match count extended-regexp fixed-strings perl-regexp basic-regexp heading break " +
		"and or not all-match quiet max-depth= context= after-context= before-context= cached untracked full-name color? no-color show-function function-context max-count= recursive no-recursive only-matching column text"}, true, -1},
	"cat-file":     {optionSet{short: "tspe"}, false, 2},
	"check-ignore": {optionSet{short: "vqn", long: "verbose quiet non-matching no-index"}, false, -1},
	"reflog":       {optionSet{short: "n:", number: true, long: "max-count= date="}, false, 0},
	"cherry":       {optionSet{short: "v", long: "verbose"}, false, -1},
}

// gitPairs are commands of git that have a verb of their own: words that must stand there, and then operands.
var gitPairs = []string{"stash list", "worktree list", "remote get-url"}

// readsConfig returns the name of the setting if the words after "git config" are that and options that only read. The name must have a
// dot: no subcommand of git config has one.
func readsConfig(args []value) string {
	set := optionSet{short: "z", long: "get get-all bool int path type= global local system worktree null show-origin show-scope includes no-includes default="}
	options, operands, why := set.parse(args)
	if why != "" || len(operands) != 1 || !operands[0].known || operands[0].many || !strings.Contains(operands[0].text, ".") ||
		slices.ContainsFunc(options, func(o option) bool { return o.name == "help" }) {
		return ""
	}
	return operands[0].text
}

// gitPlain are settings whose values are no secrets: names, switches, and files.
var gitPlain = lazyregexp.New(`(?i)^(user\.(name|email|signingkey)|init\.defaultbranch|branch\..+\.(merge|rebase)|pull\.(rebase|ff)|push\.(default|autosetupremote)|color\.ui|` +
	`core\.(autocrlf|bare|eol|excludesfile|filemode|hookspath|ignorecase)|commit\.(gpgsign|template)|tag\.gpgsign|rebase\.autostash|merge\.(conflictstyle|ff|tool)|diff\.(algorithm|renames|tool)|fetch\.prune)$`)

// gitTells is for commands that print settings.
const gitTells = "it prints settings of git, of which some are secrets: a URL may have a password in it"

// gitAllows knows the neutral form of git, and what only reads where git is set up so that it runs nothing.
func gitAllows(c *call) string {
	if plainGit(c.args) {
		return ""
	}
	args, use := c.args, gitUse{looks: true}
	if len(args) > 2 && args[0].is("-C") && args[1].known && !args[1].many && !args[1].home && args[1].text != "" && c.w.s.opts.Git != nil {
		use.within, args = args[1].text, args[2:]
	}
	args, global := gitGlobal(args)
	global = global && use.within == ""
	if len(args) == 0 || !args[0].known {
		return "which of its commands it runs is not known"
	}
	verb := args[0].text
	if strings.HasPrefix(verb, "-") {
		return "this option of git may run programs, or is about another repository"
	}
	// allow is for what depends on how git is set up.
	allow := func(otherwise string) string {
		if c.w.s.opts.Git == nil {
			return otherwise
		}
		c.git = use
		return ""
	}
	if text := words(args); text == "remote -v" || text == "remote --verbose" {
		use.tells = "remote"
		return allow(gitTells)
	}
	for _, pair := range gitPairs {
		first, second, _ := strings.Cut(pair, " ")
		if verb == first && len(args) > 1 && args[1].is(second) && len(known(args, false)) == len(args) && len(args) <= 3 && !(len(args) == 3 && strings.HasPrefix(args[2].text, "-")) {
			if verb == "remote" {
				use.tells = "remote"
				return allow(gitTells)
			}
			return allow("git " + pair + " goes by the repository's configuration")
		}
	}
	if verb == "config" {
		use.tells = readsConfig(args[1:])
		switch {
		case use.tells == "":
		case gitPlain().MatchString(use.tells):
			return allow("git config goes by the repository's configuration")
		default:
			return allow(gitTells)
		}
	}
	if reads, ok := gitReads[verb]; ok {
		options, operands, why := reads.options.parse(args[1:])
		switch {
		case why != "":
			return why
		case slices.ContainsFunc(options, func(o option) bool { return o.name == "help" }):
			return gitHelp
		case reads.most >= 0 && len(operands) > reads.most:
			return "it may have more operands than are known to change nothing"
		}
		use.worktree = reads.worktree
		return allow("git " + verb + " may run filters that the repository's configuration names, which no option switches off")
	}
	known, ok := gitVerbs[verb]
	if !ok {
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
		switch {
		case (o.name == "format" || o.name == "pretty") && (!o.arg.known || gitChecks().MatchString(o.arg.text)), o.name == "sort" && (!o.arg.known || strings.Contains(o.arg.text, "sig")):
			return "a format, or what is sorted by, may check signatures with a program"
		case o.name == "oneline", (o.name == "format" || o.name == "pretty") && gitFormat().MatchString(o.arg.text):
			has["a format"] = true
		case o.name == "format" || o.name == "pretty":
			has["a name"] = true // The configuration may have it stand for any format.
		}
	}
	listing := has["list"] || has["l"] || verb == "tag" && has["n"] || has["contains"] || has["merged"] || has["no-merged"] || has["points-at"]
	if known.list && len(operands) > 0 && !listing || verb == "symbolic-ref" && len(operands) != 1 {
		return "an operand of git " + verb + " makes something: write --list for a pattern"
	}
	if has["help"] {
		return gitHelp
	}
	if verb == "ls-files" && (has["m"] || has["modified"]) {
		use.worktree = true
		return allow("git ls-files -m may run filters that the repository's configuration names, which no option switches off")
	}
	var missing []string
	if known.format && (!has["a format"] || has["a name"]) {
		missing = append(missing, "--oneline")
	}
	for name := range strings.FieldsSeq(known.must) {
		if !has[name] {
			missing = append(missing, "--"+name)
		}
	}
	if known.list {
		return allow("git " + verb + " may sort by signatures, which it checks with a program, as the repository's configuration says")
	}
	if !global || len(missing) > 0 {
		return allow(strings.TrimSpace(gitRemedy + " " + verb + " " + strings.Join(missing, " ")))
	}
	return ""
}

// tellsSettings reports whether a command of git, that is not known to change nothing, may print settings: it errs on the side of true.
func (c *call) tellsSettings() bool {
	if c.name != "git" {
		return false
	}
	switch verb, in := c.gitVerb(); {
	case verb == "config":
		return !gitPlain().MatchString(readsConfig(in.args))
	case verb == "remote":
		first := in.operands()
		if len(in.args) == 0 && !c.extra && !slices.ContainsFunc(c.args, func(v value) bool { return v.many }) {
			return false // It prints names alone.
		}
		return len(first) == 0 || !slices.Contains(gitRemoteChanges, first[0].text)
	case verb == "ls-remote":
		return in.has("get-url")
	default:
		return verb == "var" || strings.HasPrefix(verb, "credential") || strings.Contains(verb, hidden)
	}
}

// gitRemoteChanges are commands of git remote that print no URL.
var gitRemoteChanges = []string{"add", "rename", "remove", "rm", "set-head", "set-branches", "set-url", "prune", "update"}

const gitHelp = "it opens a manual, by a program that the configuration may name"

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
