package saved

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/script"
)

// liveOf is what a bash has behind a script.
func liveOf(t *testing.T, text string, env ...string) State {
	t.Helper()
	cmd := exec.Command("bash", "-c", text+"\n"+Commands(script.ViaBuiltin, "id", Names))
	cmd.Env = append([]string{"PATH=/usr/bin:/bin"}, env...)
	out, err := cmd.Output()
	require.NoError(t, err)
	state, err := Parse(out, "state", "id", "seal")
	require.NoError(t, err)
	return state
}

func TestLiveIsWhatBashHas(t *testing.T) {
	live := liveOf(t, `f() { :; }; "/bin/x y"() { :; }; alias a='b c' -- 'd'=e; trap 'x' USR1; enable -n pwd; set -f; shopt -s nullglob
		hash -p "/tmp/a b" ls; hash -p /tmp/x cat; declare -i n=5; declare -A m=([a]=b); export X=y`).Live()
	assert.Contains(t, live.Functions, "f")
	assert.ElementsMatch(t, []string{"a", "d"}, live.Aliases)
	assert.Equal(t, []string{"SIGUSR1"}, live.Traps)
	assert.Equal(t, []string{"pwd"}, live.Disabled)
	assert.Contains(t, live.Builtins, "cd")
	assert.NotContains(t, live.Builtins, "pwd")
	for _, option := range []string{"noglob", "nullglob", "braceexpand", "interactive_comments"} {
		assert.Contains(t, live.Options, option)
	}
	assert.NotContains(t, live.Options, "posix")
	assert.Equal(t, map[string]string{"ls": "/tmp/a b", "cat": "/tmp/x"}, live.Hashed)
	found := make(map[string]string)
	for _, v := range live.Variables {
		found[v.Name] = v.Attributes + ":" + v.Value
	}
	assert.Equal(t, "i:5", found["n"])
	assert.Equal(t, "A:", found["m"])
	assert.Equal(t, "x:y", found["X"])
	assert.Empty(t, liveOf(t, ":").Live().Hashed)
	assert.Empty(t, liveOf(t, ":").Live().Functions)
}

// A value is the one that bash was given, however it quotes that.
func TestValuesAreAsBashHasThem(t *testing.T) {
	for _, value := range []string{"", "a", "a b", `"`, `'`, `\`, "$x `y`", "a\nb", "\t", "\x01\x7f", "é", "\\n", "$'a'", "a\\\"b'c\n\\'", "=x", "\x01" + "1", "!"} {
		for _, v := range liveOf(t, ":", "VALUE="+value).Live().Variables {
			if v.Name == "VALUE" {
				assert.Equal(t, value, v.Value)
			}
		}
	}
	assert.Contains(t, strings.Join(Given{Env: []string{"A=b"}}.With([]string{"A=c", "D"}).All(), " "), "A=b")
}
