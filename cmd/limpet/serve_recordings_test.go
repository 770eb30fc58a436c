package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// What limpet term start --record writes is listed and played by the page, for whoever has the link.
func TestServePlaysRecordings(t *testing.T) {
	p := newMCPPlace(t)
	t.Setenv("XDG_STATE_HOME", p.state)
	casts := filepath.Join(p.dir, "casts")
	require.NoError(t, os.Mkdir(casts, 0o700))
	p.limpet("term", "start", "-s", "build", "--record", filepath.Join(casts, "demo.cast"), "--line", "echo of the recording")
	page := p.page("--recordings", casts)
	testenv.Await(t, "the recording", func() bool {
		_, body := page.does(http.MethodGet, "api/recordings/demo.cast", nil)
		return strings.Contains(body, `"cols":80,"rows":24`) && strings.Contains(body, `of the recording\r\n"]`) && strings.Contains(body, `{"kind":"over","cut":false}`)
	})
	_, body := page.does(http.MethodGet, "api/recordings", nil)
	assert.Contains(t, body, `"name":"demo.cast"`)
	assert.Contains(t, body, `"length_ms":`)
	page.ends()
	p.limpet("session", "close", "build")
}

func TestServeRefusesWhatIsNoDirectoryOfRecordings(t *testing.T) {
	dir := testenv.TempDir(t)
	t.Setenv("XDG_STATE_HOME", dir)
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	out, code := limpetIn(t, dir, "serve", "--recordings", "")
	assert.Equal(t, codeUsage, code, out)
	assert.Contains(t, out, `"" is no directory; is a variable empty?`)
	for _, path := range []string{file, filepath.Join(dir, "nosuch")} {
		out, code := limpetIn(t, dir, "serve", "--recordings", path)
		assert.Equal(t, codeFailed, code, out)
		assert.Contains(t, out, "--recordings: ")
		assert.Contains(t, out, "name a directory with recordings of limpet term record")
	}
}
