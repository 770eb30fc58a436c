package approval_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
)

// What ordinary scripts that only read may ask, of a hundred.
const (
	mostAsks          = 5.0
	mostAsksFragments = 35.0 // of those with variables from elsewhere: a value may be an option, or several words
	mostAsksGit       = 17.0 // of those with git, where that is set up as it is at first: one of six, in a set
)

// typical are the options for a new shell: it exports what the shells of most people export, and nothing else.
var typical = &approval.Options{Exported: func(name string) bool {
	switch name {
	case "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "PWD", "OLDPWD", "SHLVL", "MAIL", "HOSTNAME", "DISPLAY", "SSH_AUTH_SOCK", "EDITOR", "PAGER", "XDG_RUNTIME_DIR", "GOPATH":
		return true
	}
	return false
}}

// ordinary are scripts that only read, with the files that they are from. Those of later.tsv were collected with those of ordinary.tsv,
// and looked at long after the rules were written; those of unseen.tsv, and later those of fourth.tsv, were drawn after that, and not looked at before they
// were measured: docs/approval.md says what was found.
// Of scripts with git those are left out that have variables from elsewhere, and those that change something, which somebody took for reading.
func ordinary(t *testing.T, file string) (git, whole, fragments []string) {
	text, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		_, script, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		require.True(t, ok, line)
		switch script = breaks.Replace(script); {
		case strings.Contains(script, "git "):
			if !isFragment(script) && !changesByGit.MatchString(script) {
				git = append(git, script)
			}
		case isFragment(script):
			fragments = append(fragments, script)
		default:
			whole = append(whole, script)
		}
	}
	return git, whole, fragments
}

var (
	singleQuoted = regexp.MustCompile(`'[^']*'`)
	function     = regexp.MustCompile(`(^|\$\(|[;|&{]\s*)([a-z]+_[a-z_]+)(\s|$)`) // Few programs have such a name.
	variable     = regexp.MustCompile(`\$\{?[!#]?([A-Za-z_]\w*|[0-9@*])`)
)

// isFragment reports whether a script needs another part of its program: it uses a variable that it does not set, or calls a function that it does not
// define.
func isFragment(script string) bool {
	for _, match := range variable.FindAllStringSubmatch(singleQuoted.ReplaceAllString(script, ""), -1) {
		sets := regexp.MustCompile(`(^|[^\w$])(` + regexp.QuoteMeta(match[1]) + `=|for ` + regexp.QuoteMeta(match[1]) + ` in|read [^;|]*\b` + regexp.QuoteMeta(match[1]) + `\b)`)
		if match[1] != "HOME" && match[1] != "PWD" && !sets.MatchString(script) {
			return true
		}
	}
	for _, match := range function.FindAllStringSubmatch(singleQuoted.ReplaceAllString(script, ""), -1) {
		if !strings.Contains(script, match[2]+"()") {
			return true
		}
	}
	return false
}

// changesByGit are commands of git that change the repository, its configuration or other files, or ask another machine.
var changesByGit = regexp.MustCompile(`git (checkout|stash|write-tree|fetch|rerere|remote (add|remove)|branch -u|bisect|add|update-index|submodule--helper|clone|codereview|archive|config --global|ls-remote)\b`)

func TestOrdinaryScriptsThatOnlyReadRarelyAsk(t *testing.T) {
	for _, file := range []string{"ordinary.tsv", "later.tsv", "unseen.tsv", "fourth.tsv"} {
		git, whole, fragments := ordinary(t, file)
		for _, part := range []struct {
			name    string
			scripts []string
			most    float64
		}{{"whole scripts", whole, mostAsks}, {"fragments with variables from elsewhere", fragments, mostAsksFragments}, {"with git", git, mostAsksGit}} {
			asks := 0
			opts := *typical
			opts.Dir, opts.Git = "/home/me/src", plainGit
			for _, script := range part.scripts {
				j := approval.Judge(script, &opts)
				if j.Verdict == approval.Allow {
					continue
				}
				asks++
				for _, f := range j.Findings {
					if f.Verdict != approval.Allow && file == "ordinary.tsv" {
						t.Logf("%v %s: %s\t%q", f.Verdict, f.Rule, f.Reason, script)
					}
				}
			}
			share := 100 * float64(asks) / float64(len(part.scripts))
			t.Logf("%s, %s: %d of %d ask, %.1f %%", file, part.name, asks, len(part.scripts), share)
			assert.LessOrEqual(t, share, part.most, "%s, %s", file, part.name)
		}
	}
}
