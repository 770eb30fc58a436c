package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/transport"
)

func TestItsOwnCgroupIsFound(t *testing.T) {
	const (
		v1   = "31 25 0:28 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"
		v2   = "30 25 0:27 / /sys/fs/cgroup rw,relatime shared:8 - cgroup2 cgroup2 rw\n"
		part = "30 25 0:27 /docker/x /sys/fs/cgroup rw - cgroup2 cgroup rw\n"
	)
	for _, row := range []struct {
		name, ours, mounts, dir, top, text string
	}{
		{"a service", "0::/system.slice/a.service\n", v2, "/sys/fs/cgroup/system.slice/a.service", "/sys/fs/cgroup", ""},
		{"both versions", "4:memory:/x\n0::/y\n", v1 + v2, "/sys/fs/cgroup/y", "/sys/fs/cgroup", ""},
		{"the top", "0::/\n", v2, "/sys/fs/cgroup", "/sys/fs/cgroup", ""},
		{"a part of it", "0::/docker/x/leaf\n", part, "/sys/fs/cgroup/leaf", "/sys/fs/cgroup", ""},
		{"another part", "0::/docker/xy\n", part, "", "", `its own cgroup "/docker/xy" is not below the one that is mounted, "/docker/x"`},
		{"above the namespace", "0::/../y\n", v2, "", "", `its own cgroup "/../y" is not below the one that is mounted`},
		{"the old version", "4:memory:/x\n", v1, "", "", "none is mounted"},
		{"none of ours", "4:memory:/x\n", v2, "", "", `its own cgroup "" is not below`},
	} {
		dir, top, err := ownCgroup(row.ours, row.mounts)
		if row.text != "" {
			assert.ErrorContains(t, err, row.text, row.name)
			continue
		}
		require.NoError(t, err, row.name)
		assert.Equal(t, []string{row.dir, row.top}, []string{dir, top}, row.name)
	}
}

// A file system of the kernel's makes these files; here they are made up.
func TestControllersAreTurnedOnWhereTheyAreHad(t *testing.T) {
	dir := t.TempDir()
	control := filepath.Join(dir, "cgroup.subtree_control")
	reset := func() {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.controllers"), []byte("cpu memory pids\n"), 0o600))
		require.NoError(t, os.WriteFile(control, []byte("memory\n"), 0o600))
	}
	reset()
	require.NoError(t, enable(dir, map[string]string{"memory.max": "1"}))
	on, err := os.ReadFile(control)
	require.NoError(t, err)
	assert.Equal(t, "memory\n", string(on), "it was on")
	require.NoError(t, enable(dir, map[string]string{"pids.max": "1"}))
	on, err = os.ReadFile(control)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(on), "+pids"), string(on))
	err = enable(dir, map[string]string{"io.max": "1"})
	assert.ErrorContains(t, err, `has no controller "io", but "cpu memory pids"`)
}

// To turn "pids" on in a cgroup that has processes is no error, but makes it threaded.
func TestACgroupWithProcessesIsLeftAlone(t *testing.T) {
	for _, row := range []struct{ kind, procs, text string }{
		{"domain\n", "", ""},
		{"", "", ""}, // The top.
		{"", "1\n", ""},
		{"domain\n", "12\n", "has processes of its own"},
		{"domain threaded\n", "", `is "domain threaded", not a domain`},
		{"domain invalid\n", "", `is "domain invalid", not a domain`},
	} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(row.procs), 0o600))
		if row.kind != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.type"), []byte(row.kind), 0o600))
		}
		err := fit(dir)
		if row.text == "" {
			require.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, dir+" "+row.text)
		}
	}
}

func TestALimitThatWasMetIsToldOnce(t *testing.T) {
	c := &cgroup{dir: t.TempDir()}
	assert.Empty(t, c.met())
	memory, pids := filepath.Join(c.dir, "memory.events"), filepath.Join(c.dir, "pids.events")
	require.NoError(t, os.WriteFile(memory, []byte("low 0\noom 3\noom_kill 1\noom_group_kill 0\n"), 0o600))
	require.NoError(t, os.WriteFile(pids, []byte("max 7\n"), 0o600))
	assert.Contains(t, c.met(), "Limits.MemoryMax")
	assert.Empty(t, c.met())
	require.NoError(t, os.WriteFile(pids, []byte("max 8\n"), 0o600))
	assert.Contains(t, c.met(), "Limits.PidsMax")
	assert.Empty(t, (*cgroup)(nil).met())
}

func TestWhatAUsersSystemdGivesAwayIsKnownByItsName(t *testing.T) {
	own := filepath.Join(t.TempDir(), "user@"+strconv.Itoa(os.Geteuid())+".service", "app.slice")
	for path, want := range map[string]bool{"a.service": true, "a.scope": true, "a.slice": false, "a.service/main": false, "..": false} {
		dir := filepath.Join(own, path)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		assert.Equal(t, want, delegated(dir), path)
	}
	assert.False(t, delegated(t.TempDir()))
}

func TestACgroupHoldsProcessesAndGoesWithThem(t *testing.T) {
	parents, err := cgroupParents()
	if err != nil {
		t.Skip("no cgroup v2: ", err)
	}
	c, err := makeCgroup(parents[0], nil)
	if err != nil {
		t.Skip("no cgroup can be made: ", err)
	}
	defer c.close()
	cmd := exec.Command("sleep", "1000")
	require.NoError(t, cmd.Start())
	require.NoError(t, c.add(cmd.Process.Pid))
	procs, err := os.ReadFile(filepath.Join(c.dir, "cgroup.procs"))
	require.NoError(t, err)
	assert.Len(t, strings.Fields(string(procs)), 1)
	require.NoError(t, cmd.Process.Kill())
	c.close()
	assert.NoDirExists(t, c.dir)
	_ = cmd.Wait() // It was killed.

	_, err = makeCgroup(parents[0], map[string]string{"no.such.file": "1"})
	require.ErrorIs(t, err, os.ErrNotExist)
	left, err := filepath.Glob(filepath.Join(parents[0], "limpet-*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// All of a sandbox is in its cgroup from the start.
func TestASandboxIsInItsCgroupFromTheStart(t *testing.T) {
	if _, err := Probe(t.Context()); err != nil {
		t.Skip(err)
	}
	var made *cgroup
	cgroupFor = func(Limits) (*cgroup, error) {
		parents, err := cgroupParents()
		if err == nil {
			made, err = makeCgroup(parents[0], nil)
		}
		return made, err
	}
	t.Cleanup(func() { cgroupFor = newCgroup })
	p := WorkspaceWrite(t.TempDir())
	p.Limits.NoFile = 100
	where, err := New(p)
	require.NoError(t, err)
	conn, err := where.Start(t.Context(), transport.Spec{
		Path: "/bin/sh", Argv: []string{"sh", "-c", "exec sleep 1000"}, Dir: p.FS.Workspace, Env: []string{"PATH=/usr/bin:/bin"},
	})
	if made == nil {
		t.Skip("no cgroup can be made: ", err)
	}
	require.NoError(t, err)
	procs, err := os.ReadFile(filepath.Join(made.dir, "cgroup.procs"))
	require.NoError(t, err)
	pids := strings.Fields(string(procs))
	assert.Contains(t, pids, strconv.Itoa(conn.PID()))
	for _, pid := range pids {
		said, err := os.ReadFile("/proc/" + pid + "/cgroup")
		if err == nil { // Else it has ended.
			assert.Contains(t, string(said), "/"+filepath.Base(made.dir)+"\n")
		}
	}
	require.NoError(t, conn.Close())
	assert.NoDirExists(t, made.dir)
}
