package wire_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// A command of which nothing ran is still known by its id. Asked for again it begins, and so it must wait while the session is handed to
// another program, and not run here once that has it.
func TestACommandOfWhichNothingRanWaitsLikeANewOne(t *testing.T) {
	t.Parallel()
	s := serve(t, "socket")
	dir := testenv.TempDir(t)
	first := asked("first", "echo >"+dir+"/begun; until [ -e "+dir+"/go ]; do sleep 0.01; done")
	status, said := s.raw(t, "POST", commands, first)
	require.Equal(t, http.StatusOK, status, said)
	testenv.AwaitFile(t, dir+"/begun")
	again := `{"id":"` + someID + `","script":"echo ran >>` + dir + `/ran","turn_timeout_ns":10000000}`
	_, said = s.raw(t, "POST", commands+"?out=0", again)
	require.Contains(t, said, `"is":["busy"]`, "nothing ran")

	paused := make(chan func(moved bool), 1)
	go func() {
		resume, err := s.handler.Pause(testenv.Context(t), 0)
		assert.NoError(t, err)
		paused <- resume
	}()
	require.NoError(t, os.WriteFile(dir+"/go", nil, 0o600))
	resume := <-paused
	for range 3 {
		_, said = s.raw(t, "POST", commands+"?out=0", again)
		assert.Contains(t, said, `"is":["busy"]`)
	}
	status, said = s.raw(t, "POST", commands, first)
	assert.Equal(t, http.StatusOK, status, "what has run is found meanwhile: %s", said)
	resume(true)
	_, said = s.raw(t, "POST", commands+"?out=0", again)
	assert.Contains(t, said, `"is":["moved"]`)
	status, said = s.raw(t, "POST", commands, first)
	assert.Equal(t, http.StatusOK, status, "and behind that: %s", said)
	assert.NoFileExists(t, filepath.Join(dir, "ran"))
}
