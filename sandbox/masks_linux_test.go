package sandbox_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/oneshot"
	"github.com/limpet-sh/limpet/sandbox"
)

// once runs a script by itself, in a sandbox of its own; a nil policy is none.
func once(t *testing.T, workspace string, policy *sandbox.Policy, script string) string {
	t.Helper()
	opts := &oneshot.Options{Dir: workspace, RuntimeDir: t.TempDir()}
	if policy != nil {
		where, err := sandbox.New(*policy)
		require.NoError(t, err)
		opts.Transport = where
	}
	r := oneshot.New(opts)
	defer func() { require.NoError(t, r.Close()) }()
	res, err := r.Run(testenv.Context(t), script)
	require.NoError(t, err, script)
	return strings.TrimSpace(res.Stdout.String() + res.Stderr.String())
}

// put writes files; a name that ends in "/" is a directory.
func put(t *testing.T, top, content string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(top, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.MkdirAll(path, 0o755))
		} else {
			require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
		}
	}
}

func TestSecretsAreMaskedByTheirNames(t *testing.T) {
	workspace, policy := usual(t)
	hidden := []string{".env", ".env.local", "a/key.pem", "a/b/id_rsa_work", ".env.d/inner", "a/.env/prod", "config/prod"}
	seen := []string{".env.example", "a/.env.sample", ".env.template", "id_rsa.pub", "a/b/c/.env", "env", "pem"}
	put(t, workspace, "secret\n", append(hidden, seen...)...)
	// The link has the name, and what it leads to the secret.
	require.NoError(t, os.Symlink("../config/prod", filepath.Join(workspace, "a", ".env.prod")))
	for _, access := range []sandbox.Access{sandbox.ReadWrite, sandbox.ReadOnlyAccess} {
		policy.FS.Access, policy.FS.ScanMasks = access, nil
		sh := start(t, workspace, policy)
		policy.FS.ScanMasks = []string{}
		control := start(t, workspace, policy)
		for _, name := range hidden {
			assert.Equal(t, "secret", says(t, control, "cat "+name), "the control")
			assert.NotContains(t, says(t, sh, "cat "+name), "secret", name)
		}
		for _, name := range seen {
			assert.Equal(t, "secret", says(t, sh, "cat "+name), name)
		}
	}
}

// A mask holds for the file, whatever name it has in the sandbox.
func TestAMaskHoldsByEveryName(t *testing.T) {
	workspace, policy := usual(t)
	data := t.TempDir()
	put(t, data, "secret\n", "sub/key", "sub/dir/key")
	put(t, workspace, "secret\n", "sub/.env")
	policy.FS.ExtraRO = []sandbox.Bind{{Src: data, Dst: "/x"}, {Src: filepath.Join(workspace, "sub"), Dst: "/y"}}
	policy.FS.ExtraRW = []sandbox.Bind{{Src: filepath.Join(data, "sub"), Dst: "/z"}}
	const probe = "cat /x/sub/key /x/sub/dir/key /y/.env /z/key /z/dir/key 2>/dev/null | grep -c secret"
	open := *policy
	open.FS.ScanMasks = []string{}
	assert.Equal(t, "5", once(t, workspace, &open, probe), "the control")
	policy.FS.Mask = []string{filepath.Join(data, "sub/key"), filepath.Join(data, "sub/dir")}
	assert.Equal(t, "0", once(t, workspace, policy, probe))
}

// What is masked in a directory must be there for the next sandbox too: the
// directory cannot be put out of the way, be it by a mask or by a search.
func TestWhatIsMaskedCannotBePutAsideForTheNextSandbox(t *testing.T) {
	workspace, policy := usual(t)
	data := t.TempDir()
	policy.FS.ExtraRW = []sandbox.Bind{{Src: data}}
	policy.FS.Mask = []string{"a/b/token", filepath.Join(data, "a/b/token")}
	scanned := *policy
	scanned.FS.Mask = nil
	for _, row := range []struct {
		name, top, file string
		policy          sandbox.Policy
		moves           []string
	}{
		{"by name", workspace, "a/b/token", *policy, []string{"mv a/b a/old", "mv a old"}},
		{"by name, in what is writable besides", data, "a/b/token", *policy, []string{"mv a/b a/old", "mv a old"}},
		{"by a glob", workspace, "a/b/.env", scanned, []string{"mkdir -p deep/er && mv a deep/er", "mkdir -p deep/er && mv a/b deep/er"}},
	} {
		for _, move := range row.moves {
			t.Run(row.name+", "+move, func(t *testing.T) {
				find := "cd " + row.top + "; find . -name " + filepath.Base(row.file) + " -exec cat {} + 2>/dev/null | grep secret"
				probe := func(first *sandbox.Policy) string {
					for _, dir := range []string{"a", "old", "deep"} {
						require.NoError(t, os.RemoveAll(filepath.Join(row.top, dir)))
					}
					put(t, row.top, "secret\n", row.file)
					once(t, workspace, first, "cd "+row.top+"; "+move)
					return once(t, workspace, &row.policy, find)
				}
				assert.Equal(t, "secret", probe(nil), "the control")
				assert.Empty(t, probe(&row.policy))
			})
		}
	}
}

// A source is not looked for where a sandbox says.
func TestASymlinkOfTheSandboxsIsNoSource(t *testing.T) {
	workspace, policy := usual(t)
	outside := t.TempDir()
	put(t, outside, "secret\n", "file")
	put(t, workspace, "", "a/sub/")
	policy.FS.ExtraRO = []sandbox.Bind{{Src: filepath.Join(workspace, "a/sub"), Dst: "/x"}}
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	r := oneshot.New(&oneshot.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: where})
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	res, err := r.Run(testenv.Context(t), fmt.Sprintf("rm -r a/sub && ln -s %s a/sub && readlink a/sub", outside))
	require.NoError(t, err)
	require.Equal(t, outside+"\n", res.Stdout.String(), "the symlink is there")
	res, err = r.Run(testenv.Context(t), "cat /x/file")
	require.ErrorIs(t, err, sandbox.ErrMount)
	assert.ErrorContains(t, err, "a/sub is a symlink that a sandbox could have made")
	assert.Empty(t, res.Stdout.String())
}

// Where paths lead was decided when the transport was made; what is there is
// looked at for each sandbox.
func TestTheNextSandboxIsWhereTheFirstOneWas(t *testing.T) {
	top, policy := usual(t)
	outside := t.TempDir()
	put(t, top, "", "real/tree/", "lib/")
	put(t, outside, "secret\n", "tree/file")
	require.NoError(t, os.Symlink("real", filepath.Join(top, "link")))
	policy.FS.Workspace = filepath.Join(top, "link/tree")
	policy.FS.ExtraRO = []sandbox.Bind{{Src: filepath.Join(top, "lib/later"), Dst: "/later", Optional: true}}
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	workspace := filepath.Join(top, "real/tree")
	r := oneshot.New(&oneshot.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: where})
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	run := func(script string) (string, error) {
		res, err := r.Run(testenv.Context(t), script)
		return strings.TrimSpace(res.Stdout.String()), err
	}
	got, err := run("pwd; ls /later")
	require.NoError(t, err)
	assert.Equal(t, workspace, got)
	put(t, top, "", "lib/later/here")
	got, err = run("ls /later")
	require.NoError(t, err)
	assert.Equal(t, "here", got, "what is optional may come later")

	// The symlink of the policy may lead elsewhere by now, which is no matter.
	require.NoError(t, os.Remove(filepath.Join(top, "link")))
	require.NoError(t, os.Symlink(outside, filepath.Join(top, "link")))
	got, err = run("pwd; cat file")
	require.NoError(t, err)
	assert.Equal(t, workspace, got)
	require.NoError(t, os.Rename(filepath.Join(top, "real"), filepath.Join(top, "old")))
	require.NoError(t, os.Symlink(outside, filepath.Join(top, "real")))
	got, err = run("cat file")
	require.ErrorIs(t, err, sandbox.ErrBadWorkspace)
	assert.Empty(t, got)
}
