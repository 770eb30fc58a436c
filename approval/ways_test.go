package approval_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	quote "github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/internal/testenv"
)

var breaks = strings.NewReplacer("␤", "\n", "␍", "\r")

// scripts returns the lines of a file that are no comments.
func scripts(t testing.TB, file string) (list []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && !strings.HasPrefix(line, "# ") {
			list = append(list, breaks.Replace(line))
		}
	}
	return list
}

func TestNoWayAroundIsAllowed(t *testing.T) {
	list := scripts(t, "ways.txt")
	assert.Greater(t, len(list), 500)
	for _, script := range list {
		assert.NotEqual(t, approval.Allow, verdict(script), "%q", script)
		assert.NotEqual(t, approval.Allow, approval.Judge(script, typical).Verdict, "where it is known what is exported: %q", script)
	}
}

// A script that is not allowed is not allowed in another dress either.
func TestNoWayAroundIsAllowedInsideOfAnother(t *testing.T) {
	testenv.Slow(t)
	for _, script := range scripts(t, "ways.txt") {
		for _, dress := range []string{"ls\n%s", "{ %s\n}", "(%s\n)", "echo \"$(%s\n)\"", "if true; then\n%s\nfi", "ls | { %s\n}", "true && {\n%s\n}", "cat <(%s\n)", "for f in a; do\n%s\ndone", "! {\n%s\n}"} {
			dressed := strings.ReplaceAll(dress, "%s", script)
			assert.NotEqual(t, approval.Allow, verdict(dressed), "%q", dressed)
		}
		assert.NotEqual(t, approval.Allow, verdict("bash -c "+quote.Quote(script)), "bash -c %q", script)
	}
}

func TestWhatNobodyWantsIsDenied(t *testing.T) {
	for _, script := range scripts(t, "denied.txt") {
		assert.Equal(t, approval.Deny, verdict(script), "%q", script)
	}
}
