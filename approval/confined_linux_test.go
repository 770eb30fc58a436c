package approval_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/oneshot"
	"github.com/limpet-sh/limpet/sandbox"
)

// snapshot is what is in a directory: names, kinds, modes, times and contents.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text := ""
		switch {
		case info.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(b)
		case info.Mode()&fs.ModeSymlink != 0:
			if text, err = os.Readlink(path); err != nil {
				return err
			}
		}
		found[path] = fmt.Sprint(info.Mode(), info.ModTime().UnixNano(), text)
		return nil
	}))
	return found
}

// written are scripts that are allowed in a sandbox that writes to its workspace, besides the examples of the rules.
var written = []string{
	"mkdir -p /usr/d/e && cp a b d/c /usr/d && ls -R /usr/d && rm -rf /usr/d", "ls | tee /etc/l /usr/l | wc -l", "touch /etc/t && rm /etc/t", "rm -rf /usr/share/doc/nosuch /etc/alternatives/nosuch", "chmod -R a+w /usr/share/nosuch /etc/hosts", "chown -R 1:1 /etc/hosts", "truncate -s 0 /etc/hosts", "cp -p a b /usr/share",
	"sleep 60 & kill $!", "sleep 60 & kill %1", "sleep 60 & pkill sleep", "pkill -9 nosuch; killall -q nosuch; renice 5 -p $$", "kill -0 1", "ping -c1 -W1 127.0.0.1", "ping -c1 -W1 192.0.2.1", "timeout 5 bash -c 'echo x > /dev/tcp/192.0.2.1/80'", "cat < /dev/tcp/192.0.2.1/80", "host -W 1 example.com",
	"echo x > /etc/motd", "echo x > /etc/profile.d/nosuch.sh", "echo x > /usr/a", "rm -rf /etc/hosts", "touch /usr/share/a", "cp a /etc/a", "for i in 1 2; do echo $i >> /usr/n; done; cat /usr/n", "bash -c 'ls > /usr/x'", "{ ls; echo x; } > /usr/a 2> /etc/err",
}

// confinement is a sandbox that writes to its workspace, and what is outside of it.
type confinement struct {
	workspace, home, beside string
	opts                    *approval.Options
	runner                  *oneshot.Runner
	before, besides         map[string]string
}

func newConfinement(t *testing.T) *confinement {
	t.Helper()
	testenv.Slow(t)
	if _, err := sandbox.Probe(t.Context()); err != nil {
		t.Skipf("no sandbox is to be had here: %q", err)
	}
	workspace, policy, opts := workplace(t)
	c := &confinement{workspace: workspace, home: filepath.Dir(workspace), beside: t.TempDir(), opts: opts}
	require.NoError(t, os.WriteFile(filepath.Join(c.beside, "a"), nil, 0o600))
	where, err := sandbox.New(policy)
	require.NoError(t, err)
	c.runner = oneshot.New(&oneshot.Options{Dir: workspace, Transport: where, RuntimeDir: t.TempDir(), Env: []string{"PATH=" + opts.Path, "HOME=" + c.home}})
	t.Cleanup(func() { require.NoError(t, c.runner.Close()) })
	c.before, c.besides = snapshot(t, c.home), snapshot(t, c.beside)
	return c
}

// tried lists scripts that may do harm there.
func (c *confinement) tried(t *testing.T) (list []string) {
	t.Helper()
	for _, script := range scripts(t, "confined.txt") {
		list = append(list, strings.NewReplacer("WS", c.workspace, "UP", c.home).Replace(script))
	}
	list = append(append(list, scripts(t, "ways.txt")...), scripts(t, "denied.txt")...)
	for _, r := range append(approval.Rules(), approval.ConfinedRules()...) {
		list = append(list, r.No...)
	}
	return list
}

// run runs a script that is allowed, and reports whether all outside is as it was, and nothing secret was said.
func (c *confinement) run(t *testing.T, script string, patience time.Duration) (command.Result, bool) {
	t.Helper()
	result, err := c.runner.Do(t.Context(), command.Request{Script: script, Timeout: patience})
	if err != nil && result.Elapsed < patience {
		t.Logf("%q: %v", script, err)
	}
	same := assert.NotContains(t, result.Stdout.String()+result.Stderr.String(), "SECRET-.env", "%q", script)
	same = assert.Equal(t, c.before, snapshot(t, c.home), "%q", script) && same
	return result, assert.Equal(t, c.besides, snapshot(t, c.beside), "%q", script) && same
}

// Scripts that are allowed because the sandbox prevents what they would do run in a real one: the workspace, the home and what is beside them stay as
// they are.
func TestWhatASandboxAllowsChangesNothingOutside(t *testing.T) {
	c := newConfinement(t)
	const patience = 10 * time.Second // Of scripts that wait for something.
	must := slices.Clone(written)
	for _, r := range approval.ConfinedRules() {
		must = append(must, r.Yes...)
	}
	ran := 0
	for _, script := range must {
		if assert.Equal(t, approval.Allow, approval.Judge(script, c.opts).Verdict, script) {
			c.run(t, script, patience)
			ran++
		}
	}
	for _, script := range c.tried(t) {
		if approval.Judge(script, c.opts).Verdict == approval.Allow {
			c.run(t, script, patience)
			ran++
		}
	}
	t.Logf("%d scripts were allowed, and ran", ran)
	result, _ := c.run(t, "echo x > /usr/nosuch || rm /etc/hosts || echo refused", patience)
	assert.Equal(t, "refused\n", result.Stdout.String())
	_, err := c.runner.Run(t.Context(), "echo x >> a")
	require.NoError(t, err)
	assert.NotEqual(t, c.before, snapshot(t, c.home), "the workspace can be written")
}

// Scripts that are made of others at random, and are allowed, change nothing outside.
func TestMutantsInASandboxChangeNothingOutside(t *testing.T) {
	c := newConfinement(t)
	b, seed := newBreeder(2)
	b.donors = c.tried(t)
	for range 5 { // They are allowed.
		b.donors = append(b.donors, written...)
		for _, r := range approval.ConfinedRules() {
			b.donors = append(b.donors, r.Yes...)
		}
	}
	made, ran := 0, 0
	const patience = time.Second
	for began := time.Now(); time.Since(began) < *mutantTime; made++ {
		script := b.next()
		if strings.Contains(script, "\x00") {
			continue // Bash is sent none.
		}
		j := approval.Judge(script, c.opts)
		if j.Verdict != approval.Allow || sleeps(j) || approval.Judge(script, typical).Verdict == approval.Allow {
			continue
		}
		ran++
		if _, same := c.run(t, script, patience); !same {
			t.Fatalf("%q, with seed %d", script, seed)
		}
	}
	t.Logf("of %d scripts %d were allowed for what the sandbox prevents, and ran; seed %d", made, ran, seed)
	assert.Positive(t, ran)
}

// sleeps reports whether a script has a command that only takes time.
func sleeps(j approval.Judgement) bool {
	return slices.ContainsFunc(j.Findings, func(f approval.Finding) bool { return len(f.Words) > 0 && f.Words[0] == "sleep" })
}
