package sandbox_test

import (
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
)

// worldVar marks the processes of a world, wherever they go.
const worldVar = "LIMPET_TEST_WORLD"

// A world is what a probe finds: a home with a project to work in, things beside
// it that are none of its business, and a program with a shell.
//
//	base/home/.ssh/id_rsa   holds the secret
//	base/home/project       Work, the workspace
//	base/outside/secret     Out, holds the secret too
//	base/outside/plain
//	base/run                Run, the program's runtime directory
type world struct {
	*testing.T
	who     role
	control bool // without the sandbox

	base, Work, Out, Home, Run string

	config  config
	program *running
	env     []string // of the scripts

	secret  string
	heard   strings.Builder   // all that the shell said
	guarded []string          // what may not change, besides Out and Home
	before  map[string]string // what was there
	undo    []func()          // when the probe is through

	typed      func() bool // whether something came out of the terminal
	contacts   func() int  // how often somebody came to the socket
	port       string      // that it has, if it has one
	victimDied func() bool
	restless   bool     // something may live on without a program
	eval       *os.File // the session's script, as it was before the probe
	record     *os.File // and its report
}

func newWorld(t *testing.T, who role, control bool) *world {
	t.Helper()
	base, err := os.MkdirTemp("", "limpet-world-")
	require.NoError(t, err)
	base, err = filepath.EvalSymlinks(base)
	require.NoError(t, err)
	home := filepath.Join(base, "home")
	return &world{
		T: t, who: who, control: control,
		base: base, Home: home, Work: filepath.Join(home, "project"), Out: filepath.Join(base, "outside"), Run: filepath.Join(base, "run"),
	}
}

// begin makes what the next probe finds. The directories themselves stay: a
// sandbox that runs has them mounted.
func (w *world) begin(t *testing.T) {
	t.Helper()
	w.T = t
	w.secret = "secret-" + rand.Text()
	w.heard.Reset()
	w.guarded = nil
	w.own(w.base)
	for _, dir := range []string{w.Home, w.Work, w.Out, w.Run} {
		w.dir(dir)
	}
	wipe(w.Work, w.Out)
	w.put(filepath.Join(w.Out, "secret"), w.secret+"\n")
	w.put(filepath.Join(w.Out, "plain"), "plain\n")
	w.put(filepath.Join(w.Home, ".ssh", "id_rsa"), w.secret+"\n")
	w.env = []string{
		helperVar + "=tool", "GORACE=atexit_sleep_ms=0", "TOOL=" + w.who.tool, "WORLD=" + worldVar + "=" + w.mark(),
		"W=" + w.Work, "OUT=" + w.Out,
	}
	if w.control {
		w.set("CONTROL", "x")
	}
}

// finish takes back what the probe's setup did.
func (w *world) finish() {
	undo := w.undo
	w.undo = nil // One that fails must not fail each probe that follows.
	for _, one := range slices.Backward(undo) {
		one()
	}
}

// drop ends the program. It reports whether the program closed its shell and
// ended by itself; the one that does not is killed.
func (w *world) drop() (closed bool) {
	if w.program != nil {
		closed = w.program.end()
		assert.NotContains(w, w.program.said.String(), "DATA RACE")
		w.program = nil
	}
	return closed
}

// remove ends the program and all that it left, and the world.
func (w *world) remove() {
	w.drop()
	if w.restless {
		w.sweep()
	}
	wipe(w.base)
	_ = os.Remove(w.base) // Wipe said what could not be removed.
}

// sweep ends what lives on in this world.
func (w *world) sweep() {
	testenv.Await(w, "the end of a world", func() bool {
		left := w.living()
		for _, st := range left {
			_ = proc.Signal(st.ID(), syscall.SIGKILL) // It may have ended.
		}
		return len(left) == 0
	})
}

// living are the processes that came from this world's scripts.
func (w *world) living() []proc.Stat {
	return slices.DeleteFunc(testenv.Marked(worldVar+"="+w.mark()), func(st proc.Stat) bool {
		return w.program != nil && st.PID == w.program.cmd.Process.Pid
	})
}

// mark is what is unique about the world.
func (w *world) mark() string { return filepath.Base(w.base) }

// wipe empties directories, whatever was done to what is in them. Rm goes deeper
// than os.RemoveAll, which holds a descriptor for each level.
func wipe(dirs ...string) {
	for _, dir := range dirs {
		entries, _ := os.ReadDir(dir) // Not there is as good.
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			if os.RemoveAll(path) != nil {
				_ = exec.Command("chmod", "-R", "u+rwX", path).Run() // Rm says what matters, by what is left.
				_ = exec.Command("rm", "-rf", path).Run()
			}
		}
	}
}

// dir makes a directory of the user's.
func (w *world) dir(path string) {
	w.Helper()
	require.NoError(w, os.MkdirAll(path, 0o700))
	for ; path != w.base && strings.HasPrefix(path, w.base); path = filepath.Dir(path) {
		w.own(path)
	}
}

// put makes a file of the user's.
func (w *world) put(path, text string) {
	w.Helper()
	w.dir(filepath.Dir(path))
	require.NoError(w, os.WriteFile(path, []byte(text), 0o600))
	w.own(path)
}

func (w *world) own(path string) {
	w.Helper()
	require.NoError(w, os.Lchown(path, w.who.owner(), w.who.owner()))
}

// guard adds a path to those that may not change.
func (w *world) guard(paths ...string) { w.guarded = append(w.guarded, paths...) }

// set gives the scripts a variable.
func (w *world) set(name string, value any) { w.env = append(w.env, fmt.Sprintf("%s=%v", name, value)) }

// start starts the program, unless it runs already. What changes from then on
// is harm.
func (w *world) start(p probe) reply {
	w.Helper()
	if w.program != nil {
		w.before = w.look()
		return reply{}
	}
	w.config.Dir, w.config.RuntimeDir = w.Work, w.Run
	policy := sandbox.WorkspaceWrite(w.Work).With([]string{w.who.tool}, nil)
	if p.policy != nil {
		p.policy(w, &policy) // In the control too: it may make what it is about.
	}
	if w.who.as != 0 {
		policy.RunAs = &sandbox.Credential{UID: uint32(w.who.as), GID: uint32(w.who.as)}
	}
	w.before = w.look()
	c := w.config
	if !w.control {
		c.Policy = &policy
	} else if p.naive != nil {
		c.Naive = p.naive(w)
	}
	cmd := w.who.command(w.who.tool)
	cmd.Dir = w.Out
	cmd.Env = append(cmd.Env, "HOME="+w.Home, worldVar+"="+w.mark(), "PLAIN="+w.secret, "PATH="+w.path())
	var err error
	w.program, err = run(cmd, c)
	require.NoError(w, err)
	r, ok := w.program.hear()
	require.True(w, ok, "the program does not start: %s", w.program.said)
	return r
}

func (w *world) path() string { return w.Home + "/bin:" + usualPath }

const usualPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// scriptTimeout is for scripts that something in the sandbox makes wait.
const scriptTimeout = 10 * time.Second

// tell gives the program an order. It is false if the program crashed, or did
// not answer in time.
func (w *world) tell(o order) (reply, bool) {
	w.Helper()
	if w.program == nil {
		return reply{}, false // A script before this one ruined it.
	}
	if o.Env = w.env; !o.Here {
		o.Dir = w.Work
	}
	if o.Timeout == 0 {
		o.Timeout = scriptTimeout
	}
	_ = w.program.orders.Encode(o) // One that crashed does not answer either.
	r, ok := w.program.hear()
	fmt.Fprintf(&w.heard, "%+v\n", r)
	if !ok {
		p := w.program
		p.kill()
		w.drop()
		w.restless = true
		w.Logf("the program crashed or hangs: %.500s", p.said)
	}
	return r, ok
}

// do runs a script, after which the program must be there.
func (w *world) do(script string) reply {
	w.Helper()
	r, _ := w.tell(order{Script: script})
	return r
}

// says runs a script, and reports whether it said that.
func (w *world) says(script, what string) bool {
	w.Helper()
	return strings.Contains(w.do(script).Output, what)
}
