package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestNarrowRefuses has a row for each rule. The parent is WorkspaceWrite, and
// the child the same, but for what is changed. An empty text means no error.
func TestNarrowRefuses(t *testing.T) {
	type change = func(p *Policy, top string)
	none := func(*Policy, string) {}
	binds := func(dst string, paths ...string) func(top string) []Bind {
		return func(top string) (list []Bind) {
			for _, path := range paths {
				list = append(list, Bind{Src: filepath.Join(top, path), Dst: dst})
			}
			return list
		}
	}
	ro := func(paths ...string) change {
		return func(p *Policy, top string) { p.FS.ExtraRO = binds("", paths...)(top) }
	}
	rw := func(paths ...string) change {
		return func(p *Policy, top string) { p.FS.ExtraRW = binds("", paths...)(top) }
	}
	both := func(changes ...change) change {
		return func(p *Policy, top string) {
			for _, c := range changes {
				c(p, top)
			}
		}
	}
	access := func(a Access) change { return func(p *Policy, _ string) { p.FS.Access = a } }
	mask := func(path string) change {
		return func(p *Policy, top string) { p.FS.Mask = []string{filepath.Join(top, path)} }
	}
	workspace := func(path string) change {
		return func(p *Policy, top string) { p.FS.Workspace = filepath.Join(top, path) }
	}
	all := func(p *Policy, _ string) { p.FS.Root = All }
	git := func(mode GitMode) change { return func(p *Policy, _ string) { p.FS.Git = mode } }
	home := func(mode HomeMode) change { return func(p *Policy, _ string) { p.FS.Home = mode } }
	sharedTmp := func(path string) change {
		return func(p *Policy, top string) { p.FS.Tmp, p.FS.TmpDir = SharedTmp, filepath.Join(top, path) }
	}
	sharedHome := func(path string) change {
		return func(p *Policy, top string) { p.FS.Home, p.FS.HomeDir = SharedHome, filepath.Join(top, path) }
	}
	as := func(uid uint32) change {
		return func(p *Policy, _ string) { p.RunAs = &Credential{UID: uid, GID: ourselves().GID} }
	}
	for _, test := range []struct {
		name          string
		parent, child change
		text          string
	}{
		{"the same", none, none, ""},
		{"unconfined", none, func(p *Policy, _ string) { *p = Unconfined("why not") }, "be unconfined (parent: workspace-write)"},
		{"of an unconfined parent", func(p *Policy, _ string) { *p = Unconfined("why not") }, ro("data"), ""},
		{"unconfined of an unconfined parent", func(p *Policy, _ string) { *p = Unconfined("a") }, func(p *Policy, _ string) { *p = Unconfined("b") }, ""},
		{"workspace inside", none, workspace("home/w/sub"), ""},
		{"workspace beside", none, workspace("home/other"), "work in TOP/home/other (parent: TOP/home/w)"},
		{"workspace is a link out", none, workspace("home/w/out"), "work in TOP/home/other"},
		{"workspace is protected", none, workspace("home/w/.git"), "write TOP/home/w/.git by FS.Workspace (parent: read-only)"},
		{"workspace is protected, and only read", none, both(workspace("home/w/.git"), access(ReadOnlyAccess)), ""},
		{"workspace is hidden", mask("home/w/sub"), both(workspace("home/w/sub"), access(ReadOnlyAccess)), "see TOP/home/w/sub by FS.Workspace (parent: hidden)"},
		{"less access", none, access(ReadOnlyAccess), ""},
		{"more access", access(ReadOnlyAccess), none, "have more access to the workspace (parent: read-only)"},
		{"overlay of read-only", access(ReadOnlyAccess), access(Overlay), "(parent: read-only)"},
		{"root", none, all, "see all of the system (parent: system)"},
		{"home", none, func(p *Policy, _ string) { p.FS.Home = ReadOnlyHome }, "see the home directory (parent: private)"},
		{"git", none, func(p *Policy, _ string) { p.FS.Git = GitWritable }, "write more of .git (parent: read-only)"},
		{"commit", none, git(GitCommit), "write more of .git (parent: read-only)"},
		{"more than commit", git(GitCommit), git(GitWritable), "write more of .git (parent: commit)"},
		{"no commit", git(GitCommit), none, ""},
		{"commit of commit", git(GitCommit), git(GitCommit), ""},
		{"commit of writable", git(GitWritable), git(GitCommit), ""},
		{"in what can be committed to", git(GitCommit), both(git(GitCommit), workspace("home/w/.git/objects")), "write TOP/home/w/.git/objects/info/alternates by FS.Workspace (parent: read-only)"},
		{"in what git runs", git(GitCommit), both(git(GitCommit), workspace("home/w/.git/hooks")), "write TOP/home/w/.git/hooks by FS.Workspace"},
		{"the shared home of nobody", none, sharedHome("data"), "write TOP/data by FS.HomeDir (parent: hidden)"},
		{"the parent's shared home", sharedHome("data"), sharedHome("data"), ""},
		{"in the parent's shared home", sharedHome("data"), sharedHome("data/sub"), ""},
		{"above the parent's shared home", sharedHome("data/sub"), sharedHome("data"), "write TOP/data by FS.HomeDir (parent: hidden)"},
		{"a home of its own", sharedHome("data"), none, ""},
		{"home of a shared one", sharedHome("data"), home(ReadOnlyHome), "see the home directory (parent: shared)"},
		{"home of home", home(ReadOnlyHome), home(ReadOnlyHome), ""},
		{"the shared tmp of nobody", none, sharedTmp("data"), "write TOP/data by FS.TmpDir (parent: hidden)"},
		{"a shared tmp that the parent reads", ro("data"), sharedTmp("data"), "write TOP/data by FS.TmpDir (parent: read-only)"},
		{"a shared tmp that the parent writes", rw("data"), sharedTmp("data"), ""},
		{"another shared tmp", sharedTmp("data"), sharedTmp("more"), "write TOP/more by FS.TmpDir (parent: hidden)"},
		{"missing", func(p *Policy, _ string) { p.FS.Missing = MissingRefuse }, none, "start without what is protected (parent: refuse)"},
		{"refuses what is missing", none, func(p *Policy, _ string) { p.FS.Missing = MissingRefuse }, ""},
		{"memory", func(p *Policy, _ string) { p.Limits.MemoryMax = 5 }, func(p *Policy, _ string) { p.Limits.MemoryMax = 6 }, "have a larger Limits.MemoryMax (parent: 5)"},
		{"pids", func(p *Policy, _ string) { p.Limits.PidsMax = 5 }, func(p *Policy, _ string) { p.Limits.PidsMax = 6 }, "have a larger Limits.PidsMax (parent: 5)"},
		{"as another user", as(ourselves().UID), as(ourselves().UID + 1), "run as "},
		{"as the parent's user", as(ourselves().UID), none, ""},
		{"net", none, func(p *Policy, _ string) { p.Net.Mode = HostNet }, "enable network (parent: none)"},
		{"no net", func(p *Policy, _ string) { p.Net.Mode = HostNet }, none, ""},
		{"unix", none, func(p *Policy, _ string) { p.Net.Unix = UnixAllowed }, "make Unix sockets (parent: blocked)"},
		{"ptrace", none, func(p *Policy, _ string) { p.Proc.AllowPtrace = true }, "trace processes (parent: blocked)"},
		{"proc", func(p *Policy, _ string) { p.Proc.NestedWeak = true }, none, "have a /proc (parent: none)"},
		{"no proc", none, func(p *Policy, _ string) { p.Proc.NestedWeak = true }, ""},
		{"32 bits", none, func(p *Policy, _ string) { p.Proc.Allow32Bit = true }, "run 32-bit programs (parent: blocked)"},
		{"tmp", none, func(p *Policy, _ string) { p.FS.TmpSize = 1 << 40 }, "have a larger FS.TmpSize (parent: 268435456)"},
		{"home size", none, func(p *Policy, _ string) { p.FS.HomeSize = 1 << 40 }, "have a larger FS.HomeSize"},
		{"shm", none, func(p *Policy, _ string) { p.FS.ShmSize = 1 << 40 }, "have a larger FS.ShmSize"},
		{"env", none, func(p *Policy, _ string) { p.Env.Pass = []string{"LC_ALL", "TOKEN"} }, "have TOKEN by Env.Pass (parent: not passed)"},
		{"env that is passed", func(p *Policy, _ string) { p.Env.Pass = []string{"A", "B"} }, func(p *Policy, _ string) { p.Env.Pass = []string{"B", "TERM"} }, ""},
		{"limit", func(p *Policy, _ string) { p.Limits.NProc = 5 }, func(p *Policy, _ string) { p.Limits.NProc = 6 }, "have a larger Limits.NProc (parent: 5)"},
		{"limit of its own", none, func(p *Policy, _ string) { p.Limits.CPU = 6 }, ""},
		{"drift", func(p *Policy, _ string) { p.Drift = DriftFail }, none, "go on after drift (parent: fail)"},
		{"fails on drift", none, func(p *Policy, _ string) { p.Drift = DriftFail }, ""},
		{"extra", none, ro("data"), "see TOP/data by FS.ExtraRO (parent: hidden)"},
		{"extra in extra", ro("data"), ro("data/sub"), ""},
		{"extra above extra", ro("data/sub"), ro("data"), "see TOP/data by FS.ExtraRO"},
		{"extra in a writable one", rw("data"), ro("data/sub"), ""},
		{"writable in a readable one", ro("data"), rw("data/sub"), "write TOP/data/sub by FS.ExtraRW (parent: read-only)"},
		{"writable in a writable one", rw("data"), rw("data/sub"), ""},
		{"writable in a workspace", none, rw("home/w/sub"), ""},
		{"writable in a readable workspace", access(ReadOnlyAccess), both(access(ReadOnlyAccess), rw("home/w/sub")), "write TOP/home/w/sub by FS.ExtraRW"},
		{"writable in an overlay", access(Overlay), both(access(Overlay), rw("home/w/sub")), "write TOP/home/w/sub by FS.ExtraRW"},
		{"in the private home of all", all, both(all, ro("home/other")), "see TOP/home/other by FS.ExtraRO (parent: hidden)"},
		{"in the masked /etc of all", all, both(all, func(p *Policy, _ string) { p.FS.ExtraRO = []Bind{{Src: "/etc/passwd"}} }), "see /etc/passwd by FS.ExtraRO"},
		{"of all", all, func(p *Policy, _ string) { p.FS.ExtraRO = []Bind{{Src: "/usr/bin"}} }, ""},
		{"a mask by another name", both(ro("data"), mask("data/sub")), func(p *Policy, top string) { p.FS.ExtraRO = binds("/x", "data")(top) }, ""},
		{"in a mask", both(ro("data"), mask("data/sub")), ro("data/sub/in"), "see TOP/data/sub/in by FS.ExtraRO"},
		{"what a bind covers", both(rw("data"), func(p *Policy, top string) {
			p.FS.ExtraRW = append(p.FS.ExtraRW, Bind{Src: top + "/more", Dst: top + "/data/sub"})
		}), rw("data"), "write TOP/data/sub by FS.ExtraRW (parent: hidden)"},
		{"what is read-only in the workspace", ro("home/w/sub"), none, "write TOP/home/w/sub by FS.Workspace (parent: read-only)"},
		{"another repository's .git", func(p *Policy, _ string) { p.FS.Git, p.FS.Protect = GitWritable, []string{"sub/.git"} }, both(workspace("home/w/sub"), func(p *Policy, _ string) { p.FS.Git = GitWritable }), "write TOP/home/w/sub/.git by FS.Workspace"},
	} {
		t.Run(test.name, func(t *testing.T) {
			top := tree(t, "home/w/.git/objects/", "home/w/.git/hooks/", "home/w/sub/.git/", "data/sub/in/", "more/")
			require.NoError(t, os.Symlink("../other", filepath.Join(top, "home/w/out")))
			if ourselves().UID != 0 && test.text == "run as " {
				t.Skip("only root can run something as another user")
			}
			p := WorkspaceWrite(filepath.Join(top, "home/w"))
			q := p
			test.parent(&p, top)
			test.child(&q, top)
			r, err := p.Narrow(q)
			if test.text == "" {
				require.NoError(t, err)
				assert.Equal(t, q.Name, r.Name)
				return
			}
			require.ErrorIs(t, err, ErrWiden)
			assert.ErrorContains(t, err, "sandbox: child policy may not ")
			assert.ErrorContains(t, err, expand(test.text, filepath.Join(top, "home/w")))
			assert.Equal(t, Policy{}, r)
		})
	}
}

func TestNarrowKeepsAndInherits(t *testing.T) {
	top := tree(t, "home/w/sub/conf", "home/w/sub/key")
	w := filepath.Join(top, "home/w")
	p := WorkspaceWrite(w).With([]string{top + "/data"}, nil)
	p.FS.Protect = []string{"sub/conf", "sub/missing", "conf"}
	p.FS.Mask = []string{"sub/key", "sub/none", top + "/data/file"}
	p.FS.TmpSize, p.FS.HomeSize = 100, 1<<40
	p.Limits = Limits{NProc: 7, CPU: 9, PidsMax: 11}
	p.FS.Quarantine = true
	who := ourselves()
	p.RunAs = &who

	q := WorkspaceWrite(filepath.Join(w, "sub"))
	q.FS.Protect = []string{"own"}
	q.Limits.CPU = 3
	r, err := p.Narrow(q)
	require.NoError(t, err)
	assert.Equal(t, []string{".git", "own", "conf", "missing"}, r.FS.Protect)
	assert.Equal(t, []string{w + "/sub/key", w + "/sub/none"}, r.FS.Mask, "what is not seen needs no mask")
	assert.EqualValues(t, 100, r.FS.TmpSize)
	assert.EqualValues(t, 256<<20, r.FS.HomeSize)
	assert.Equal(t, Limits{NProc: 7, CPU: 3, PidsMax: 11}, r.Limits)
	assert.True(t, r.FS.Quarantine)
	assert.Equal(t, &who, r.RunAs)
	assert.NotSame(t, p.RunAs, r.RunAs)
	assert.Nil(t, q.FS.Mask, "the argument stays as it is")
}

func TestNarrowNeedsPolicies(t *testing.T) {
	top := tree(t)
	p := WorkspaceWrite(filepath.Join(top, "home/w"))
	_, err := p.Narrow(Policy{})
	require.ErrorIs(t, err, ErrNoPolicy)
	_, err = Policy{}.Narrow(p)
	require.ErrorIs(t, err, ErrNoPolicy)
	_, err = Unconfined("why not").Narrow(Unconfined(""))
	require.ErrorIs(t, err, ErrNoPolicy)
}

// What a child may see was decided by where its paths led.
func TestNarrowedPathsMayNotLeadElsewhereLater(t *testing.T) {
	for _, path := range []string{"home/w/sub", "home/w/data", "home/w/tmp"} {
		top := tree(t, "home/w/sub/in/", "home/w/data/in/", "home/w/tmp/", "secret/in/")
		w := filepath.Join(top, "home/w")
		q := WorkspaceWrite(w+"/sub/in").With([]string{w + "/data/in"}, nil)
		q.FS.Tmp, q.FS.TmpDir = SharedTmp, w+"/tmp"
		r, err := WorkspaceWrite(w).Narrow(q)
		require.NoError(t, err)
		_, err = r.resolve()
		require.NoError(t, err)
		// As a command of the parent's could.
		require.NoError(t, os.Rename(filepath.Join(top, path), filepath.Join(top, path+".old")))
		require.NoError(t, os.Symlink(top+"/secret", filepath.Join(top, path)))
		_, err = r.resolve()
		code := ErrMount
		if path == "home/w/sub" {
			code = ErrBadWorkspace
		}
		require.ErrorIs(t, err, code)
		assert.ErrorContains(t, err, "is a symlink")
	}
}
