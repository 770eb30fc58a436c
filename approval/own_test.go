package approval_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
)

var (
	now  = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	soon = now.Add(time.Hour)
)

// ruled is the verdict about a script in /src/x under rules, which are JSON.
func ruled(t *testing.T, script string, rules ...string) approval.Verdict {
	t.Helper()
	opts := &approval.Options{Home: "/home/me", Dir: "/src/x", Now: func() time.Time { return now }}
	for _, rule := range rules {
		var o approval.Own
		require.NoError(t, json.Unmarshal([]byte(rule), &o))
		require.NoError(t, o.Validate(), rule)
		opts.Own = append(opts.Own, o)
	}
	return approval.Judge(script, opts).Verdict
}

func TestARuleAllowsWhatItNamesAndNothingElse(t *testing.T) {
	const tests = `{"verdict":"allow","words":["go","test"],"options":["-run","-v","--short"],"operands":true}`
	for script, want := range map[string]approval.Verdict{
		"go test":                           approval.Allow,
		"go test ./...":                     approval.Allow,
		"go test -v -run 'Test A' ./a -v":   approval.Allow,
		"go test -run=X --short":            approval.Allow,
		"go test && go test ./b | tail -n1": approval.Allow,
		"timeout 60 go test":                approval.Allow,
		"go test -- -exec":                  approval.Allow,
		"go test -exec rm":                  approval.Ask,
		"go test -vet=off":                  approval.Ask,
		"go test --run X":                   approval.Ask,
		"go test -vv":                       approval.Ask,
		"go vet":                            approval.Ask,
		"go":                                approval.Ask,
		"go -C / test":                      approval.Ask,
		"./go test":                         approval.Ask,
		"/tmp/go test":                      approval.Ask,
		"/usr/local/bin/go test":            approval.Ask,
		`go test "$x"`:                      approval.Ask,
		"go test $(ls)":                     approval.Ask,
		"go test *":                         approval.Ask,
		"go test > out":                     approval.Ask,
		"GOFLAGS=-exec=rm go test":          approval.Ask,
		"go test; rm a":                     approval.Ask,
		"ls | xargs go test":                approval.Ask,
		"sudo go test":                      approval.Ask,
		"nohup go test &":                   approval.Ask,
		"go test ~/.config/limpet/x":        approval.Deny,
		"go test ~/.ssh/id_rsa":             approval.Ask,
		"go test .env":                      approval.Ask,
		"go test /proc/self/environ":        approval.Ask,
		"go test .limpet/approvals.json":    approval.Ask,
		"go test -run=.limpet":              approval.Ask,
		"go test; rm -rf /":                 approval.Deny,
	} {
		assert.Equal(t, want, ruled(t, script, tests), script)
	}
	const exact = `{"verdict":"allow","words":["make","-j4"]}`
	for script, want := range map[string]approval.Verdict{
		"make -j4": approval.Allow, "make": approval.Ask, "make -j4 clean": approval.Ask, "make -j4 -f x": approval.Ask, "make -j4 --": approval.Ask, "make -j8": approval.Ask,
	} {
		assert.Equal(t, want, ruled(t, script, exact), script)
	}
}

// What any operand may follow is not what throws away or overwrites.
func TestARuleForAnyOperandOpensNoneThatDoesHarm(t *testing.T) {
	for script, rule := range map[string]string{
		"git push origin +main": `"git","push","origin"`, "git push origin :main": `"git","push","origin"`,
		"git checkout .": `"git","checkout"`, "git checkout main": `"git","checkout"`, "git restore x": `"git","restore"`, "psql 'drop table a'": `"psql"`,
	} {
		assert.Equal(t, approval.Ask, ruled(t, script, `{"verdict":"allow","words":[`+rule+`],"operands":true}`), script)
	}
	assert.Equal(t, approval.Allow, ruled(t, "git push origin main", `{"verdict":"allow","words":["git","push","origin"],"operands":true}`))
	assert.Equal(t, approval.Allow, ruled(t, "git checkout .", `{"verdict":"allow","words":["git","checkout","."]}`), "it is named word for word")
}

func TestARuleHoldsInItsDirectoryForItsTime(t *testing.T) {
	for rule, want := range map[string]approval.Verdict{
		`"dir":"/src"`:                                approval.Allow,
		`"dir":"/src/x"`:                              approval.Allow,
		`"dir":"/"`:                                   approval.Allow,
		`"dir":"/src/x/y"`:                            approval.Ask,
		`"dir":"/sr"`:                                 approval.Ask,
		`"until":"2026-05-04T12:00:01Z"`:              approval.Allow,
		`"until":"2026-05-04T11:59:59Z"`:              approval.Ask,
		`"until":"0001-01-01T00:00:00Z"`:              approval.Allow,
		`"dir":"/src","until":"2026-01-01T00:00:00Z"`: approval.Ask,
	} {
		assert.Equal(t, want, ruled(t, "make", `{"verdict":"allow","words":["make"],`+rule+`}`), rule)
	}
}

// Elsewhere the same words do something else.
func TestARuleOfADirectoryEndsWhereAScriptLeavesIt(t *testing.T) {
	for script, want := range map[string]approval.Verdict{
		"cd sub && make":                  approval.Allow,
		"cd a; cd ./b; make":              approval.Allow,
		"cd /src/x/sub && make":           approval.Allow,
		"(cd sub; make)":                  approval.Allow,
		"cd /tmp && make":                 approval.Ask,
		"cd .. && make":                   approval.Ask,
		"cd sub/../../y && make":          approval.Ask,
		"cd && make":                      approval.Ask,
		"cd - && make":                    approval.Ask,
		"cd ~ && make":                    approval.Ask,
		`cd "$d" && make`:                 approval.Ask,
		"cd -P /src/x && make":            approval.Ask,
		"builtin cd /tmp && make":         approval.Ask,
		"command cd /tmp; make":           approval.Ask,
		"pushd /tmp && make":              approval.Ask,
		"popd; make":                      approval.Ask,
		"if true; then cd /tmp; fi; make": approval.Ask,
		`\cd /tmp; make`:                  approval.Ask,
		`"cd" /tmp; make`:                 approval.Ask,
		`c''d /tmp; make`:                 approval.Ask,
		"{cd,/tmp}; make":                 approval.Ask,
		"env -C /tmp make":                approval.Ask,
		"CDPATH=/tmp; cd sub; make":       approval.Ask,
		"make -C /tmp":                    approval.Ask,
	} {
		assert.Equal(t, want, ruled(t, script, `{"verdict":"allow","words":["make"],"dir":"/src/x"}`), script)
	}
}

func TestTheStrictestRuleWins(t *testing.T) {
	const (
		allow = `{"verdict":"allow","words":["git","push","origin"],"operands":true}`
		ask   = `{"verdict":"ask","words":["git","push"]}`
		deny  = `{"verdict":"deny","words":["git","push"],"reason":"the pipeline pushes"}`
	)
	assert.Equal(t, approval.Allow, ruled(t, "git push origin main", allow))
	assert.Equal(t, approval.Ask, ruled(t, "git push origin main", allow, ask))
	assert.Equal(t, approval.Deny, ruled(t, "git push origin main", allow, ask, deny))
	for _, script := range []string{"git -C /x push", "/usr/bin/git push", "git --no-pager push -f", "ls; sudo git push", "env git push", "echo a | xargs git push", `git "$x" push`} {
		assert.Equal(t, approval.Deny, ruled(t, script, deny), script)
	}
	for _, script := range []string{"git pull", "git stash push2", "gitk push"} {
		assert.Equal(t, approval.Ask, ruled(t, script, deny), script)
	}
	assert.Equal(t, approval.Ask, ruled(t, "ls -l", `{"verdict":"ask","words":["ls"]}`), "also of what limpet allows")
	assert.Equal(t, approval.Allow, ruled(t, "cat a", `{"verdict":"ask","words":["ls"]}`))
}

func TestRulesThatCannotBeMeant(t *testing.T) {
	for says, rule := range map[string]approval.Own{
		"a rule wants words":             {Verdict: approval.Allow},
		"none of them empty":             {Verdict: approval.Deny, Words: []string{"a", ""}},
		"a path may lead to another one": {Verdict: approval.Allow, Words: []string{"./x"}},
		"no rule allows it":              {Verdict: approval.Allow, Words: []string{"bash", "-c"}},
		"is no option":                   {Verdict: approval.Allow, Words: []string{"go"}, Options: []string{"v"}},
		"is an absolute path":            {Verdict: approval.Allow, Words: []string{"go"}, Dir: "x"},
		"for a rule that allows":         {Verdict: approval.Deny, Words: []string{"go"}, Operands: true},
		"what follows may belong to it":  {Verdict: approval.Allow, Words: []string{"go", "test", "-exec"}, Operands: true},
	} {
		assert.ErrorContains(t, rule.Validate(), says)
	}
	for _, name := range []string{"sh", "python3", "python3.12", "env", "sudo", "xargs", "eval", "source", "alias", "vim", "awk", "sed", "find", "ssh", "rm", "busybox", "node", "npx"} {
		assert.Error(t, approval.Own{Verdict: approval.Allow, Words: []string{name, "x"}}.Validate(), name)
	}
	broken := &approval.Options{Own: []approval.Own{{Verdict: approval.Allow, Words: []string{"bash", "x"}}}}
	assert.Equal(t, approval.Ask, approval.Judge("bash x", broken).Verdict, "such a rule is left out")
}

// Always offers what allows that script, and as little else as makes sense.
func TestAlwaysOffersARule(t *testing.T) {
	for script, want := range map[string]string{
		"go test ./...":            "go test ...",
		"go test -v -run X ./a":    "go test [-v] [-run] ...",
		"go test -count=1; go vet": "go test [-count] ...; go vet ...",
		"go test -exec x":          "go test -exec x",
		"make -j4":                 "make -j4",
		"git push origin main":     "git push origin ...",
		"git push --force origin":  "git push --force origin",
		"git checkout main":        "git checkout main",
		"git push origin +main":    "git push origin +main",
		"git -C /x status":         "git -C /x status",
		"git commit -m 'a b'":      "git commit [-m] ...",
		"npm run build":            "npm run build ...",
		"npm install x":            "npm install x",
		"ls; cp a b":               "cp a b",
		"touch a; touch b":         "touch ...",
		"curl https://example.org": "curl https://example.org",
		"FOO=1 make":               "make",
		"rm a":                     "",
		"rm -rf build; make":       "",
		"bash x.sh":                "",
		"python3 x.py":             "",
		"sudo make":                "",
		"./x.sh":                   "",
		"make > log":               "",
		`make "$x"`:                "",
		"$x":                       "",
		"source x":                 "",
		"if":                       "",
		"f() { ls; }":              "",
		"PATH=. make":              "",
		"ls":                       "",
		"rm -rf /":                 "",
		"env":                      "",
		"vim a":                    "",
		"find . -delete":           "",
		"make *":                   "",
	} {
		q := approval.Question{Script: script, Dir: "/src/x", Judgement: approval.Judge(script, nil)}
		rules, ok := q.Always("/src/x", soon)
		got := ""
		for i, o := range rules {
			require.NoError(t, o.Validate(), script)
			assert.Equal(t, "/src/x", o.Dir)
			assert.Equal(t, soon, o.Until)
			if i > 0 {
				got += "; "
			}
			got += o.String()
		}
		assert.Equal(t, want, got, script)
		assert.Equal(t, want != "", ok, script)
		if !ok {
			continue
		}
		opts := &approval.Options{Own: rules, Dir: "/src/x", Now: func() time.Time { return now }}
		assert.Equal(t, approval.Allow, approval.Judge(script, opts).Verdict, "with its rules: %s", script)
	}
	q := approval.Question{Script: "make", Judgement: approval.Judge("make", nil), Changed: true}
	_, ok := q.Always("/", soon)
	assert.False(t, ok, "it may be another make")
	q = approval.Question{Script: "y", Judgement: approval.Judge("make", nil), Input: "job-1"}
	_, ok = q.Always("/", soon)
	assert.False(t, ok)
}

func TestAGateReadsTheRulesOfADirectoryAnew(t *testing.T) {
	p := &person{answer: approval.Once}
	var dirs []string
	var fails error
	g := approval.NewGate(p.ask, &approval.Options{Load: func(dir string) ([]approval.Own, error) {
		dirs = append(dirs, dir)
		return []approval.Own{{Verdict: approval.Allow, Words: []string{"make"}, Dir: "/a"}}, fails
	}})
	require.NoError(t, g.Check(t.Context(), "make", "/a/b"))
	assert.Empty(t, p.asked)
	require.NoError(t, g.Check(t.Context(), "make", "/b"))
	assert.Len(t, p.asked, 1)
	assert.Equal(t, []string{"/a/b", "/b"}, dirs)
	fails = errors.New("the file is damaged")
	require.NoError(t, g.Check(t.Context(), "ls", "/a"))
	require.Len(t, p.asked, 2, "also what changes nothing: a rule may deny it")
	reason, _ := p.asked[1].Why()
	assert.Equal(t, "the rules cannot be read: the file is damaged", reason)
}
