package approve_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/approve"
)

func TestAFileIsTrustedIfNobodyButRootCanReplaceIt(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	system, err := exec.LookPath("true")
	require.NoError(t, err)
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.Symlink(system, at("link")))
	require.NoError(t, os.Symlink("link", at("link2")))
	require.NoError(t, os.Symlink("nowhere", at("dead")))
	require.NoError(t, os.Symlink("ring", at("ring")))
	require.NoError(t, os.Symlink("own", at("linked")))
	require.NoError(t, os.Mkdir(at("sub"), 0o700))
	require.NoError(t, os.WriteFile(at("own"), nil, 0o700))
	require.NoError(t, os.WriteFile(at("data"), nil, 0o600))
	real, err := filepath.EvalSymlinks(system)
	require.NoError(t, err)
	for path, leads := range map[string]string{
		at("link"): real, at("link2"): real, at("own"): at("own"), at("linked"): at("own"), at("sub/../own"): at("own"), at("dead"): at("nowhere"), at("data"): at("data"),
		"/proc/self/root" + system: real,
	} {
		f := approve.File(path)
		assert.Equal(t, leads, f.Path, path)
		assert.NotEmpty(t, f.Why, path)
	}
	for _, path := range []string{at("nosuch"), at("sub"), at("ring"), at("own/x"), "/usr/bin/nosuch", "/usr/bin", "/", "/usr/lib/os-release"} {
		assert.Equal(t, approval.File{}, approve.File(path), path)
	}
	env, err := filepath.EvalSymlinks("/usr/bin/env")
	require.NoError(t, err)
	assert.Equal(t, approval.File{Path: env}, approve.File("/usr/bin/env"))
	assert.Contains(t, approve.File(at("own")).Why, "can write")
}

func TestThePathOfAnEnvironment(t *testing.T) {
	assert.Equal(t, "/b", approve.PathOf([]string{"PATH=/a", "HOME=/", "PATH=/b"}))
	assert.Equal(t, ".", approve.PathOf([]string{"PATH="}))
	assert.Contains(t, approve.PathOf([]string{"HOME=/"}), "/usr/bin:")
	t.Setenv("PATH", "/c")
	assert.Equal(t, "/c", approve.PathOf(nil))
}

// It would run before anybody was asked.
func TestAGitThatCanBeReplacedIsNotAsked(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "git"), []byte("#!/bin/sh\n: >"+dir+"/ran\n"), 0o700))
	for _, path := range []string{dir + ":/usr/bin", ".:" + dir, dir} {
		_, err := approve.Git([]string{"PATH=" + path, "HOME=" + dir})(dir, true)
		assert.Error(t, err, path)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	_, err := approve.Git(nil)(dir, true)
	assert.ErrorContains(t, err, "git is "+dir+"/git, ")
	assert.NoFileExists(t, filepath.Join(dir, "ran"))
}

// ordinary are the scripts by which approval is measured.
func ordinary(t testing.TB) (list []string) {
	t.Helper()
	for _, name := range []string{"ordinary.tsv", "later.tsv", "unseen.tsv"} {
		text, err := os.ReadFile("../../../../approval/testdata/" + name)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			_, script, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			list = append(list, strings.NewReplacer("␤", "\n", "␍", "\r").Replace(script))
		}
	}
	return list
}

func TestTheFilesOfThisSystemMakeNoOrdinaryScriptAsk(t *testing.T) {
	asks, more, own := 0, 0, 0
	for _, script := range ordinary(t) {
		names := &approval.Options{Home: "/home/me", Exported: approve.Exported(nil)}
		if approval.Judge(script, names).Verdict != approval.Allow {
			asks++
			continue
		}
		files := *names
		files.File, files.Path = approve.File, "/usr/bin:/bin"
		if j := approval.Judge(script, &files); j.Verdict != approval.Allow {
			more++
			reason, _ := approval.Question{Judgement: j}.Why()
			t.Logf("%s: %q", reason, script)
		}
		files.Path = approve.PathOf(nil)
		if approval.Judge(script, &files).Verdict != approval.Allow {
			own++
		}
	}
	t.Logf("of %d scripts %d ask by names, %d more by the files of the system, and %d more by those of this PATH", len(ordinary(t)), asks, more, own)
	assert.Zero(t, more)
}

func BenchmarkJudgeByFiles(b *testing.B) {
	const script = "git --version; ls -l | sort | head -n 3; grep -rn x . | wc -l"
	for name, opts := range map[string]*approval.Options{"names": {}, "files": {File: approve.File, Path: approve.PathOf(nil)}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				approval.Judge(script, opts)
			}
		})
	}
}
