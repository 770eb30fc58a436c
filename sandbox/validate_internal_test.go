package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tree makes a home directory with a workspace and other things in it, and
// gives the directory that home is in. Names that end in "/" are directories.
func tree(t *testing.T, names ...string) (top string) {
	t.Helper()
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	for _, name := range append([]string{"home/w/", "home/other/", "data/sub/", "data/file"}, names...) {
		path := filepath.Join(top, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if strings.HasSuffix(name, "/") {
			require.NoError(t, os.MkdirAll(path, 0o755))
		} else {
			require.NoError(t, os.WriteFile(path, nil, 0o644))
		}
	}
	t.Setenv("HOME", filepath.Join(top, "home"))
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("GIT_CONFIG_SYSTEM", filepath.Join(top, "none")) // Who runs the tests may have hooks.
	return top
}

func TestResolveFillsIn(t *testing.T) {
	top := tree(t, "home/w/.git/", "home/w/.vscode/", "home/w/secret", "home/w/keys/", "home/w/sub/")
	w := filepath.Join(top, "home/w")
	require.NoError(t, os.Symlink("w", filepath.Join(top, "home/link")))
	require.NoError(t, os.Symlink("data", filepath.Join(top, "d")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(top, "dangling")))

	p := WorkspaceWrite(filepath.Join(top, "home/link")).With([]string{top + "/d/", top + "/d", w + "/sub"}, nil)
	p.FS.ExtraRW = []Bind{{Src: top + "/none", Optional: true}, {Src: top + "/data/sub", Dst: "/x/../y/"}}
	p.FS.Mask = []string{"secret", "missing", w + "/keys", top + "/dangling"}
	r, err := p.resolve()
	require.NoError(t, err)

	assert.Equal(t, w, r.FS.Workspace)
	assert.Equal(t, []Bind{{Src: top + "/data", Dst: top + "/d"}, {Src: w + "/sub", Dst: w + "/sub"}}, r.FS.ExtraRO)
	assert.Equal(t, []Bind{{Src: top + "/data/sub", Dst: "/y"}}, r.FS.ExtraRW)
	assert.Equal(t, []entry{{w + "/keys", true}, {w + "/secret", false}}, r.masks)
	assert.Equal(t, []string{w + "/.git", w + "/.vscode"}, readOnlyIn(r))
	assert.Equal(t, DefaultProtect, r.FS.Protect)
	assert.Equal(t, []int64{256 << 20, 256 << 20, 64 << 20}, []int64{r.FS.TmpSize, r.FS.HomeSize, r.FS.ShmSize})
	assert.Equal(t, "sandbox", r.Proc.Hostname)

	again, err := r.resolve()
	require.NoError(t, err)
	assert.Equal(t, r, again, "resolving twice changes nothing")

	p, err = Unconfined("the user asked for it").resolve()
	require.NoError(t, err)
	assert.Equal(t, Unconfined("the user asked for it"), p)
}

// readOnlyIn lists what of the workspace is mounted read-only.
func readOnlyIn(p Policy) (paths []string) {
	for _, s := range mountsOf(p, host{}, place{}).view {
		if s.reach == readable && s.field == "FS.Protect" {
			paths = append(paths, s.at)
		}
	}
	return paths
}

func TestResolveProtects(t *testing.T) {
	top := tree(t, "home/w/.git", "home/w/.hg/", "home/w/sub/repo/.git/", "home/w/own/in/", "home/w/-/")
	w := filepath.Join(top, "home/w")
	for _, test := range []struct {
		name    string
		protect []string
		git     GitMode
		want    []string
	}{
		{"the default, and a worktree's file", nil, GitReadOnly, []string{"/.git", "/.hg"}},
		{"git may be written", nil, GitWritable, []string{"/.hg"}},
		{"git although it is not listed", []string{}, GitReadOnly, []string{"/.git"}},
		{"nothing", []string{}, GitWritable, nil},
		{"another repository's", []string{"sub//repo/.git", ".git/"}, GitWritable, []string{"/sub/repo/.git"}},
		{"missing, or below a file", []string{"x/y", ".git/x"}, GitWritable, nil},
		{"what is in a protected directory", []string{"own/in", "own"}, GitWritable, []string{"/own"}},
		{"twice", []string{"own", "./own"}, GitWritable, []string{"/own"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := WorkspaceWrite(w)
			p.FS.Protect, p.FS.Git = test.protect, test.git
			r, err := p.resolve()
			require.NoError(t, err)
			var got []string
			for _, path := range readOnlyIn(r) {
				got = append(got, strings.TrimPrefix(path, w))
			}
			assert.Equal(t, test.want, got)
		})
	}
}

// TestResolveRefuses has a row for each rule. In texts, TOP is the directory
// that the home directory is in, $W the workspace.
func TestResolveRefuses(t *testing.T) {
	with := func(change func(*Policy)) func(string) Policy {
		return func(w string) Policy {
			p := WorkspaceWrite(w)
			change(&p)
			return p
		}
	}
	in := func(path string) func(string) Policy { // the workspace, from TOP
		return func(w string) Policy { return WorkspaceWrite(filepath.Join(w, "../..", path)) }
	}
	at := func(path string) func(string) Policy {
		return func(string) Policy { return WorkspaceWrite(path) }
	}
	ro := func(src, dst string) func(string) Policy { // TOP and $W are replaced
		return func(w string) Policy {
			p := WorkspaceWrite(w)
			p.FS.ExtraRO = []Bind{{Src: expand(src, w), Dst: expand(dst, w)}}
			return p
		}
	}
	rw := func(src, dst string) func(string) Policy {
		return func(w string) Policy {
			p := ro(src, dst)(w)
			p.FS.ExtraRO, p.FS.ExtraRW = nil, p.FS.ExtraRO
			return p
		}
	}
	for _, test := range []struct {
		name   string
		policy func(w string) Policy
		code   error
		text   string
	}{
		{"zero", func(string) Policy { return Policy{} }, ErrNoPolicy, "the policy is empty; begin with a preset, such as WorkspaceWrite, or ask for Unconfined explicitly"},
		{"no name", with(func(p *Policy) { p.Name = "" }), ErrNoPolicy, "begin with a preset"},
		{"no reason", func(string) Policy { return Unconfined("") }, ErrNoPolicy, "Unconfined has no reason; say why there is to be no sandbox"},
		{"blank reason", func(string) Policy { return Unconfined(" ") }, ErrNoPolicy, "has no reason"},
		{"called unconfined", with(func(p *Policy) { p.Name = "unconfined" }), ErrNoPolicy, "has no reason"},
		{"blank reason by another name", with(func(p *Policy) { p.unconfined = " " }), ErrNoPolicy, "has no reason"},

		{"unknown mode", with(func(p *Policy) { p.Net.Mode = 7 }), ErrNoPolicy, `policy "workspace-write": Net.Mode is 7, which is none of its constants`},
		{"negative mode", with(func(p *Policy) { p.FS.Access = -1 }), ErrNoPolicy, "FS.Access is -1"},
		{"passed name", with(func(p *Policy) { p.Env.Pass = []string{"A=B"} }), ErrNoPolicy, `Env.Pass: "A=B" is not the name of a variable`},
		{"set name", with(func(p *Policy) { p.Env.Set = map[string]string{"1": ""} }), ErrNoPolicy, `Env.Set: "1" is not the name`},
		{"set value", with(func(p *Policy) { p.Env.Set = map[string]string{"A": "x\x00y"} }), ErrNoPolicy, "Env.Set: the value of A has a NUL"},
		{"hostname", with(func(p *Policy) { p.Proc.Hostname = "a\x00--bind" }), ErrNoPolicy, "is not the name of a host"},
		{"tmp size", with(func(p *Policy) { p.FS.TmpSize = -1 }), ErrLimits, "FS.TmpSize is negative: -1; 0 is the default"},
		{"home size", with(func(p *Policy) { p.FS.HomeSize = -1 }), ErrLimits, "FS.HomeSize is negative"},
		{"shm size", with(func(p *Policy) { p.FS.ShmSize = -1 }), ErrLimits, "FS.ShmSize is negative"},

		{"no workspace", at(""), ErrNoWorkspace, `policy "workspace-write" is active but no workspace directory is known; refusing to run unsandboxed`},
		{"missing workspace", in("none"), ErrBadWorkspace, "workspace TOP/none does not exist; create it, or choose another directory"},
		{"workspace is a file", in("data/file"), ErrBadWorkspace, "workspace TOP/data/file is not a directory; choose the directory that it is in"},
		{"home", in("home"), ErrBadWorkspace, "workspace TOP/home is $HOME: secrets would be writable; choose a sub directory"},
		{"home by a link", in("tohome"), ErrBadWorkspace, "workspace TOP/home is $HOME"},
		{"above home", in("."), ErrBadWorkspace, "workspace TOP holds $HOME: secrets would be writable"},
		{"root", at("/"), ErrBadWorkspace, "workspace / is the root directory: everything would be writable"},
		{"system", at("/usr"), ErrBadWorkspace, "workspace /usr is a directory of the system"},
		{"system by a link", at("/bin"), ErrBadWorkspace, "is a directory of the system"},
		{"processes", at("/proc/self"), ErrBadWorkspace, "is a directory of the system"},

		{"missing source", ro("TOP/none", ""), ErrMount, "FS.ExtraRO[0]: bind TOP/none: does not exist; create it, or make it Optional"},
		{"missing writable source", rw("TOP/none", ""), ErrMount, "FS.ExtraRW[0]: bind TOP/none: does not exist"},
		{"no source", ro("", "/x"), ErrMount, "not a path"},
		{"NUL in a destination", ro("TOP/data", "/x\x00--bind\x00/\x00/"), ErrMount, "not a path"},
		{"the host's processes", ro("/proc", "/x"), ErrMount, "this is the host's /proc"},
		{"relative destination", ro("TOP/data", "x"), ErrMount, "FS.ExtraRO[0]: destination x is not absolute"},
		{"everything", ro("TOP/data", "/"), ErrMount, "nothing can be shown at /; choose another destination"},
		{"over /proc", ro("TOP/data", "/proc"), ErrMount, "nothing can be shown at /proc"},
		{"below /dev", ro("TOP/data", "/x/../dev/x"), ErrMount, "nothing can be shown at /dev/x"},
		{"below /sys", ro("TOP/data", "/sys/x"), ErrMount, "nothing can be shown at /sys/x"},
		{"over the workspace", ro("TOP/data", "$W"), ErrMount, "$W would cover $W"},
		{"above the workspace", ro("TOP/home", ""), ErrMount, "TOP/home would cover $W/."},
		{"over a protected path", ro("TOP/data", "$W/.git"), ErrMount, "$W/.git would cover $W/.git"},
		{"below a protected path", rw("TOP/data", "$W/.git/hooks"), ErrMount, "would cover $W/.git"},
		{"a protected path by a link", ro("TOP/data", "TOP/tohome/w/.git"), ErrMount, "would cover $W/.git"},
		{"missing destination in the workspace", ro("TOP/data", "$W/none"), ErrMount, "no such file or directory; create it first"},
		{"destination by a link", ro("TOP/data", "$W/link/sub"), ErrMount, "$W/link is a symlink"},
		{"writable home", rw("TOP/home", "/x"), ErrMount, "bind TOP/home: it is $HOME: secrets would be writable; choose a sub directory"},
		{"writable above home", rw("TOP", "/x"), ErrMount, "holds $HOME"},
		{"writable root", rw("/", "/x"), ErrMount, "is the root directory"},
		{"writable system", rw("/etc", "/x"), ErrMount, "bind /etc: it is a directory of the system"},
		{"the workspace by another name", rw("$W", "/x"), ErrMount, "would be writable by it"},
		{"a protected path by another name", rw("$W/.git", "/x"), ErrMount, "bind $W/.git: $W/.git would be writable by it; choose a directory beside it"},
		{"two at one place", func(w string) Policy {
			return WorkspaceWrite(w).With([]string{expand("TOP/data", w)}, []string{expand("TOP/data", w)})
		}, ErrMount, "FS.ExtraRO[0]: TOP/data would be covered by FS.ExtraRW[0]; show it elsewhere"},
		{"read-only in writable", func(w string) Policy {
			return WorkspaceWrite(w).With([]string{expand("TOP/data/sub", w)}, []string{expand("TOP/data", w)})
		}, ErrMount, "TOP/data/sub would be covered by FS.ExtraRW[0]"},

		{"mask of nothing", with(func(p *Policy) { p.FS.Mask = []string{""} }), ErrMount, `FS.Mask[0]: "" is not a path`},
		{"mask of the workspace", with(func(p *Policy) { p.FS.Mask = []string{"."} }), ErrMount, "FS.Mask[0]: $W cannot be hidden; mask what is in it"},
		{"mask above the workspace", with(func(p *Policy) { p.FS.Mask = []string{".."} }), ErrMount, "TOP/home cannot be hidden"},
		{"mask of /proc", with(func(p *Policy) { p.FS.Mask = []string{"/proc/self"} }), ErrMount, "cannot be hidden"},

		{"absolute protect", with(func(p *Policy) { p.FS.Protect = []string{"/etc"} }), ErrProtect, `cannot protect "/etc": it is not a path below the workspace; FS.Protect has relative paths without ..`},
		{"protect above", with(func(p *Policy) { p.FS.Protect = []string{"a/../b"} }), ErrProtect, `cannot protect "a/../b"`},
		{"protect everything", with(func(p *Policy) { p.FS.Protect = []string{"./"} }), ErrProtect, `cannot protect "./"`},
		{"protect nothing", with(func(p *Policy) { p.FS.Protect = []string{""} }), ErrProtect, `cannot protect ""`},
		{"protected link", with(func(p *Policy) { p.FS.Protect = []string{"link"} }), ErrProtect, "cannot protect $W/link: it is a symlink; take it out of FS.Protect to accept"},
		{"protected through a link", with(func(p *Policy) { p.FS.Protect = []string{"link/sub"} }), ErrProtect, "cannot protect $W/link/sub: $W/link is a symlink"},
		{"protected dangling link", with(func(p *Policy) { p.FS.Protect = []string{"dangling"} }), ErrProtect, "$W/dangling: it is a symlink"},
		{"git is a link", in("home/linked"), ErrProtect, "cannot protect TOP/home/linked/.git: it is a symlink; set FS.Git=GitWritable to accept"},
	} {
		t.Run(test.name, func(t *testing.T) {
			top := tree(t, "home/w/.git/", "home/linked/")
			w := filepath.Join(top, "home/w")
			for link, to := range map[string]string{
				"tohome": "home", "home/w/link": "../../data", "home/w/dangling": "none", "home/linked/.git": "../w/.git",
			} {
				require.NoError(t, os.Symlink(to, filepath.Join(top, link)))
			}
			r, err := test.policy(w).resolve()
			require.ErrorIs(t, err, test.code)
			assert.ErrorContains(t, err, expand(test.text, w))
			assert.True(t, strings.HasPrefix(err.Error(), "sandbox: "), err)
			assert.Equal(t, Policy{}, r)
		})
	}
}

func expand(s, w string) string {
	return strings.NewReplacer("TOP", filepath.Dir(filepath.Dir(w)), "$W", w).Replace(s)
}
