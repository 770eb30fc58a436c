package approve_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/approve"
	"github.com/limpet-sh/limpet/internal/testenv"
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
	require.NoError(t, os.MkdirAll(at("a/usr/bin"), 0o700))
	require.NoError(t, os.MkdirAll(at("a/b/c"), 0o700))
	require.NoError(t, os.WriteFile(at("a/usr/bin/env"), nil, 0o700))
	require.NoError(t, os.Symlink(at("a/b/c"), at("up")))
	for path, leads := range map[string]string{
		at("link"): real, at("link2"): real, at("own"): at("own"), at("linked"): at("own"), at("dead"): at("nowhere"), at("data"): at("data"),
		"/proc/self/root" + system: real, dir + "/up/../../usr/bin/env": at("a/usr/bin/env"), dir + "/sub/../own": at("own"),
	} {
		f := approve.File(path)
		assert.Equal(t, leads, f.Path, path)
		assert.NotEmpty(t, f.Why, path)
	}
	for _, path := range []string{at("nosuch"), at("sub"), at("ring"), at("own/x"), "/usr/bin/env/../env", "/usr/bin/nosuch", "/usr/bin", "/", "/usr/lib/os-release"} {
		assert.Equal(t, approval.File{}, approve.File(path), path)
	}
	env, err := filepath.EvalSymlinks("/usr/bin/env")
	require.NoError(t, err)
	f := approve.File("/usr/bin/env")
	assert.Equal(t, approval.File{Path: env, State: f.State}, f)
	before := approve.File(at("own")).State
	require.NoError(t, os.WriteFile(at("own"), []byte("x"), 0o700))
	assert.NotEqual(t, before, approve.File(at("own")).State)
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
	testenv.Slow(t)
	asks, more, own, ofHome := 0, 0, 0, 0
	brewed := strings.Fields("git python3 python node jq rg fd tree gawk make bash less gh docker")
	brew := func(path string) approval.File {
		if name, is := strings.CutPrefix(path, "/opt/homebrew/bin/"); !is {
			return approve.File(path)
		} else if !slices.Contains(brewed, name) {
			return approval.File{}
		}
		return approval.File{Path: path, Why: "which this user can write"}
	}
	for _, script := range ordinary(t) {
		names := &approval.Options{Home: "/home/me", Exported: approve.Exported(nil), Dir: "/home/me/src", Git: func(string, bool) (approval.Git, error) { return approval.Git{}, nil }}
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
		files.File, files.Path = brew, "/opt/homebrew/bin:/usr/bin:/bin"
		if approval.Judge(script, &files).Verdict != approval.Allow {
			ofHome++
		}
	}
	t.Logf("of %d scripts %d ask by names, %d more by the files of the system, %d more by those of this PATH, and %d more if %v can be written", len(ordinary(t)), asks, more, own, ofHome, brewed)
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

// Two files of one size that were made at one moment change places by their directories: neither has another time, and each is another file.
func TestAFileThatTakesAnothersPlaceIsNotThatFile(t *testing.T) {
	dir := t.TempDir()
	first, other := filepath.Join(dir, "one", "t"), filepath.Join(dir, "two", "t")
	for _, path := range []string{first, other} {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755))
	}
	before := approve.File(first)
	require.NotEmpty(t, before.State)
	require.NoError(t, os.Rename(filepath.Dir(first), filepath.Join(dir, "three")))
	require.NoError(t, os.Rename(filepath.Dir(other), filepath.Dir(first)))
	after := approve.File(first)
	assert.Equal(t, before.Path, after.Path)
	assert.NotEqual(t, before.State, after.State)
	inode := func(state string) string { ino, _, _ := strings.Cut(state, "-"); return ino }
	assert.NotEqual(t, inode(before.State), inode(after.State), "also if they were changed at the same time")
}

// A mapping that was written to once may change the bytes of a file later, and its times stay as they are.
func TestAFileThatAMappingChangesIsNotTheSame(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho a\n"), 0o755))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	b, err := unix.Mmap(int(f.Fd()), 0, 17, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	defer func() { assert.NoError(t, unix.Munmap(b)) }()
	b[15] = 'b'
	before := approve.File(path)
	require.NotEmpty(t, before.State)
	assert.Equal(t, before, approve.File(path))
	b[15] = 'c'
	assert.NotEqual(t, before.State, approve.File(path).State)
}

func TestADirectoryIsThereIfItMayBeEntered(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.Mkdir(at("sub"), 0o700))
	require.NoError(t, os.WriteFile(at("file"), nil, 0o700))
	require.NoError(t, os.Symlink("sub", at("link")))
	require.NoError(t, os.Symlink("nowhere", at("dead")))
	for name, there := range map[string]bool{"sub": true, "link": true, "file": false, "dead": false, "nowhere": false, "sub/nowhere": false} {
		assert.Equal(t, there, approve.Directory(at(name)), name)
	}
}
