package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
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
		{"git", none, func(p *Policy, _ string) { p.FS.Git = GitWritable }, "write .git (parent: read-only)"},
		{"net", none, func(p *Policy, _ string) { p.Net.Mode = HostNet }, "enable network (parent: none)"},
		{"no net", func(p *Policy, _ string) { p.Net.Mode = HostNet }, none, ""},
		{"unix", none, func(p *Policy, _ string) { p.Net.Unix = UnixAllowed }, "make Unix sockets (parent: blocked)"},
		{"ptrace", none, func(p *Policy, _ string) { p.Proc.AllowPtrace = true }, "trace processes (parent: blocked)"},
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
		{"a mask by another name", both(ro("data"), mask("data/sub")), func(p *Policy, top string) { p.FS.ExtraRO = binds("/x", "data")(top) }, "see TOP/data/sub by FS.ExtraRO (parent: hidden)"},
		{"in a mask", both(ro("data"), mask("data/sub")), ro("data/sub/in"), "see TOP/data/sub/in by FS.ExtraRO"},
		{"what a bind covers", both(rw("data"), func(p *Policy, top string) {
			p.FS.ExtraRW = append(p.FS.ExtraRW, Bind{Src: top + "/more", Dst: top + "/data/sub"})
		}), rw("data"), "write TOP/data/sub by FS.ExtraRW (parent: hidden)"},
		{"what is read-only in the workspace", ro("home/w/sub"), none, "write TOP/home/w/sub by FS.Workspace (parent: read-only)"},
		{"another repository's .git", func(p *Policy, _ string) { p.FS.Git, p.FS.Protect = GitWritable, []string{"sub/.git"} }, both(workspace("home/w/sub"), func(p *Policy, _ string) { p.FS.Git = GitWritable }), "write TOP/home/w/sub/.git by FS.Workspace"},
	} {
		t.Run(test.name, func(t *testing.T) {
			top := tree(t, "home/w/.git/", "home/w/sub/.git/", "data/sub/in/", "more/")
			require.NoError(t, os.Symlink("../other", filepath.Join(top, "home/w/out")))
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
	p.Limits = Limits{NProc: 7, CPU: 9}

	q := WorkspaceWrite(filepath.Join(w, "sub"))
	q.FS.Protect = []string{"own"}
	q.Limits.CPU = 3
	r, err := p.Narrow(q)
	require.NoError(t, err)
	assert.Equal(t, []string{".git", "own", "conf", "missing"}, r.FS.Protect)
	assert.Equal(t, []string{w + "/sub/key", w + "/sub/none"}, r.FS.Mask, "what is not seen needs no mask")
	assert.EqualValues(t, 100, r.FS.TmpSize)
	assert.EqualValues(t, 256<<20, r.FS.HomeSize)
	assert.Equal(t, Limits{NProc: 7, CPU: 3}, r.Limits)
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

// TestNarrowNeverWidens: a policy is its own child, what is accepted is accepted
// again and as it is, and so is a child's child. No file of the tree can be done
// more to than the parent can, which is looked up file by file.
func TestNarrowNeverWidens(t *testing.T) {
	top := tree(t, "home/w/.git/hooks/", "home/w/a/.git/", "home/w/a/b/", "home/w/c", "data/sub/in/", "more/x/")
	w := filepath.Join(top, "home/w")
	var files []string
	require.NoError(t, filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		files = append(files, path)
		return err
	}))
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		p := mutated(t, WorkspaceWrite(w), files, 2)
		self, err := p.Narrow(p)
		if err != nil {
			require.NotErrorIs(t, err, ErrWiden, "reflexive")
			t.Skip("not a policy")
		}
		q, err := p.Narrow(mutated(t, self, files, 5))
		if err != nil {
			return
		}
		accepted++
		again, err := p.Narrow(q)
		require.NoError(t, err)
		require.Equal(t, q, again)
		r, err := q.Narrow(mutated(t, q, files, 5))
		if err != nil {
			return
		}
		_, err = p.Narrow(r)
		require.NoError(t, err, "transitive")
		parent, child, grandchild := viewOf(self), viewOf(q), viewOf(r)
		for _, file := range files {
			a, _ := parent.reach(file)
			b, _ := child.reach(file)
			c, _ := grandchild.reach(file)
			require.LessOrEqual(t, b, a, file)
			require.LessOrEqual(t, c, b, file)
		}
	})
	t.Logf("%d children were accepted", accepted)
	assert.Positive(t, accepted, "some children are accepted")
}

// mutated changes one in so many of the fields.
func mutated(t *rapid.T, p Policy, files []string, oneIn int) Policy {
	maybe := func(change func()) {
		if rapid.IntRange(1, oneIn).Draw(t, "change") == 1 {
			change()
		}
	}
	number := func(most int) int { return rapid.IntRange(0, most).Draw(t, "n") }
	some := func() []string { return rapid.SliceOfN(rapid.SampledFrom(files), 0, 2).Draw(t, "paths") }
	binds := func() (list []Bind) {
		for _, src := range some() {
			list = append(list, Bind{Src: src, Dst: rapid.SampledFrom([]string{"", "", "/x", "/x/sub", src}).Draw(t, "dst")})
		}
		return list
	}
	maybe(func() {
		p.FS.Workspace = rapid.SampledFrom(slices.DeleteFunc(slices.Clone(files), func(path string) bool {
			return !pathWithin(p.FS.Workspace, path)
		})).Draw(t, "workspace")
	})
	maybe(func() { p.FS.Access = Access(number(2)) })
	maybe(func() { p.FS.Root = RootScope(number(1)) })
	maybe(func() { p.FS.Home = HomeMode(number(1)) })
	maybe(func() { p.FS.Git = GitMode(number(1)) })
	maybe(func() { p.FS.TmpSize = int64(number(3)) })
	maybe(func() { p.FS.ExtraRO = binds() })
	maybe(func() { p.FS.ExtraRW = binds() })
	maybe(func() { p.FS.Mask = some() })
	maybe(func() {
		p.FS.Protect = rapid.SliceOfN(rapid.SampledFrom([]string{".git", "a/.git", "a", "b", "none"}), 0, 3).Draw(t, "protect")
	})
	maybe(func() { p.Net = Net{NetMode(number(1)), UnixMode(number(1))} })
	maybe(func() { p.Proc.AllowPtrace = number(1) == 1 })
	maybe(func() { p.Limits.NProc = uint64(number(3)) })
	maybe(func() {
		p.Env.Pass = rapid.SliceOfN(rapid.SampledFrom([]string{"A", "B", "TERM"}), 0, 2).Draw(t, "pass")
	})
	maybe(func() { p.Drift = DriftMode(number(1)) })
	return p
}
