package session_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/keys"
	"github.com/limpet-sh/limpet/terminal/remote"
)

func TestOthersCanLookAtWhatIsInAStateDirectoryAndAttach(t *testing.T) {
	dir := filepath.Join(testenv.TempDir(t), "state")
	r := registry(t, &session.Options{StateDir: dir})
	s := open(t, r, "s")
	job, err := s.StartJob(testenv.Context(t), jobs.Spec{Command: "echo hello"})
	require.NoError(t, err)
	term, err := s.StartTerminal(testenv.Context(t), terminal.Spec{Argv: []string{"cat"}})
	require.NoError(t, err)
	ended(t, r, job.ID)

	other, err := jobs.Open(filepath.Join(dir, "jobs"), &jobs.Options{ReadOnly: true})
	require.NoError(t, err)
	log, err := other.Log(job.ID, jobs.LogOptions{})
	require.NoError(t, err)
	assert.Equal(t, "hello\n", log.Text)
	require.NoError(t, other.Close())

	person, err := remote.Dial(testenv.Context(t), filepath.Join(dir, "terminals"), term.Info().Owner)
	require.NoError(t, err)
	require.NoError(t, person.Terminal(term.ID()).Send(keys.Text("typed by a person")))
	testenv.Await(t, "what was typed", func() bool {
		text, err := term.Text(0, 1000)
		return err == nil && text.Text != ""
	})
	require.NoError(t, person.Close())

	second, err := session.New(&session.Options{StateDir: dir})
	require.NoError(t, err)
	_, err = second.Jobs()
	require.ErrorIs(t, err, jobs.ErrOwned)
	require.NoError(t, second.Close())

	require.NoError(t, r.Close())
	assert.DirExists(t, filepath.Join(dir, "jobs"), "it is kept")
	_, err = os.Stat(filepath.Join(dir, "terminals", term.Info().Owner+".sock"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}
