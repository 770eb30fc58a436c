package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhatIsWrongElsewhereIsFound(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":           "module example.com/m\n\ngo 1.26.0\n",
		"m.go":             "package m\n\nfunc size() int { return here }\n",
		"m_linux.go":       "package m\n\nconst here = 1\n",
		"m_darwin.go":      "package m\n\nimport \"fmt\"\n\nconst here = 2\n\nfunc say() { fmt.Printf(\"%d\\n\", \"text\") }\n",
		"m_darwin_test.go": "package m\n\nimport \"testing\"\n\nfunc TestSize(t *testing.T) { _ = size(1) }\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	found := func(system string) string {
		t.Helper()
		said, err := vet(dir, system, nil)
		require.NoError(t, err)
		return strings.Join(said, "\n")
	}
	assert.Empty(t, found("linux/arm64"))
	assert.Contains(t, found("darwin/arm64"), "too many arguments in call to size", "a type, of a test")

	require.NoError(t, os.Remove(filepath.Join(dir, "m_darwin_test.go")))
	assert.Contains(t, found("darwin/arm64"), "Printf format %d has arg \"text\" of wrong type string")
	assert.Contains(t, found("windows/amd64"), "undefined: here")

	_, err := vet(dir, "darwin", nil)
	assert.ErrorContains(t, err, "GOOS/GOARCH")
}
