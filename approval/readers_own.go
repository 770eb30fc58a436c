package approval

import (
	"strings"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

// ownReaders have a language of their own in their words.
var ownReaders = []reader{
	{name: "read.git", reason: "it reads the repository, in the form in which its configuration runs nothing", programs: "git", own: gitAllows,
		yes: []string{"git --version", "git rev-parse --show-toplevel", "git rev-parse --abbrev-ref HEAD", "git --no-pager --no-lazy-fetch -c core.fsmonitor=false log --no-ext-diff --no-textconv --no-show-signature --submodule=short --oneline -5", "git --no-pager --no-lazy-fetch -c core.fsmonitor=false ls-files", "git --no-pager --no-lazy-fetch -c core.fsmonitor=false rev-list --count HEAD"},
		no: []string{"git status", "git diff", "git log", "git branch x", "git branch -l x", "git --no-pager --no-lazy-fetch -c core.fsmonitor=false branch x", "git --no-pager --no-lazy-fetch -c core.fsmonitor=false branch -a", "git --no-pager --no-lazy-fetch -c core.fsmonitor=false tag -l", "git --no-pager --no-lazy-fetch -c core.fsmonitor=false branch --list --no-list -D x", "git -c alias.q='!touch a' q", "git grep -Oless x", "git diff --output=F", "git fetch", "git -C x log",
			"git --no-pager --no-lazy-fetch -c core.fsmonitor=false log --no-ext-diff --no-textconv --no-show-signature --submodule=short --format=%G?", "git --no-pager --no-lazy-fetch -c core.fsmonitor=false log --no-ext-diff --no-textconv --no-show-signature --submodule=short --output=F", "git archive -o F HEAD", "git config -l", "git credential fill", "git difftool -x x"}},
	{name: "read.awk", reason: "its program only prints", programs: "awk mawk gawk nawk", own: awkAllows,
		yes: []string{"awk '{print $1}' a", "awk -F: '$3 > 5 {print $1, $2}' a", `awk 'NR==1 || /foo/ {n++} END {print n}' a`, `awk -v n=5 '{printf "%s\n", $n}' a`, "awk '{s+=$1} END {print s/NR}' a"},
		no:  []string{`awk 'BEGIN{system("touch a")}'`, `awk '{print > "F"}' a`, `awk '{print | "sh"}' a`, `awk '{"date" | getline x}' a`, "awk -f F a", "gawk -i inplace '{print}' a", "gawk -l x '{print}'", `gawk '@load "x"'`, `awk "$x" a`, `awk 'BEGIN{print ENVIRON["A"]}'`, `awk '{printf "a" > "F"}' a`, `awk 'BEGIN{f="system"; @f("touch a")}'`, "awk '{print >> $1}' a", `awk '{close(system("x"))}'`}},
	{name: "read.sed", reason: "its script only edits what it prints", programs: "sed", own: sedAllows,
		yes: []string{"sed -n 1,5p a", "sed 's/a/b/g' a", "sed -e 's|a|b|' -e '/x/d' a", "sed -n '/a/,/b/p' a", "sed '$d' a", "sed -E 's/(a)/\\1/' a", "sed 1q a", "sed -n '/^x/{s/a/b/;p}' a", "sed 's/#.*//;/^$/d' a"},
		no:  []string{"sed -i s/a/b/ a", "sed --in-place s/a/b/ a", "sed -n 'w F' a", "sed 's/a/b/w F' a", "sed 's/a/b/e' a", "sed '1e touch a' a", "sed e a", "sed -f F a", `sed "s/$x/b/" a`, "sed p *", "sed -ni p a", "sed -n '/a/w F' a", "sed 's/a/b/gw F' a", "sed --in p a", "sed 'r F' a", "sed -n 's/[/]/x/;w F' a", "sed -E -i p a", "sed '/a/!e x' a"}},
	{name: "read.jq", reason: "its filter only prints", programs: "jq", own: jqAllows,
		yes: []string{"jq . a", "jq", "jq -r '.a[] | select(.b == 1) | .c' a", `jq -r '.a.env' a`, `jq --arg x "$y" '.a[$x]' a`, "jq --indent 2 . a", `jq '.a | test("b$")' a`}, no: []string{"jq -n env", "jq -n '$ENV.A'", "jq -n '$ ENV'", "jq -n 'if$ENV then 1 else 2 end'", "jq -n --indent --arg env Y 7 .", "jq -L d 'import \"a\" as a; .' a", "jq --rawfile a F .", "jq --slurpfile a F .", `jq "$x" a`, "jq -f F", "jq input_filename a", "jq . *"}},
}

// jqSecret are what reads the environment or other files, or writes elsewhere. A variable's name needs nothing before its $, and may have blanks and comments
// behind that.
var jqSecret = lazyregexp.New(`(^|[^.\w"])(env|import|include|modulemeta|input_filename|get_search_list|input_line_number|debug|stderr|halt_error)\b|\$(ENV|env|__prog\w*|__loc__)\b|\$\s*#|\$\s+[\w:]`)

var jqOptions = optionSet{short: "rcnesaSjCM", long: "raw-output compact-output null-input exit-status slurp ascii-output sort-keys join-output color-output monochrome-output tab raw-input indent="}

// jqAllows looks for what reads the environment or other files in a filter.
func jqAllows(c *call) string {
	var args []value
	for i := 0; i < len(c.args); i++ {
		if c.args[i].is("--arg") || c.args[i].is("--argjson") {
			if i += 2; i >= len(c.args) || c.args[i-1].many || c.args[i].many {
				return "the arguments of --arg are not known"
			}
			continue
		}
		args = append(args, c.args[i])
		if c.args[i].is("--indent") { // Whatever stands there is its number.
			if i++; i >= len(c.args) || !c.args[i].number() {
				return "the number of --indent is not known"
			}
			args = append(args, c.args[i])
		}
	}
	_, operands, why := jqOptions.parse(args)
	if why != "" {
		return why
	}
	if len(operands) == 0 && len(args) == len(c.args) {
		return "" // It is the filter .
	}
	if len(operands) == 0 || !operands[0].known || operands[0].many {
		return "the filter is not known"
	}
	if jqSecret().MatchString(operands[0].text) {
		return "the filter reads the environment, or other files"
	}
	return ""
}

// tarAllows knows the forms of tar that list.
func tarAllows(c *call) string {
	lists := false
	for i, v := range c.args {
		if !v.known || v.many {
			return whyUnknownWord
		}
		text := v.text
		letters, dash := strings.CutPrefix(text, "-")
		switch {
		case strings.HasPrefix(text, "--"):
			if text == "--list" {
				lists = true
			} else if text != "--verbose" && text != "--gzip" && text != "--bzip2" && text != "--xz" {
				return "this option of tar is not known to change nothing"
			}
		case dash || i == 0:
			if strings.Trim(letters, "tvzjJf") != "" {
				return "this option of tar is not known to change nothing"
			}
			lists = lists || strings.Contains(letters, "t")
		case strings.Contains(text, ":"):
			return "a name with a colon is on another machine"
		}
	}
	if !lists {
		return "it does not only list"
	}
	return ""
}
