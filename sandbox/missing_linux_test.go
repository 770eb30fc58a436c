package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/oneshot"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
)

// told is a Transport for the policy, and what it tells of violations.
func told(t *testing.T, policy sandbox.Policy) (*sandbox.Transport, func() []sandbox.Violation) {
	t.Helper()
	where, err := sandbox.New(policy)
	require.NoError(t, err)
	var mu sync.Mutex
	var list []sandbox.Violation
	where.Violations = func(v sandbox.Violation) {
		mu.Lock()
		defer mu.Unlock()
		list = append(list, v)
	}
	return where, func() []sandbox.Violation {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(list)
	}
}

func startWith(t *testing.T, workspace string, where *sandbox.Transport) *shell.PersistentShell {
	t.Helper()
	sh, err := shell.Start(testenv.Context(t), &shell.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: where})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sh.Close()) })
	return sh
}

// moved asserts that the path is gone and lies beside itself.
func moved(t *testing.T, path string, v sandbox.Violation) {
	t.Helper()
	assert.Equal(t, path, v.Path)
	require.NoError(t, v.Err)
	assert.NoFileExists(t, path)
	assert.NoDirExists(t, path)
	require.True(t, strings.HasPrefix(v.Moved, path+".limpet-quarantine-"), v.Moved)
	_, err := os.Lstat(v.Moved)
	require.NoError(t, err)
}

// What is protected and was not there cannot be mounted on. When it is there,
// the next command fails, and the one after it finds it read-only.
func TestWhatIsProtectedButMissingIsLookedForBeforeTheNextCommand(t *testing.T) {
	workspace, policy := usual(t)
	where, violations := told(t, *policy)
	sh := startWith(t, workspace, where)
	says(t, sh, "x=1; mkdir -p .git/hooks; echo x >.git/hooks/pre-commit")
	res, err := sh.Run(testenv.Context(t), "touch ran")
	require.ErrorIs(t, err, sandbox.ErrViolation)
	var e *sandbox.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, []sandbox.Violation{{Path: filepath.Join(workspace, ".git")}}, e.Violations)
	assert.Equal(t, e.Violations, violations())
	assert.ErrorContains(t, err, "while the sandbox ran: "+workspace+"/.git was made; programs of the host would run what it says: look at it first")
	require.NotNil(t, res.Restart)
	assert.NoFileExists(t, filepath.Join(workspace, "ran"))
	assert.Equal(t, "1", says(t, sh, "echo $x; (echo y >.git/hooks/pre-commit) 2>/dev/null && echo bites"))
	assert.Len(t, violations(), 1, "it is told once")
}

func TestWhatTheLastCommandMadeIsFoundAtTheEnd(t *testing.T) {
	workspace, policy := usual(t)
	for _, script := range []string{"mkdir .git", "mkdir .git; exit 3", "mkdir .git; kill -9 $$", "mkdir .git; " + ending, "mkdir .git; " + kills, "ln -s /etc .git", "mkfifo .git"} {
		policy.FS.Quarantine = true
		where, violations := told(t, *policy)
		sh := startWith(t, workspace, where)
		_, _ = sh.Run(testenv.Context(t), script) // How it ended matters not.
		require.NoError(t, sh.Close())
		require.Len(t, violations(), 1, script)
		moved(t, filepath.Join(workspace, ".git"), violations()[0])
		require.NoError(t, os.RemoveAll(violations()[0].Moved))
	}
	where, violations := told(t, *policy)
	r := oneshot.New(&oneshot.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: where})
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	_, err := r.Run(testenv.Context(t), "mkdir .git .vscode; echo x >.envrc")
	require.NoError(t, err)
	var paths []string
	for _, v := range violations() {
		moved(t, v.Path, v)
		paths = append(paths, filepath.Base(v.Path))
	}
	assert.ElementsMatch(t, []string{".git", ".vscode", ".envrc"}, paths)
}

// A process that goes on making it has ended when the last look comes.
func TestNothingIsMadeAfterTheLastLook(t *testing.T) {
	workspace, policy := usual(t)
	policy.FS.Quarantine = true
	script := "(trap '' TERM HUP; : >going; while :; do mkdir .hg 2>/dev/null; done) & until [[ -e going ]]; do :; done"
	control := start(t, workspace, nil)
	says(t, control, script+"; until [[ -e .hg ]]; do :; done")
	require.NoError(t, os.Remove(filepath.Join(workspace, ".hg")))
	testenv.Await(t, "the control to make it again", func() bool {
		_, err := os.Lstat(filepath.Join(workspace, ".hg"))
		return err == nil
	})
	require.NoError(t, control.Close())
	for _, name := range []string{".hg", "going"} {
		require.NoError(t, os.Remove(filepath.Join(workspace, name)))
	}

	where, violations := told(t, *policy)
	sh := startWith(t, workspace, where)
	says(t, sh, script)
	_, err := sh.Run(testenv.Context(t), "until [[ -e .hg ]]; do :; done")
	if err != nil {
		require.ErrorIs(t, err, sandbox.ErrViolation) // It was there before this command.
	}
	require.NoError(t, sh.Close())
	require.NotEmpty(t, violations())
	assert.NoDirExists(t, filepath.Join(workspace, ".hg"))
}

// A symlink on the way to what is protected leads where nothing is. It is what
// is moved away, not what it leads to.
func TestASymlinkOnTheWayIsFound(t *testing.T) {
	workspace, policy := usual(t)
	outside := t.TempDir()
	put(t, outside, "kept\n", "conf")
	policy.FS.Protect, policy.FS.Quarantine = []string{"sub/conf", "file/conf"}, true
	where, violations := told(t, *policy)
	sh := startWith(t, workspace, where)
	says(t, sh, "ln -s "+outside+" sub; : >file")
	require.NoError(t, sh.Close())
	require.Len(t, violations(), 1)
	moved(t, filepath.Join(workspace, "sub"), violations()[0])
	assert.FileExists(t, filepath.Join(outside, "conf"))
}

// A directory with these names in it is a repository, .git or not.
func TestAWorkspaceThatBecomesARepositoryIsFound(t *testing.T) {
	workspace, policy := usual(t)
	policy.FS.Quarantine = true
	where, violations := told(t, *policy)
	sh := startWith(t, workspace, where)
	const become = "echo ref: refs/heads/main >HEAD; mkdir objects refs; printf '[core]\\nbare = true\\n' >config"
	assert.Equal(t, "true", once(t, t.TempDir(), nil, become+"; git -c safe.directory='*' rev-parse --is-bare-repository"), "git takes it for one")
	says(t, sh, become)
	require.NoError(t, sh.Close())
	require.Len(t, violations(), 1)
	moved(t, filepath.Join(workspace, "HEAD"), violations()[0])
}

func TestMissingRefuseNeedsWhatIsProtected(t *testing.T) {
	workspace, policy := usual(t)
	policy.FS.Protect, policy.FS.Missing = []string{"conf"}, sandbox.MissingRefuse
	_, err := sandbox.New(*policy)
	require.ErrorIs(t, err, sandbox.ErrProtect)
	assert.ErrorContains(t, err, "cannot protect "+workspace+"/.git: it is missing; create it, or set FS.Git=GitWritable or FS.Missing=MissingTripwire")
	commit := *policy
	commit.FS.Git = sandbox.GitCommit
	_, err = sandbox.New(commit)
	require.ErrorIs(t, err, sandbox.ErrProtect)
	put(t, workspace, "", ".git/")
	_, err = sandbox.New(*policy)
	require.ErrorIs(t, err, sandbox.ErrProtect)
	assert.ErrorContains(t, err, "cannot protect "+workspace+"/conf: it is missing; create it, take it out of FS.Protect, or set FS.Missing=MissingTripwire")
	put(t, workspace, "", "conf")
	assert.Equal(t, "in", once(t, workspace, policy, "echo in; echo x >conf && echo bites")[:2])

	policy.FS.Protect, policy.FS.Access = nil, sandbox.ReadOnlyAccess
	_, err = sandbox.New(*policy)
	require.NoError(t, err, "what cannot be written cannot be made")
}
