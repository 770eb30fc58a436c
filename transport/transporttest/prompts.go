package transporttest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// 24. No pager and no editor opens without a terminal.
func noPager(t *testing.T, s suite) {
	x := s.start(t)
	assert.Equal(t, 0, x.run("export HOME=$PWD; mkdir repo; cd repo").ExitCode)
	if x.run("type -P git").ExitCode == 0 {
		git(x)
	} else {
		t.Log("not checked: git, since there is none here")
	}
	// All of them are known to open a pager where there is a terminal.
	for program, script := range map[string]string{
		"man":       "man man >/dev/null",
		"systemctl": "systemctl --version; systemctl list-units",
		"less":      "seq 10000 | less",
		"python3":   "python3 -c 'help(str)' >/dev/null",
	} {
		if x.run("type -P "+program).ExitCode != 0 {
			t.Logf("not checked: %s, since there is none here", program)
			continue
		}
		x.run(script) // That it ends is the promise; run bounds it.
	}
	// As scripts write it, and as programs run it.
	for _, script := range []string{"$EDITOR file", "$VISUAL file", "$GIT_EDITOR file", `sh -c "$EDITOR file"`} {
		res := x.run(script)
		assert.Equal(t, 1, res.ExitCode, script)
		assert.Empty(t, res.Stderr.String(), "no syntax error, and no terminal that it asks for: %s", script)
	}
	x.want("fine\n", "echo fine")
}

func git(x *sh) {
	x.run("git init -q . && git config user.email a@example.org && git config user.name a")
	assert.Zero(x.t, x.run("for i in {1..60}; do git commit -q --allow-empty -m \"commit $i\" || exit; done").ExitCode)
	res := x.run("git log")
	assert.Zero(x.t, res.ExitCode)
	assert.Contains(x.t, res.Stdout.String(), "commit 1\n", "the last one, a page or two down")
	assert.Zero(x.t, x.run("git -p log; git -p branch").ExitCode)

	res = x.run("git commit --allow-empty")
	assert.NotZero(x.t, res.ExitCode)
	assert.Contains(x.t, res.Stderr.String(), "-m or -F", "git says what to do instead")
	assert.NotZero(x.t, x.run("git commit --amend --allow-empty").ExitCode)
	assert.Zero(x.t, x.run("git commit --amend --allow-empty --no-edit").ExitCode)
}
