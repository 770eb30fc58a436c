package sandbox_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/sandbox"
)

// losing is a home with a workspace, and directories beside it.
type losing struct{ home, work, extra, shared string }

func newLosing(t *testing.T) losing {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Setenv("HOME", home)
	l := losing{home, filepath.Join(home, "src", "work"), filepath.Join(home, "extra"), filepath.Join(home, "shared")}
	for _, dir := range []string{filepath.Join(l.work, ".git"), l.extra, filepath.Join(home, "shown")} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	require.NoError(t, os.Mkdir(l.shared, 0o700))
	return l
}

// What is written stays outside if it is in the workspace, or in what is shared; the rest is refused, or goes with the sandbox.
func TestAPolicySaysWhatStaysOfWhatIsWritten(t *testing.T) {
	l := newLosing(t)
	in := func(dir string, names ...string) (paths []string) {
		for _, name := range names {
			paths = append(paths, filepath.Join(dir, name))
		}
		return paths
	}
	always := []string{
		"", "/", ".", "tmp/a", "/tmp/", "/tmp/../etc", "//tmp/a", "/tmp/./a", "/tmp/\x00", "/tmp", "/var/tmp", "/dev/shm", "/var", l.home, "/dev/null", "/dev/stdout", "/dev/fd/3", "/proc/self/cwd/a",
		"/proc/self/root" + l.work, "/proc/1/mem", "/sys/x", "/run/x", "/var/run/x", "/run/user/0/limpet-0/x", "/tmp/limpet-0/x/stdout", "/dev/shm/limpet-0", filepath.Join(l.home, "limpet-0", "x"),
	}
	workspace := in(l.work, "", "a", ".git", ".git/hooks/x", ".vscode/tasks.json", "d/e", "..")
	private := append([]string{"/tmp/a", "/tmp/a/b", "/var/tmp/a", "/dev/shm/a"}, in(l.home, "a", "src/other", "extras", ".cache/x")...)
	refused := []string{"/usr/a", "/usr/bin/ls", "/etc/nosuch/a", "/a", "/opt/a", "/nix/store/a", "/var/lib/a"}
	extra := in(l.extra, "", "a")
	for name, c := range map[string]struct {
		policy      sandbox.Policy
		lost, stays [][]string
	}{
		"workspace-write":      {sandbox.WorkspaceWrite(l.work), [][]string{private, refused, extra}, [][]string{workspace}},
		"read-only":            {sandbox.ReadOnly(l.work), [][]string{private, refused, in(l.work, "a", "")}, nil},
		"scratch":              {sandbox.Scratch(l.work), [][]string{private, refused, in(l.work, "a", "d/e")}, [][]string{in(l.work, "")}},
		"allow-domains":        {sandbox.AllowDomains(l.work, "example.com"), [][]string{private, refused}, [][]string{workspace}},
		"host-network":         {sandbox.HostNetwork(l.work), [][]string{private, refused}, [][]string{workspace}},
		"with --rw":            {sandbox.WorkspaceWrite(l.work).With(nil, []string{l.extra}), [][]string{private, refused}, [][]string{workspace, extra}},
		"with --ro":            {sandbox.WorkspaceWrite(l.work).With([]string{l.extra}, nil), [][]string{private, refused, extra}, [][]string{workspace}},
		"read-only, with --rw": {sandbox.ReadOnly(l.work).With(nil, []string{l.extra}), [][]string{private, refused, in(l.work, "a")}, [][]string{extra}},
		"a bind elsewhere":     {with(l, func(p *sandbox.Policy) { p.FS.ExtraRW = []sandbox.Bind{{Src: l.extra, Dst: "/tmp/x"}} }), [][]string{in("/tmp", "a", "xx"), refused, extra}, [][]string{workspace, {"/tmp/x", "/tmp/x/a"}}},
		"a bind that may come": {with(l, func(p *sandbox.Policy) {
			p.FS.ExtraRW = []sandbox.Bind{{Src: filepath.Join(l.home, "later"), Optional: true}}
		}), [][]string{private}, [][]string{workspace, in(l.home, "later", "later/a")}},
		"a tmp that is shared":  {with(l, func(p *sandbox.Policy) { p.FS.Tmp, p.FS.TmpDir = sandbox.SharedTmp, l.shared }), [][]string{refused}, [][]string{workspace, {"/tmp/a"}}},
		"a home that is shared": {with(l, func(p *sandbox.Policy) { p.FS.Home, p.FS.HomeDir = sandbox.SharedHome, l.shared }), [][]string{{"/tmp/a"}, refused}, [][]string{workspace, in(l.home, "a", ".cache/x")}},
		"a home that is read":   {with(l, func(p *sandbox.Policy) { p.FS.Home = sandbox.ReadOnlyHome }), [][]string{private, refused}, [][]string{workspace}},
		"all is shown":          {with(l, func(p *sandbox.Policy) { p.FS.Root = sandbox.All }), [][]string{private, refused}, [][]string{workspace}},
		"none":                  {sandbox.Unconfined("a test"), nil, [][]string{private, refused, workspace}},
		"the zero value":        {sandbox.Policy{}, nil, [][]string{private, refused, workspace}},
		"one that cannot start": {sandbox.WorkspaceWrite("/nosuch"), nil, [][]string{private, refused, workspace}},
		"a mode that is none":   {with(l, func(p *sandbox.Policy) { p.FS.Tmp = 7 }), nil, [][]string{private, refused, workspace}},
	} {
		for _, paths := range c.lost {
			for _, path := range paths {
				assert.True(t, c.policy.Loses(path), "%s: %s", name, path)
			}
		}
		for _, paths := range append(c.stays, always) {
			for _, path := range paths {
				assert.False(t, c.policy.Loses(path), "%s: %q", name, path)
			}
		}
	}
}

func with(l losing, change func(p *sandbox.Policy)) sandbox.Policy {
	p := sandbox.WorkspaceWrite(l.work)
	change(&p)
	return p
}

// What is read-only may lead to what is not.
func TestWhatLeadsElsewhereIsFollowed(t *testing.T) {
	l := newLosing(t)
	shown := filepath.Join(l.home, "shown")
	p := sandbox.WorkspaceWrite(l.work).With([]string{shown}, nil)
	for name, to := range map[string]string{"work": l.work, "up": "../src/work", "chain": filepath.Join(shown, "work"), "tmp": "/tmp", "proc": "/proc/self/cwd", "dev": "/dev", "loop": "loop", "dead": "nosuch/a", "out": "/etc"} {
		require.NoError(t, os.Symlink(to, filepath.Join(shown, name)))
	}
	require.NoError(t, os.WriteFile(filepath.Join(shown, "file"), nil, 0o600))
	require.NoError(t, syscall.Mkfifo(filepath.Join(shown, "fifo"), 0o600))
	for path, lost := range map[string]bool{
		"a": true, "file": true, "work": false, "work/a": false, "up/a": false, "chain/a": false, "tmp/a": true, "tmp": false, "proc/a": false, "proc": false, "dev/null": false, "dev/fd/3": false, "dev": false, "dev/shm/a": true, "loop": false, "loop/a": false, "dead": true, "dead/b": true, "out/a": true, "fifo": false, "fifo/a": false, "a/b/c": true,
	} {
		assert.Equal(t, lost, p.Loses(filepath.Join(shown, path)), path)
	}
	require.NoError(t, os.Symlink(l.work, filepath.Join(l.home, "link")))
	assert.True(t, p.Loses(filepath.Join(l.home, "link", "a")), "the home is another one in the sandbox, which does not have the link")
	all := with(l, func(p *sandbox.Policy) { p.FS.Home = sandbox.ReadOnlyHome })
	assert.False(t, all.Loses(filepath.Join(l.home, "link", "a")))
	over := sandbox.Scratch(l.work)
	require.NoError(t, os.Symlink(l.extra, filepath.Join(l.work, "link")))
	over.FS.ExtraRW = []sandbox.Bind{{Src: l.extra}}
	assert.False(t, over.Loses(filepath.Join(l.work, "link", "a")), "what is below the workspace that is thrown away")
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
		"sockets":          {with(losing{work: "/src"}, func(p *sandbox.Policy) { p.Net.Unix = sandbox.UnixAllowed }), false, true, os.Geteuid() != 0},
		"an ordinary user": {with(losing{work: "/src"}, func(p *sandbox.Policy) { p.RunAs = user }), true, true, true},
		"root":             {with(losing{work: "/src"}, func(p *sandbox.Policy) { p.RunAs = &sandbox.Credential{} }), true, true, false},
		"none":             {sandbox.Unconfined("a test"), false, false, false},
		"the zero value":   {sandbox.Policy{}, false, false, false},
	} {
		network, processes, privileges := c.policy.Prevents()
		assert.Equal(t, []bool{c.network, c.processes, c.privileges}, []bool{network, processes, privileges}, name)
	}
}
