package sandbox

import (
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestNarrowNeverWidens: a policy is its own child, what is accepted is accepted
// again and as it is, and so is a child's child. No file of the tree can be done
// more to than the parent can, which is looked up file by file.
func TestNarrowNeverWidens(t *testing.T) {
	top := tree(t, "home/w/.git/hooks/", "home/w/a/.git/", "home/w/a/b/", "home/w/c", "data/sub/in/", "more/x/", "home/w/.env", "home/w/a/x")
	w := filepath.Join(top, "home/w")
	var files []string
	require.NoError(t, filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		files = append(files, path)
		return err
	}))
	accepted, compared := 0, 0
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
		generations := [][]view{{viewOf(self), viewOf(q), viewOf(r)}, started(host{home: filepath.Join(top, "home")}, self, q, r)}
		for _, views := range generations {
			for i := 1; i < len(views); i++ {
				for _, file := range files {
					had, _ := views[i-1].reach(file)
					got, _ := views[i].reach(file)
					require.LessOrEqual(t, got, had, file)
				}
			}
		}
		compared += len(generations[1])
	})
	t.Logf("%d children were accepted, %d generations compared as they would start", accepted, compared)
	assert.Positive(t, accepted, "some children are accepted")
}

// started are the views of policies as they would start now, up to the first
// that would not.
func started(h host, policies ...Policy) (views []view) {
	for _, p := range policies {
		r, err := p.resolve()
		if err != nil {
			return views
		}
		views = append(views, mountsOf(r, h, place{}).view)
	}
	return views
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
	maybe(func() {
		if p.FS.Home, p.FS.HomeDir = HomeMode(number(2)), ""; p.FS.Home == SharedHome {
			p.FS.HomeDir = rapid.SampledFrom(files).Draw(t, "home")
		}
	})
	maybe(func() {
		if p.FS.Tmp, p.FS.TmpDir = TmpMode(number(1)), ""; p.FS.Tmp == SharedTmp {
			p.FS.TmpDir = rapid.SampledFrom(files).Draw(t, "tmp")
		}
	})
	maybe(func() { p.FS.Git = GitMode(number(2)) })
	maybe(func() { p.FS.Missing = MissingMode(number(1)) })
	maybe(func() { p.FS.Quarantine = number(1) == 1 })
	maybe(func() {
		p.FS.ScanMasks = rapid.SliceOfN(rapid.SampledFrom([]string{".env", "c", "x*"}), 0, 2).Draw(t, "globs")
	})
	maybe(func() {
		p.FS.ScanProtect = rapid.SliceOfN(rapid.SampledFrom([]string{".env", "c", "b", "none"}), 0, 2).Draw(t, "names")
	})
	maybe(func() { p.FS.TmpSize = int64(number(3)) })
	maybe(func() { p.FS.ExtraRO = binds() })
	maybe(func() { p.FS.ExtraRW = binds() })
	maybe(func() { p.FS.Mask = some() })
	maybe(func() {
		p.FS.Protect = rapid.SliceOfN(rapid.SampledFrom([]string{".git", "a/.git", "a", "b", "none"}), 0, 3).Draw(t, "protect")
	})
	maybe(func() {
		p.Net = Net{Mode: NetMode(number(2)), Unix: UnixMode(number(1))}
		if p.Net.Mode == DomainsNet {
			p.Net.Allow = rapid.SliceOfN(rapid.SampledFrom([]string{"a.test", "*.a.test", "b.a.test", "a.test:8443"}), 1, 2).Draw(t, "allow")
			p.Net.Deny = rapid.SliceOfN(rapid.SampledFrom([]string{"c.a.test", "a.test"}), 0, 1).Draw(t, "deny")
			p.Net.Private = number(1) == 1
		}
	})
	maybe(func() { p.Proc.AllowPtrace = number(1) == 1 })
	maybe(func() { p.Limits.NProc = uint64(number(3)) })
	maybe(func() {
		p.Env.Pass = rapid.SliceOfN(rapid.SampledFrom([]string{"A", "B", "TERM"}), 0, 2).Draw(t, "pass")
	})
	maybe(func() { p.Drift = DriftMode(number(1)) })
	return p
}
