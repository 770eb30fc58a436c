package sandbox

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/transport"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), text, "if that is right, run the test with -update")
}

// The hosts that the golden files are for.
var (
	userHost = host{
		home: "/home/u", self: "/usr/local/bin/limpet",
		links: map[string]string{"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64"},
		dirs:  []string{"/usr", "/etc", "/opt"},
		cover: []string{"/proc/sys", "/proc/irq", "/proc/kcore", "/proc/keys"},
		names: "/run/systemd/resolve",
	}
	rootHost = host{
		root: true, home: "/root", links: map[string]string{"/bin": "usr/bin"}, dirs: []string{"/usr", "/lib", "/etc"},
		etc:   []entry{{"/etc/shadow", false}, {"/etc/ssl/private", true}},
		cover: []string{"/proc/sys"},
	}
)

func TestPlanIsWhatTheGoldenFilesSay(t *testing.T) {
	protected := func(p Policy, paths ...string) Policy {
		for _, path := range paths {
			p.guards = append(p.guards, whole(path))
		}
		p.Proc.Hostname = "sandbox"
		return p
	}
	const w = "/home/u/project"
	all := protected(ReadOnly(w))
	all.FS.Root, all.FS.Home, all.FS.TmpSize = All, ReadOnlyHome, 1<<20
	all.masks = []entry{{"/home/u/.ssh", true}, {"/home/u/.netrc", false}}
	extra := protected(WorkspaceWrite(w))
	extra.FS.ExtraRO, extra.FS.ExtraRW = []Bind{{Src: "/data", Dst: "/data"}}, []Bind{{Src: "/home/u/.cache/go", Dst: "/cache"}}
	masked := protected(WorkspaceWrite(w), w+"/sub/.git")
	masked.FS.ExtraRO = []Bind{{Src: w + "/sub/deps", Dst: "/deps"}}
	masked.FS.ExtraRW = []Bind{{Src: "/data", Dst: "/data"}}
	masked.masks = []entry{{"/data/a/b/keys", true}, {"/home/u/.ssh", true}, {w + "/.env", false}, {w + "/sub/deps/x/id_rsa", false}, {w + "/sub/keys", true}, {w + "/sub/keys/in", false}}
	shared := protected(WorkspaceWrite(w), w+"/.git")
	shared.FS.Tmp, shared.FS.TmpDir = SharedTmp, "/srv/agent/tmp"
	shared.FS.Home, shared.FS.HomeDir = SharedHome, "/srv/agent/home"
	shared.FS.ExtraRO = []Bind{{Src: "/etc/gitconfig", Dst: "/home/u/.gitconfig"}}
	commit := protected(WorkspaceWrite(w))
	commit.guards = []guard{committed(w+"/.git", "")}
	worktree := protected(WorkspaceWrite(w))
	worktree.FS.ExtraRW = []Bind{{Src: "/repo", Dst: "/repo"}}
	worktree.guards = []guard{whole("/repo/.git"), whole("/repo/.git/worktrees/wt"), whole(w + "/.git")}
	commitWorktree := worktree
	commitWorktree.guards = []guard{committed("/repo/.git", "worktrees/wt"), partsOf("/repo/.git/worktrees/wt", []string{"commondir", "gitdir"}), whole(w + "/.git")}
	for _, row := range []struct {
		name   string
		policy Policy
		host   host
	}{
		{"workspace-write", protected(WorkspaceWrite(w), w+"/.git", w+"/sub/repo/.git"), userHost},
		{"workspace-write-root", protected(WorkspaceWrite(w), w+"/.git"), rootHost},
		{"read-only", protected(ReadOnly(w), w+"/.git"), userHost},
		{"host-network", protected(HostNetwork(w)), userHost},
		{"allow-domains", protected(AllowDomains(w, "example.com"), w+"/.git"), userHost},
		{"scratch", protected(Scratch(w)), userHost},
		{"everything-but-masks", all, userHost},
		{"extra", extra, userHost},
		{"masks", masked, userHost},
		{"shared", shared, userHost},
		{"git-commit", commit, userHost},
		{"worktree", worktree, userHost},
		{"git-commit-worktree", commitWorktree, userHost},
	} {
		t.Run(row.name, func(t *testing.T) {
			var text strings.Builder
			for _, i := range plan(row.policy, row.host, place{dir: w, sessionDir: "/dev/shm/limpet-1000/p/s"}) {
				text.WriteString(strings.Join(quoted(i.args), " ") + "\n")
			}
			golden(t, "argv-"+row.name+".golden", text.String())
		})
	}
}

// What is later covers what is earlier: nothing that is writable may come
// after what makes a part of it read-only.
func TestProtectionsComeAfterWhatTheyProtect(t *testing.T) {
	p := WorkspaceWrite("/w")
	p.guards = []guard{whole("/w/.git"), whole("/w/a/b/.git")}
	args := strings.Join(arguments(plan(p, userHost, place{dir: "/w", sessionDir: "/s"})), " ")
	order := []string{"--bind /w /w", "--ro-bind /w/.git /w/.git", "--bind /w/a /w/a", "--bind /w/a/b /w/a/b", "--ro-bind /w/a/b/.git", "--bind /s /s", "--remount-ro / --chdir"}
	last := -1
	for _, part := range order {
		at := strings.Index(args, part)
		require.Greater(t, at, last, "%s in %s", part, args)
		last = at
	}
	assert.Contains(t, args, "--cap-drop ALL")
	assert.Contains(t, args, "--disable-userns")
}

func TestOnlyHarmlessVariablesAreInside(t *testing.T) {
	p := WorkspaceWrite("/w")
	p.Env = Env{Pass: []string{"GOFLAGS"}, Set: map[string]string{"LANG": "C"}}
	got := environ(p, userHost, transport.Spec{
		Env: []string{"PATH=/bin", "LANG=de", "LC_ALL=C", "GOFLAGS=-v", "AWS_SECRET=x", "SSH_AUTH_SOCK=/s", "DBUS_X=y"},
		Own: []string{"HISTFILE=", "LIMPET_SESSION=1", "TOKEN=for this command"},
	})
	assert.Equal(t, append(p.Net.impatient(), []string{
		"PATH=/bin", "LC_ALL=C", "GOFLAGS=-v", "TMPDIR=/tmp", "LANG=C", "HISTFILE=", "LIMPET_SESSION=1", "TOKEN=for this command",
	}...), got)
	assert.Equal(t, []string{"--setenv", "HISTFILE", "", "--setenv", "TOKEN", "a=b"}, setenv([]string{"HISTFILE=", "TOKEN=a=b"}))
}

// Without a network programs do not try again, unless somebody says that they shall.
func TestProgramsDoNotTryAgainWithoutANetwork(t *testing.T) {
	tries := func(p Policy, set ...string) (list []string) {
		for _, entry := range environ(p, userHost, transport.Spec{Own: set}) {
			name, _, _ := strings.Cut(entry, "=")
			if slices.ContainsFunc(retries, func(r retry) bool { return strings.EqualFold(r.name, name) }) {
				list = append(list, entry)
			}
		}
		return list
	}
	assert.Equal(t, []string{
		"npm_config_fetch_retries=0", "pnpm_config_fetch_retries=0", "PIP_RETRIES=1", "UV_HTTP_RETRIES=0", "YARN_HTTP_RETRY=0", "CARGO_NET_RETRY=0", "BUNDLE_RETRY=0",
	}, tries(WorkspaceWrite("/w")))
	assert.Equal(t, []string{"PIP_RETRIES=1", "UV_HTTP_RETRIES=1", "YARN_HTTP_RETRY=1", "CARGO_NET_RETRY=1", "BUNDLE_RETRY=1"}, tries(AllowDomains("/w", "example.com")))
	assert.Empty(t, tries(HostNetwork("/w")))

	p := AllowDomains("/w", "example.com")
	p.Env = Env{Pass: []string{"UV_HTTP_RETRIES"}, Set: map[string]string{"PIP_RETRIES": "3", "CARGO_NET_RETRY": "4", "YARN_HTTP_RETRY": "5"}}
	assert.ElementsMatch(t, []string{"PIP_RETRIES=3", "CARGO_NET_RETRY=4", "YARN_HTTP_RETRY=5", "BUNDLE_RETRY=6", "UV_HTTP_RETRIES=1"}, tries(p, "BUNDLE_RETRY=6"))
	assert.Contains(t, tries(WorkspaceWrite("/w"), "NPM_CONFIG_FETCH_RETRIES=2"), "NPM_CONFIG_FETCH_RETRIES=2")
	assert.NotContains(t, tries(WorkspaceWrite("/w"), "NPM_CONFIG_FETCH_RETRIES=2"), "npm_config_fetch_retries=0")
	for _, r := range retries {
		assert.NotEmpty(t, r.why, r.name)
	}
}
