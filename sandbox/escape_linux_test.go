package sandbox_test

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
)

// The escape suite. Each probe tries to get something out of a persistent bash
// that it should not have, and "bites" if it does: once without the sandbox,
// where it must, which shows that it is worth something, and once in the sandbox,
// where it must not. All of it happens as root and as an ordinary user; the half without the
// sandbox, but in ./test all, as one of them: see controls. What cannot be shown on any machine, or by a user, is in the list of exemptions.
//
// A probe that bites in the sandbox is a way out. It stays in its table, and
// fails, until the way is closed.

// A probe is one way to get out.
type probe struct {
	name string

	// script is what is tried. It prints "bites" if it can tell that it has
	// worked. It has bitten as well if the secret is seen, or if anything
	// outside has changed: see [world.harmed].
	script string

	// own says that the probe has a shell for itself, which it may ruin. The
	// others share one. Setup runs before the shell starts if it is its own.
	own    bool
	setup  func(*world)
	policy func(*world, *sandbox.Policy) // what differs from WorkspaceWrite; implies own
	naive  func(*world) []string         // the control is a bwrap with these arguments; implies own

	// try, if not nil, drives the shell, and says whether it was worth it, if
	// that is more than a script.
	try func(*world) bool
}

func (p probe) alone() bool { return p.own || p.policy != nil || p.naive != nil }

// groups are what there is to break.
var groups = []struct {
	name   string
	probes []probe
}{
	{"files", slices.Concat(fileProbes, bindProbes, gitProbes)},
	{"network", networkProbes},
	{"processes", processProbes},
	{"resources", resourceProbes},
	{"session", slices.Concat(sessionProbes, hostProbes)},
	{"lifecycle", lifecycleProbes},
	{"findings", findings},
}

// role is who runs the program.
type role struct {
	name string
	uid  int
	tool string // the test binary, where the user can execute it

	// as, if not 0, is the user of the sandboxes, whose all files are. Without a
	// sandbox, for control, it is the program's that does what it can.
	as int
}

// owner is whose the files are.
func (r *role) owner() int { return cmp.Or(r.as, r.uid) }

func TestNothingEscapesWhenRootRunsIt(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		skip(t, notRoot)
	}
	escape(t, role{name: "root"})
}

// The user is nobody's, 65534, if the tests run as root.
func TestNothingEscapesWhenAUserRunsIt(t *testing.T) {
	t.Parallel()
	const nobody = 65534
	who := role{name: "user", uid: os.Geteuid()}
	if who.uid == 0 {
		who.uid = nobody
	}
	escape(t, who)
}

func TestNothingEscapesWhenRootRunsItAsAnotherUser(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		skip(t, notRoot)
	}
	escape(t, role{name: "root", as: 12345})
}

func escape(t *testing.T, who role) {
	testenv.Slow(t)
	if _, err := sandbox.Probe(t.Context()); err != nil {
		skip(t, noSandbox+": "+err.Error())
	}
	who.install(t)
	t.Cleanup(func() { testenv.AwaitNone(t, who.mark(), "done") })
	var tried, toothless atomic.Int32
	t.Cleanup(func() { // When the groups, which run beside each other, are done.
		assert.LessOrEqual(t, toothless.Load(), tried.Load()/10, "controls that do not bite: the suite proves little here")
	})
	for _, g := range groups {
		if g.name == "session" && who.uid == 0 && !testenv.All() {
			continue // It takes half of the time, and the sessions that root runs are like those that a user runs.
		}
		t.Run(g.name, func(t *testing.T) {
			t.Parallel()
			in := ground{who: who, shared: make(map[bool]*world)}
			t.Cleanup(func() { in.clear(t) })
			for _, p := range g.probes {
				tried.Add(1)
				t.Run(p.name, func(t *testing.T) {
					name := g.name + "/" + p.name
					judge(t, exempt(name, who), &toothless, controls(name, who), func(control bool) (string, bool) {
						w := in.enter(t, p, control)
						defer w.finish()
						return w.attempt(t, p)
					})
				})
			}
		})
	}
}

// controls reports whether a probe's control is run, which shows that the probe is worth something. Outside of ./test all it is where a user runs
// it, and as root where only root may do what is tried.
func controls(name string, who role) bool {
	return who.uid != 0 || testenv.All() || who.as == 0 && exempt(name, role{name: "user"}) != nil
}

// ground is where a group's probes are tried. Most share two worlds, one of
// them the control's.
type ground struct {
	who    role
	shared map[bool]*world
}

func (g ground) enter(t *testing.T, p probe, control bool) *world {
	t.Helper()
	if p.alone() {
		w := newWorld(t, g.who, control)
		t.Cleanup(w.remove)
		return w
	}
	if g.shared[control] == nil {
		g.shared[control] = newWorld(t, g.who, control)
	}
	return g.shared[control]
}

func (g ground) clear(t *testing.T) {
	for _, w := range g.shared {
		w.T = t // The test that made it is over.
		w.remove()
	}
}

// judge runs a probe's halves, or without controls the one in the sandbox. It counts it if its control does not bite on this
// machine, for no reason that is known: the kernel or a container around it is
// stricter. The probe then says little, and ./test prints it.
func judge(t *testing.T, e *exemption, toothless *atomic.Int32, controls bool, bites func(control bool) (how string, bites bool)) {
	t.Helper()
	if e != nil && e.never {
		skip(t, e.why)
	}
	var without string
	var bit bool
	if controls {
		without, bit = bites(true)
	}
	if bit && e != nil && !e.varies {
		require.FailNow(t, "it is exempt, but its control bites", without)
	}
	if how, bit := bites(false); bit {
		require.FailNow(t, "it bites in the sandbox", how)
	}
	switch {
	case bit || !controls:
	case e != nil:
		t.Log("it bites nowhere: ", e.why)
	default:
		toothless.Add(1)
		t.Log("the control: ", without)
		skip(t, noBite)
	}
}

// attempt lets the probe try, and says how that went.
func (w *world) attempt(t *testing.T, p probe) (how string, bites bool) {
	t.Helper()
	w.begin(t)
	if p.setup != nil {
		p.setup(w)
	}
	if r := w.start(p); r.Err != "" {
		w.drop()
		return "the shell does not start: " + r.Err, w.harmed() != ""
	}
	if !w.control { // Where nothing runs, nothing bites.
		r := w.do("echo alive")
		require.True(t, r.Output == "alive\n" && r.Restart == "", "the shell is of no use: %+v", r)
	}
	if p.try != nil {
		bites = p.try(w)
	} else {
		bites = w.says(p.script, "bites")
	}
	how = w.heard.String()
	if harm := w.harmed(); harm != "" {
		how, bites = harm+"\n"+how, true
	}
	const most = 2000
	return strings.ToValidUTF8(how[:min(len(how), most)], "?"), bites
}

// install puts the test binary where the user can execute it.
func (r *role) install(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "limpet-tool-")
	require.NoError(t, err)
	t.Cleanup(func() { wipe(dir); _ = os.Remove(dir) }) // Wipe has emptied it.
	require.NoError(t, os.Chown(dir, r.owner(), r.owner()))
	exe, err := os.Executable()
	require.NoError(t, err)
	b, err := os.ReadFile(exe)
	require.NoError(t, err)
	r.tool = filepath.Join(dir, "tool")
	// No child of another test may have it open for writing when it is run (ETXTBSY, execve(2)).
	syscall.ForkLock.RLock()
	err = os.WriteFile(r.tool, b, 0o755)
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
}

// mark is an entry in the environment of all that is run for the suite.
func (r *role) mark() string { return "LIMPET_TEST_ROLE=" + filepath.Base(filepath.Dir(r.tool)) }

// command is one that the user runs.
func (r *role) command(path string, args ...string) *exec.Cmd {
	cmd := exec.Command(path, args...)
	cmd.Env = []string{"LANG=C.UTF-8", "GORACE=atexit_sleep_ms=0", r.mark()}
	if r.uid != os.Geteuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(r.uid), Gid: uint32(r.uid)}}
	}
	return cmd
}
