package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
)

// rooms is a home with a workspace, and directories beside it.
type rooms struct{ home, work, extra, shared string }

func newRooms(t *testing.T) rooms {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Setenv("HOME", home)
	r := rooms{home, filepath.Join(home, "src", "work"), filepath.Join(home, "extra"), filepath.Join(home, "shared")}
	for _, dir := range []string{filepath.Join(r.work, ".git"), r.extra, filepath.Join(home, "shown")} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	require.NoError(t, os.Mkdir(r.shared, 0o700))
	return r
}

func with(work string, change func(p *sandbox.Policy)) sandbox.Policy {
	p := sandbox.WorkspaceWrite(work)
	change(&p)
	return p
}

// What a policy shows read-only it refuses to write; of all else it does not say so.
func TestAPolicySaysWhatItRefusesToWrite(t *testing.T) {
	r := newRooms(t)
	in := func(dir string, names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
		return paths
	}
	never := []string{
		"", "/", ".", "usr/a", "/usr/", "/usr/../etc", "//usr/a", "/usr/./a", "/usr/\x00", "/tmp", "/tmp/a", "/var/tmp/a", "/dev/shm", "/dev/shm/a", "/var", r.home, "/dev", "/dev/null", "/dev/stdout", "/dev/fd/3",
		"/proc/self/cwd/a", "/proc/self/root/usr/a", "/proc/1/mem", "/sys/x", "/run/x", "/var/run/x", "/run/user/0/limpet-0/x", "/tmp/limpet-0/x/stdout",
	}
	workspace := in(r.work, "", "a", ".git", ".git/hooks/x", ".vscode/tasks.json", "d/e", "..")
	private := in(r.home, "a", "src/other", "extras", ".cache/x")
	system := []string{"/usr", "/usr/a", "/usr/bin/ls", "/etc", "/etc/hosts", "/etc/nosuch/a", "/bin/a", "/lib/a"}
	extra := in(r.extra, "", "a")
	for name, c := range map[string]struct {
		policy      sandbox.Policy
		yes, doubts [][]string
	}{
		"workspace-write":       {sandbox.WorkspaceWrite(r.work), [][]string{system}, [][]string{workspace, private, extra, {"/a", "/srv/a", "/nosuch/a"}}},
		"read-only":             {sandbox.ReadOnly(r.work), [][]string{system}, [][]string{private}},
		"scratch":               {sandbox.Scratch(r.work), [][]string{system}, [][]string{workspace, private}},
		"allow-domains":         {sandbox.AllowDomains(r.work, "example.com"), [][]string{system}, [][]string{workspace, private}},
		"host-network":          {sandbox.HostNetwork(r.work), [][]string{system}, [][]string{workspace, private}},
		"with --rw":             {sandbox.WorkspaceWrite(r.work).With(nil, []string{r.extra}), [][]string{system}, [][]string{workspace, private, extra}},
		"a bind elsewhere":      {with(r.work, func(p *sandbox.Policy) { p.FS.ExtraRW = []sandbox.Bind{{Src: r.extra, Dst: "/usr/local"}} }), [][]string{{"/usr/bin/a", "/usr/share", "/etc/a"}}, [][]string{{"/usr", "/usr/local", "/usr/local/a"}}},
		"a bind that may come":  {with(r.work, func(p *sandbox.Policy) { p.FS.ExtraRW = []sandbox.Bind{{Src: "/usr/nosuch", Optional: true}} }), [][]string{{"/usr/nosuch2"}}, [][]string{{"/usr", "/usr/nosuch", "/usr/nosuch/a"}}},
		"a mask":                {with(r.work, func(p *sandbox.Policy) { p.FS.Mask = []string{"/usr/share"} }), [][]string{{"/usr/bin/a"}}, [][]string{{"/usr", "/usr/share/a"}}},
		"a tmp that is shared":  {with(r.work, func(p *sandbox.Policy) { p.FS.Tmp, p.FS.TmpDir = sandbox.SharedTmp, r.shared }), [][]string{system}, [][]string{workspace}},
		"a home that is shared": {with(r.work, func(p *sandbox.Policy) { p.FS.Home, p.FS.HomeDir = sandbox.SharedHome, r.shared }), [][]string{system}, [][]string{workspace, private}},
		"all is shown":          {with(r.work, func(p *sandbox.Policy) { p.FS.Root = sandbox.All }), [][]string{system, {"/a", "/srv/a", "/var/lib/a"}}, [][]string{workspace, private}},
		"none":                  {sandbox.Unconfined("a test"), nil, [][]string{system, private, workspace}},
		"the zero value":        {sandbox.Policy{}, nil, [][]string{system, private, workspace}},
		"one that cannot start": {sandbox.WorkspaceWrite("/nosuch"), nil, [][]string{system, private, workspace}},
		"a mode that is none":   {with(r.work, func(p *sandbox.Policy) { p.FS.Tmp = 7 }), nil, [][]string{system, private, workspace}},
	} {
		for _, paths := range c.yes {
			for _, path := range paths {
				assert.True(t, c.policy.Refuses(path), "%s: %s", name, path)
			}
		}
		for _, paths := range append(c.doubts, never) {
			for _, path := range paths {
				assert.False(t, c.policy.Refuses(path), "%s: %q", name, path)
			}
		}
	}
}

// What is read-only may lead to what is not.
func TestWhatLeadsElsewhereIsFollowed(t *testing.T) {
	r := newRooms(t)
	shown := filepath.Join(r.home, "shown")
	require.NoError(t, os.Mkdir(filepath.Join(shown, "d"), 0o700))
	for name, to := range map[string]string{"work": r.work, "up": "../src/work", "chain": filepath.Join(shown, "work"), "tmp": "/tmp", "proc": "/proc/self/cwd", "dev": "/dev", "loop": "loop", "dead": "nosuch/a", "out": "/etc", "in": "d"} {
		require.NoError(t, os.Symlink(to, filepath.Join(shown, name)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(shown, "file"), nil, 0o600))
	require.NoError(t, syscall.Mkfifo(filepath.Join(shown, "fifo"), 0o600))
	wanted := map[string]bool{
		"": true, "a": true, "file": true, "work": false, "work/a": false, "up/a": false, "chain/a": false, "tmp/a": false, "tmp": false, "proc/a": false, "proc": false, "dev/null": false, "dev/fd/3": false, "dev": false, "dev/shm/a": false, "loop": false, "loop/a": false, "dead": true, "dead/b": true, "out/a": true, "in/a": true, "fifo": false, "fifo/a": false, "a/b/c": true,
	}
	at := with(r.work, func(p *sandbox.Policy) { p.FS.ExtraRO = []sandbox.Bind{{Src: shown, Dst: "/mnt/x"}} })
	private := sandbox.WorkspaceWrite(r.work).With([]string{shown}, nil)
	for path, want := range wanted {
		assert.Equal(t, want, at.Refuses(filepath.Join("/mnt/x", path)), path)
		assert.False(t, private.Refuses(filepath.Join(shown, path)), "in a private home, where the directories on the way can be renamed: %s", path)
	}
	// The same directory under a name by which it can be written.
	require.NoError(t, os.MkdirAll(filepath.Join(r.work, "sub"), 0o700))
	twice := with(r.work, func(p *sandbox.Policy) {
		p.FS.ExtraRO = []sandbox.Bind{{Src: filepath.Join(r.work, "sub"), Dst: "/mnt/x"}, {Src: r.extra, Dst: "/mnt/r"}, {Src: shown, Dst: "/mnt/s"}}
		p.FS.ExtraRW = []sandbox.Bind{{Src: r.extra, Dst: "/mnt/w"}}
	})
	for _, path := range []string{"/mnt/x", "/mnt/x/l/a", "/mnt/r", "/mnt/r/a", "/mnt/w/a"} {
		assert.False(t, twice.Refuses(path), path)
	}
	assert.True(t, twice.Refuses("/mnt/s/a"))
	inside := with(r.work, func(p *sandbox.Policy) { p.FS.Protect = []string{"d"} })
	require.NoError(t, os.Mkdir(filepath.Join(r.work, "d"), 0o700))
	assert.False(t, inside.Refuses(filepath.Join(r.work, "d", "a")), "in the workspace")
}

// What the sandbox has of its own is not this machine's, though it may have the same name.
func TestAPolicySaysWhetherItShowsTheFilesOfThisMachine(t *testing.T) {
	r := newRooms(t)
	bin := filepath.Join(r.work, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	for name, to := range map[string]string{"tmp": "/tmp", "home": r.home, "usr": "/usr/bin", "bin2": "bin"} {
		require.NoError(t, os.Symlink(to, filepath.Join(r.work, name)))
	}
	usual, elsewhere := sandbox.WorkspaceWrite(r.work), with(r.work, func(p *sandbox.Policy) {
		p.FS.ExtraRO = []sandbox.Bind{{Src: r.extra, Dst: "/mnt/x"}, {Src: bin, Dst: "/usr/local/bin"}}
	})
	for path, want := range map[string]bool{
		"/usr/bin/env": true, "/usr/bin/nosuch": true, "/bin/env": true, "/etc/hosts": true, "/nosuch/bin/a": true, filepath.Join(bin, "a"): true, filepath.Join(r.work, "bin2", "a"): true, filepath.Join(r.work, "usr", "env"): true,
		"/tmp/a": false, "/tmp/a/b": false, "/var/tmp/a": false, "/dev/shm/a": false, "/proc/self/cwd/a": false, "/run/a": false, filepath.Join(r.home, "a"): false, filepath.Join(r.home, "bin", "a"): false, filepath.Join(r.work, "tmp", "a"): false, filepath.Join(r.work, "home", "a"): false,
		"": false, "a": false, "/usr/bin/../bin/env": false,
	} {
		assert.Equal(t, want, usual.Shows(path), path)
		assert.False(t, sandbox.Unconfined("a test").Shows(path), path)
		assert.False(t, sandbox.Policy{}.Shows(path), path)
	}
	assert.False(t, elsewhere.Shows("/mnt/x/a"))
	if to, err := os.Readlink("/bin"); err == nil && to == "usr/bin" {
		linked := with(r.work, func(p *sandbox.Policy) { p.FS.ExtraRO = []sandbox.Bind{{Src: "/usr/bin/id", Dst: "/bin/ls"}} })
		assert.False(t, linked.Shows("/usr/bin/ls"), "it is mounted there by a symlink")
		assert.True(t, linked.Shows("/usr/bin/cat"))
	}
	assert.False(t, elsewhere.Shows("/usr/local/bin/a"))
	assert.True(t, elsewhere.Shows("/usr/bin/env"))
	assert.False(t, sandbox.Scratch(r.work).Shows(filepath.Join(bin, "a")), "the sandbox may have changed it")
	masked := with(r.work, func(p *sandbox.Policy) { p.FS.Mask = []string{"/usr/share"} })
	assert.False(t, masked.Shows("/usr/share/a"))
}

func TestAPolicySaysWhatItsSandboxBeginsWith(t *testing.T) {
	workspace, policy := usual(t)
	policy.Env.Set = map[string]string{"SET": "b", "GIVEN": "c"}
	policy.Env.Pass = []string{"PASSED"}
	given := []string{"PATH=/usr/bin:/bin", "HOME=" + os.Getenv("HOME"), "LC_TIME=C", "PASSED=1", "GIVEN=2", "BASH_ENV=/x", "LD_LIBRARY_PATH=/x"}
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	sh, err := shell.Start(testenv.Context(t), &shell.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: where, Env: given})
	require.NoError(t, err)
	defer func() { require.NoError(t, sh.Close()) }()
	began := policy.Environ(given)
	for _, entry := range began {
		name, value, _ := strings.Cut(entry, "=")
		assert.Equal(t, value, says(t, sh, "echo $"+name), name)
	}
	for _, entry := range []string{"PATH=/usr/bin:/bin", "LC_TIME=C", "PASSED=1", "SET=b", "GIVEN=c", "TMPDIR=/tmp"} {
		assert.Contains(t, began, entry)
	}
	for _, name := range []string{"BASH_ENV", "LD_LIBRARY_PATH"} {
		assert.NotContains(t, strings.Join(began, " "), name)
		assert.Empty(t, says(t, sh, "echo ${"+name+"-}"), name)
	}
	assert.Equal(t, given, sandbox.Unconfined("a test").Environ(given))
	assert.Empty(t, sandbox.Policy{}.Environ(given))
}

// What a policy says is what its sandbox does.
func TestWhatIsRefusedCannotBeWritten(t *testing.T) {
	need(t)
	r := newRooms(t)
	for name, p := range map[string]sandbox.Policy{
		"workspace-write": sandbox.WorkspaceWrite(r.work), "all": with(r.work, func(p *sandbox.Policy) { p.FS.Root = sandbox.All }), "a home that is read-only": with(r.work, func(p *sandbox.Policy) { p.FS.Home = sandbox.ReadOnlyHome }),
	} {
		sh := start(t, r.work, &p)
		refused := 0
		for _, dir := range []string{"/", "/usr", "/usr/share", "/usr/local", "/usr/lib", "/etc", "/etc/alternatives", "/bin", "/lib", "/opt", "/var", "/var/lib", "/var/log", "/srv", "/mnt", "/root", "/home", "/tmp", "/var/tmp", "/dev", "/dev/shm", "/proc/self/cwd", "/run", r.home, r.extra, r.work, filepath.Join(r.work, ".git")} {
			path := filepath.Join(dir, "limpet.test")
			if !p.Refuses(path) {
				continue
			}
			refused++
			assert.Equal(t, "refused", says(t, sh, "{ mkdir -p "+dir+" && touch "+path+" || : >"+path+"; } 2>/dev/null || echo refused"), "%s: %s", name, path)
			assert.NoFileExists(t, path)
		}
		assert.Greater(t, refused, 5, name)
	}
}

func TestAPolicySaysWhatItPrevents(t *testing.T) {
	user := &sandbox.Credential{UID: 65534, GID: 65534}
	for name, c := range map[string]struct {
		policy                         sandbox.Policy
		network, processes, privileges bool
	}{
		"workspace-write":  {sandbox.WorkspaceWrite("/src"), true, true, os.Geteuid() != 0},
		"read-only":        {sandbox.ReadOnly("/src"), true, true, os.Geteuid() != 0},
		"scratch":          {sandbox.Scratch("/src"), true, true, os.Geteuid() != 0},
		"allow-domains":    {sandbox.AllowDomains("/src", "example.com"), false, true, os.Geteuid() != 0},
		"host-network":     {sandbox.HostNetwork("/src"), false, true, os.Geteuid() != 0},
		"sockets":          {with("/src", func(p *sandbox.Policy) { p.Net.Unix = sandbox.UnixAllowed }), false, true, os.Geteuid() != 0},
		"an ordinary user": {with("/src", func(p *sandbox.Policy) { p.RunAs = user }), true, true, true},
		"root":             {with("/src", func(p *sandbox.Policy) { p.RunAs = &sandbox.Credential{} }), true, true, false},
		"none":             {sandbox.Unconfined("a test"), false, false, false},
		"the zero value":   {sandbox.Policy{}, false, false, false},
	} {
		network, processes, privileges := c.policy.Prevents()
		assert.Equal(t, []bool{c.network, c.processes, c.privileges}, []bool{network, processes, privileges}, name)
	}
}
