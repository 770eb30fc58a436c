package host_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// A file that a person has spoiled is named, with the line, what is wrong there, and what to do.
func TestNamesThatCannotBeReadSayWhatToDo(t *testing.T) {
	dir := testenv.TempDir(t)
	t.Setenv("XDG_CONFIG_HOME", dir)
	file := filepath.Join(dir, "limpet", "hosts.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	for text, says := range map[string]string{
		"":      "line 1: the file is empty; ",
		"\n \n": "line 3: the file is empty; ",
		"{\n  \"hosts\": {\n    \"dev\": {\"target\": \"ssh://x\"}\n":           "line 4: the file ends too early; ",
		"{\n  \"hosts\": {\n    \"dev\": {\"target\": \"ssh://x\"},\n  }\n}":    "line 4: invalid character '}' looking for beginning of object key string; ",
		"{\n  \"hosts\": {\n    \"dev\": {\"target\": 'ssh://x'}\n  }\n}":       "line 3: invalid character '\\'' looking for beginning of value; ",
		"{\n  \"hosts\": {\n    \"dev\":\n      \"ssh://x\"\n  }\n}":            "line 4: there is a JSON string where another value belongs; ",
		"{\n  \"hosts\": {\n    \"dev\": {\n      \"target\": 7\n    }\n  }\n}": "line 4: there is a JSON number where another value belongs; ",
		"{\n  \"hosts\": {\n    \"dev\": {\"target\": \"ssh://x}\n  }\n}":       "line 3: invalid character '\\n' in string literal; ",
		"[]": "line 1: there is a JSON array where another value belongs; ",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := host.ReadNames()
		require.Error(t, err, "%q", text)
		want := file + ", " + says + `write it as {"hosts": {"NAME": {"target": "TARGET"}}}, or remove the file: limpet hosts add makes it anew`
		assert.Equal(t, want, err.Error(), "%q", text)
		_, err = host.Resolve("dev")
		require.Error(t, err)
		assert.Contains(t, err.Error(), want)
	}

	require.NoError(t, os.Remove(file))
	n, err := host.ReadNames()
	require.NoError(t, err)
	require.NoError(t, n.Add("dev", "ssh://x"))
	require.NoError(t, n.Write())
	n, err = host.ReadNames()
	require.NoError(t, err)
	assert.Equal(t, map[string]host.Named{"dev": {Target: "ssh://x"}}, n.Hosts)
}
