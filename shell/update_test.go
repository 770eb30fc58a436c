package shell_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// born is the environment of the shells of these tests.
func born(entries ...string) *shell.Options {
	return &shell.Options{Env: append([]string{"PATH=" + os.Getenv("PATH")}, entries...)}
}

// updated runs a script for a caller with these variables.
func updated(t *testing.T, sh *shell.PersistentShell, script string, entries ...string) string {
	t.Helper()
	res, err := sh.Do(testenv.Context(t), command.Request{Script: script, UpdateEnv: entries})
	require.NoError(t, err, script)
	require.Empty(t, res.Stderr.String(), script)
	return strings.TrimSuffix(res.Stdout.String(), "\n")
}

// seen prints a variable as bash has it, and as a program has it.
const seen = `echo "${V-none} $(printenv V || echo none)"`

func TestUpdateEnvSetsWhatLimpetHasSetLast(t *testing.T) {
	sh := start(t, born("V=born"))
	assert.Equal(t, "born born", updated(t, sh, seen, "V=born"))
	assert.Equal(t, "a 'b $x\nc a 'b $x\nc", updated(t, sh, seen, "V=a 'b $x\nc"))
	assert.Equal(t, "a 'b $x\nc a 'b $x\nc", says(t, sh, seen), "it stays")
	assert.Equal(t, "none none", updated(t, sh, seen, "V"))
	assert.Equal(t, " ", updated(t, sh, seen, "V="))
	assert.Equal(t, "none none", updated(t, sh, seen, "V"))
	assert.Equal(t, "two two", updated(t, sh, seen, "V=two", "W=1"))
	assert.Equal(t, "two 2", updated(t, sh, "echo $V $W", "W=2"), "who names no V leaves it")
}

func TestUpdateEnvLeavesWhatAScriptHasSet(t *testing.T) {
	for _, row := range []struct{ set, have string }{
		{"export V=mine", "mine mine"},
		{"V=mine", "mine mine"},
		{"unset V", "none none"},
		{"unset V; V=born", "born born"}, // As it was, but for the export: there is no telling.
		{"readonly V", "born born"},
		{"readonly V=mine", "mine mine"},
		{"unset V; V=(a b)", "a none"},
		{"unset V; declare -i V=3", "3 none"},
		{"V=", " "},
	} {
		sh := start(t, born("V=born"))
		run(t, sh, row.set)
		for _, entry := range []string{"V=other", "V", "V=born", "V=third", "V=mine"} {
			got := updated(t, sh, seen, entry)
			if row.set == "unset V; V=born" {
				want := strings.TrimPrefix(entry, "V=")
				if entry == "V" {
					want = "none"
				}
				assert.Equal(t, want+" "+want, got)
				continue
			}
			assert.Equal(t, row.have, got, "%s; then %s", row.set, entry)
		}
		assert.Equal(t, "0", says(t, sh, "echo $?"), row.set)
	}
}

func TestUpdateEnvTakesUpAVariableThatIsAsItWas(t *testing.T) {
	sh := start(t, born("V=born"))
	run(t, sh, "V=mine")
	assert.Equal(t, "mine mine", updated(t, sh, seen, "V=other"))
	run(t, sh, "V=born")
	assert.Equal(t, "other other", updated(t, sh, seen, "V=other"))

	sh = start(t, born())
	assert.Equal(t, "dumb none", says(t, sh, `echo "$TERM $(printenv TERM || echo none)"`), "bash gives itself that")
	assert.Equal(t, "dumb", updated(t, sh, "echo $TERM", "TERM"))
	assert.Equal(t, "xterm xterm", updated(t, sh, `echo "$TERM $(printenv TERM)"`, "TERM=xterm"))
	sh = start(t, born())
	run(t, sh, "export TERM=dumb")
	assert.Equal(t, "dumb", updated(t, sh, "echo $TERM", "TERM=xterm"), "by hand")
}

// Whatever commands have made of the shell, a caller's variable is there, nothing is printed, and $?
// is that of the last command.
func TestUpdateEnvInHostileStates(t *testing.T) {
	testenv.Slow(t)
	for _, setup := range []string{
		"true",
		"set -e", "set -u", "set -o posix", "set -eu; set -o posix", "set -x", "set -v", "set -T; set -E",
		"export() { echo fooled; }; unset() { echo fooled; }; printf() { echo fooled; }; test() { echo fooled; }",
		"builtin() { echo fooled; }; export() { echo fooled; }", "builtin() { echo fooled; }; command() { echo fooled; };",
		"shopt -s expand_aliases; alias export='echo fooled' unset='echo fooled' printf='echo fooled' eval='echo fooled'",
		"trap 'echo debug >>traces' DEBUG", "trap 'echo err >>traces' ERR", "set -E; trap 'echo err >>traces' ERR", "set -T; trap 'echo ret >>traces' RETURN",
		"shopt -s nocasematch extglob nullglob failglob",
		"IFS=abcdefghijklmnopqrstuvwxyz:=", "readonly OTHER=1", "set -f", "set -m", "set -C", "exec 3>&1",
		"[[ a b", "enable -n export",
	} {
		t.Run(setup, func(t *testing.T) {
			t.Parallel()
			for _, keep := range []bool{false, true} {
				opts := born("V=one")
				opts.KeepOptions = keep
				begin := func() *shell.PersistentShell {
					sh := start(t, opts)
					for _, script := range []string{setup, "(exit 7)"} {
						_, err := sh.Run(testenv.Context(t), script)
						require.NoError(t, err)
					}
					return sh
				}
				ask := func(sh *shell.PersistentShell, entries ...string) string {
					_ = os.Remove(filepath.Join(sh.Dir(), "said"))
					res, err := sh.Do(testenv.Context(t), command.Request{
						Script: `echo "$? ${V-none}" >>said; printenv V >>said`, UpdateEnv: entries,
					})
					require.NoError(t, err)
					assert.Nil(t, res.Restart)
					return lines(t, filepath.Join(sh.Dir(), "said"))
				}
				sh, status := begin(), strings.Fields(ask(begin()))[0] // Some traps and options change it.
				if setup == "enable -n export" {
					assert.Equal(t, status+" one\none\n", ask(sh, "V=two", "OTHER=2"))
					continue
				}
				assert.Equal(t, status+" two\ntwo\n", ask(sh, "V=two", "OTHER=2"))
				run(t, sh, "true")
				assert.Equal(t, "0 it's\nit's\n", ask(sh, "V=it's", "OTHER=3"))
				run(t, sh, "true")
				assert.Equal(t, "0 none\n", ask(sh, "V", "OTHER"))
				if b, err := os.ReadFile(filepath.Join(sh.Dir(), "traces")); err == nil {
					assert.NotContains(t, string(b), "ret", "nothing of limpet's own")
				}
			}
		})
	}
}
