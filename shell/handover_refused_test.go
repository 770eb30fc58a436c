package shell_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// What limpet runs in bash for itself is nobody's to be handed over.
func TestHandOverTakesNoneOfLimpetsOwnCommands(t *testing.T) {
	sh := start(t, &shell.Options{InitFiles: []string{initFile(t, "x=1")}})
	over := make(chan struct{})
	asked := make(chan error, 1)
	go func() {
		defer close(asked)
		for {
			select {
			case <-over:
				return
			default:
			}
			if err := sh.HandOver(); err == nil {
				asked <- err
				return
			}
		}
	}()
	for range 20 {
		_, err := sh.Environ(testenv.Context(t))
		require.NoError(t, err)
		res, err := sh.Do(testenv.Context(t), command.Request{Script: "cat", Stdin: strings.NewReader("x")})
		require.NoError(t, err)
		assert.Equal(t, "x", res.Stdout.String())
	}
	require.NoError(t, sh.Reset(testenv.Context(t)))
	close(over)
	_, handed := <-asked
	assert.False(t, handed)
}

func initFile(t *testing.T, script string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "init")
	require.NoError(t, os.WriteFile(name, []byte(script), 0o600))
	return name
}

func TestWhatReadsOnIsNotHandedOver(t *testing.T) {
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	sh := start(t, &shell.Options{Dir: dir, StdinInShell: true})
	r, w := io.Pipe()
	done := make(chan answer, 1)
	go func() {
		res, err := sh.Do(context.Background(), command.Request{Script: "read -r a; echo >ready; read -r b; echo $a $b; echo >read; until [[ -e go ]]; do sleep 0.01; done; cat", Stdin: r})
		done <- answer{res, err}
	}()
	_, err := io.WriteString(w, "one\n")
	require.NoError(t, err)
	awaitFile(t, filepath.Join(dir, "ready"))
	err = sh.HandOver()
	require.ErrorIs(t, err, shell.ErrNothingRuns)
	require.ErrorContains(t, err, "reads standard input")
	_, err = io.WriteString(w, "two\nthree\n")
	require.NoError(t, err)
	awaitFile(t, filepath.Join(dir, "read"))

	// What has all that there is to read can be.
	require.NoError(t, w.Close())
	testenv.Await(t, "the end of its input", func() bool { return sh.HandOver() == nil })
	handed := handedOver(t, await(t, done).err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	assert.Equal(t, "one two\nthree\n", all(t, handed))
}

func TestTheOptionsOfTheBeginningStayAfterAHandOver(t *testing.T) {
	sh := start(t, &shell.Options{InitFiles: []string{initFile(t, "set -o pipefail -u")}})
	_, err := sh.Do(testenv.Context(t), command.Request{Script: "sleep 1000", HandOver: true, Timeout: 20 * time.Millisecond})
	handedOver(t, err)
	assert.Equal(t, "1 on on", says(t, sh, `false | true; echo $? $([[ -o pipefail ]] && echo on) $([[ -o nounset ]] && echo on)`))

	sh = start(t, &shell.Options{KeepOptions: true})
	run(t, sh, "set -o pipefail")
	_, err = sh.Do(testenv.Context(t), command.Request{Script: "sleep 1000", HandOver: true, Timeout: 20 * time.Millisecond})
	handedOver(t, err)
	assert.Equal(t, "1", says(t, sh, `false | true; echo $?`))
}
