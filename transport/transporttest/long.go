package transporttest

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/oneshot"
)

// awkwardMegabyte is text of more than 1 MB with everything in it that a
// protocol could stumble over.
func awkwardMegabyte() string {
	var b strings.Builder
	for i := 0; b.Len() < 1<<20; i++ {
		fmt.Fprintf(&b, "line %d 'single' \"double\" `back` $(dollar) \\ ! # \t äöü € 𝄞 \x01\x7f\xff\xfe EOF EOF2\r\n", i)
	}
	return b.String()
}

// 25. A 1 MB command runs byte for byte, the last heredoc line included, in a
// persistent shell and in a fresh bash.
func longScript(t *testing.T, s suite) {
	text := awkwardMegabyte() + "the last line"
	want := sha256.Sum256([]byte(text + "\n"))
	x := s.start(t)
	fresh := oneshot.New(&oneshot.Options{Dir: s.tempDir(t), Transport: s.transport})
	t.Cleanup(func() { assert.NoError(t, fresh.Close()) })
	for _, end := range []string{"\nEOF_OF_TEXT", "\nEOF_OF_TEXT\n", "\nEOF_OF_TEXT\necho done; (exit 3)\n"} {
		script := "cat >copy <<'EOF_OF_TEXT'\n" + text + end
		res := x.run(script)
		checkCopy(t, x.file("copy"), want)
		assert.Empty(t, res.Stderr.String())
		other, err := fresh.Run(t.Context(), strings.Replace(script, "copy", x.file("copy2"), 1))
		require.NoError(t, err)
		checkCopy(t, x.file("copy2"), want)
		assert.Equal(t, res.ExitCode, other.ExitCode)
		assert.Equal(t, res.Stdout.String(), other.Stdout.String())
		assert.Equal(t, res.Stderr.String(), other.Stderr.String())
	}
	x.want(fmt.Sprint(len(text))+"\n", "LC_ALL=C; v='"+strings.ReplaceAll(text, "'", `'\''`)+"'; echo ${#v}")
	x.want("1048576\n", "v="+strings.Repeat("x", 1<<20)+"; echo ${#v}")
}

func checkCopy(t *testing.T, path string, want [32]byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, want, sha256.Sum256(got), "%s has %d bytes", path, len(got))
	require.NoError(t, os.Remove(path))
}
