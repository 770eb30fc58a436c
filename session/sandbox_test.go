package session_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/terminal"
)

// sandboxed returns a registry under a policy, and its workspace. Beside that is a file
// that nobody inside may write.
func sandboxed(t *testing.T) (r *session.Registry, workspace, outside string) {
	t.Helper()
	testenv.Slow(t)
	if err := sandbox.Try(testenv.Context(t), sandbox.WorkspaceWrite); err != nil {
		t.Skipf("no sandbox is to be had here: %q", err)
	}
	top := testenv.TempDir(t)
	workspace, outside = filepath.Join(top, "workspace"), filepath.Join(top, "outside")
	require.NoError(t, os.Mkdir(workspace, 0o755))
	write(t, outside, "untouched\n")
	policy := sandbox.WorkspaceWrite(workspace)
	return registry(t, &session.Options{Policy: &policy, Shell: &shell.Options{RuntimeDir: testenv.TempDir(t)}}), workspace, outside
}

func TestEverythingThatASessionStartsIsUnderItsPolicy(t *testing.T) {
	r, workspace, outside := sandboxed(t)
	s := open(t, r, "s")
	const try = "echo inside >written-by-$BASHPID; echo broken 2>/dev/null >/usr/limpet-was-here || echo refused"
	assert.Contains(t, says(t, s, "echo broken >"+outside+"; "+try), "refused")
	run(t, s, "mkdir sub; cd sub; export E='a  b'")
	job, err := s.StartJob(testenv.Context(t), jobs.Spec{Command: "echo \"$PWD|$E\"; " + try})
	require.NoError(t, err)
	assert.Contains(t, ended(t, r, job.ID), workspace+"/sub|a  b\n")
	term, err := s.StartTerminal(testenv.Context(t), terminal.Spec{Line: "echo \"$PWD|$E|$TERM\"; " + try})
	require.NoError(t, err)
	<-term.Done()
	text, err := term.Text(0, 10000)
	require.NoError(t, err)
	assert.Contains(t, text.Text, workspace+"/sub|a  b|xterm-256color\n")
	assert.Contains(t, text.Text, "refused")
	log, err := theJobs(t, r).Log(job.ID, jobs.LogOptions{})
	require.NoError(t, err)
	assert.Contains(t, log.Text, "refused")

	b, err := os.ReadFile(outside)
	require.NoError(t, err)
	assert.Equal(t, "untouched\n", string(b))
	assert.NoFileExists(t, "/usr/limpet-was-here")
	written, err := filepath.Glob(filepath.Join(workspace, "sub", "written-by-*"))
	require.NoError(t, err)
	assert.NotEmpty(t, written, "they could write where they may")
	assert.Equal(t, "workspace-write", info(t, s).Policy)
}

func TestAForkIsUnderThePolicyOfItsParent(t *testing.T) {
	r, _, _ := sandboxed(t)
	s := open(t, r, "s")
	run(t, s, "x=1")
	fork, err := s.Fork(testenv.Context(t), "fork")
	require.NoError(t, err)
	assert.Equal(t, "1 refused", says(t, fork, "echo -n \"$x \"; { echo broken >/usr/limpet-was-here; } 2>/dev/null || echo refused"))
	require.NoError(t, s.Checkpoint(testenv.Context(t), "c"))
	_, err = s.Rollback(testenv.Context(t), "c")
	require.NoError(t, err)
	assert.Contains(t, says(t, s, "{ echo broken >/usr/limpet-was-here; } 2>/dev/null || echo refused"), "refused")
}

func TestAPolicyThatCannotBeRightIsRefusedAtOnce(t *testing.T) {
	policy := sandbox.WorkspaceWrite("/")
	_, err := session.New(&session.Options{Policy: &policy})
	require.ErrorIs(t, err, sandbox.ErrBadWorkspace)
	r := registry(t, nil)
	_, err = r.Open(testenv.Context(t), "s", &session.Spec{Policy: &policy})
	require.ErrorIs(t, err, sandbox.ErrBadWorkspace)
	assert.Empty(t, r.List())
}

// By the records of jobs and terminals who can write them says what is signalled.
func TestAPolicyThatShowsTheStateDirectoryIsRefused(t *testing.T) {
	top := testenv.TempDir(t)
	workspace, beside := filepath.Join(top, "workspace"), filepath.Join(top, "beside")
	for _, dir := range []string{workspace, beside} {
		require.NoError(t, os.Mkdir(dir, 0o755))
	}
	policy := sandbox.WorkspaceWrite(workspace)
	_, err := session.New(&session.Options{Policy: &policy, StateDir: filepath.Join(workspace, "state")})
	require.ErrorIs(t, err, sandbox.ErrProtect)

	r := registry(t, &session.Options{Policy: &policy, StateDir: filepath.Join(beside, "state"), Shell: &shell.Options{RuntimeDir: testenv.TempDir(t)}})
	wider := policy.With(nil, []string{beside})
	_, err = r.Open(testenv.Context(t), "s", &session.Spec{Policy: &wider})
	require.ErrorIs(t, err, sandbox.ErrProtect, "also a session's own")
	_, err = r.Open(testenv.Context(t), "s", nil)
	require.NoError(t, err)
}
