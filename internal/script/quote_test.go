package script_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/script"
)

// FuzzQuote has bash itself say what a quoted word is.
func FuzzQuote(f *testing.F) {
	bash, err := exec.LookPath("bash")
	require.NoError(f, err)
	for _, s := range []string{"", "a", "a b", "'", `"`, `\`, "\n", "\t\r\x01\x7f", "\xff\xc3(", "$x`y`$(z)", "!!", "~", "-n", "a\\\nb", "ä€😀", "\x1b[0m", "#", "=", "*?[]{}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.IndexByte(s, 0) >= 0 || len(s) > 4<<10 {
			return // Bash cannot carry it.
		}
		cmd := exec.Command(bash, "--norc")
		cmd.Env = []string{"LC_ALL=C.UTF-8"}
		cmd.Stdin = strings.NewReader("printf %s " + script.Quote(s) + "\n")
		out, err := cmd.Output()
		require.NoError(t, err)
		assert.Equal(t, s, string(out))
	})
}

func BenchmarkQuote(b *testing.B) {
	text := strings.Repeat("echo 'a b' \"$c\"\n", 64)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		script.Quote(text)
	}
}
