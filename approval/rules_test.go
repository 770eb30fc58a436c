package approval_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/approval"
)

func verdict(script string) approval.Verdict { return approval.Judge(script, nil).Verdict }

// Each rule decides its own examples, and no others.
func TestRulesDecideTheirExamples(t *testing.T) {
	for _, r := range approval.Rules() {
		decides := func(script string) bool {
			for _, f := range approval.Judge(script, nil).Findings {
				if f.Rule == r.Name {
					return true
				}
			}
			return false
		}
		assert.NotEmpty(t, append(r.Yes, r.No...), "%s has no examples", r.Name)
		for _, script := range r.Yes {
			if r.Verdict != approval.Ask || r.Name[:3] == "ask" {
				assert.Equal(t, r.Verdict, verdict(script), "%s: %s", r.Name, script)
			}
			if r.Name[:4] != "wrap" {
				assert.True(t, decides(script), "%s does not decide: %s", r.Name, script)
			}
		}
		for _, script := range r.No {
			if r.Verdict == approval.Allow || r.Name[:4] == "wrap" {
				assert.NotEqual(t, approval.Allow, verdict(script), "%s: %s", r.Name, script)
			} else {
				assert.False(t, decides(script), "%s decides: %s", r.Name, script)
			}
		}
	}
}

func TestFindingsSayWhere(t *testing.T) {
	script := "ls -l && sh -c 'cat a; touch b' # x"
	j := approval.Judge(script, nil)
	assert.Equal(t, approval.Ask, j.Verdict)
	var texts []string
	for _, f := range j.Findings {
		assert.Equal(t, script[f.From:f.To], f.Text)
		texts = append(texts, f.Text)
	}
	assert.Equal(t, []string{"ls -l", "sh -c 'cat a; touch b'", "cat a", "touch b"}, texts)
}

func TestTheZeroVerdictDenies(t *testing.T) {
	assert.Equal(t, approval.Deny, approval.Judgement{}.Verdict)
	assert.Equal(t, approval.Allow, approval.Judge("# nothing\n", nil).Verdict)
}

func TestProtectedPathsAreDenied(t *testing.T) {
	opts := &approval.Options{Home: "/srv/me", Protected: []string{"/srv/secret"}}
	for _, script := range []string{"cat /srv/secret/a", "ls /srv/./secret", "echo a >/srv/secret/b", "cat /srv/me/.config/limpet/hosts.json", "rm -rf /srv/me", "dd if=/srv/secret/x", "cat </srv/secret/a"} {
		assert.Equal(t, approval.Deny, approval.Judge(script, opts).Verdict, script)
	}
	assert.Equal(t, approval.Allow, approval.Judge("cat /srv/secrets", opts).Verdict)
}

// A variable that is not exported is no program's, and bash's own are known.
func TestVariablesOfTheShellAloneAreHarmless(t *testing.T) {
	for script, want := range map[string]approval.Verdict{
		"RES=1": approval.Allow, "read -r RES": approval.Allow, "for FILE in *; do echo \"$FILE\"; done": approval.Allow, "unset RES": approval.Allow, "echo $\"Press Enter\"": approval.Allow, "N=1; N=2; echo $N": approval.Allow,
		"GOPATH=/tmp": approval.Ask, "read -r PATH": approval.Ask, "IFS=,": approval.Ask, "BASH_ENV=x": approval.Ask, "PS4='$(x)'": approval.Ask, "PROMPT_COMMAND=x": approval.Ask, "COMP_WORDBREAKS=x": approval.Ask,
		"TMPDIR=/x": approval.Ask, "HISTFILE=x": approval.Ask, "OPTIND=2": approval.Ask, "LIMPET_X=1": approval.Ask, "Mixed=1": approval.Allow, "HostName=$(hostname)": approval.Allow, "for PATH in *; do ls; done": approval.Ask,
		"RES=1 ls": approval.Ask, "export RES=1": approval.Ask, "RES=1; export RES": approval.Ask, "declare -x RES=1": approval.Ask, "set -a; RES=1": approval.Ask, "env RES=1 ls": approval.Ask, "LD_PRELOAD=/x ls": approval.Ask,
		"TEXTDOMAIN=x; echo $\"a\"": approval.Ask, "read TEXTDOMAIN; echo $\"a\"": approval.Ask, "RES=$(rm a)": approval.Ask, "read -r 'RES[$(x)]'": approval.Ask, "RES[$(x)]=1": approval.Ask,
	} {
		assert.Equal(t, want, approval.Judge(script, typical).Verdict, script)
		if want == approval.Allow && script[0] != 'N' {
			assert.Equal(t, approval.Ask, verdict(script), "it may be exported: %s", script)
		}
	}
}
