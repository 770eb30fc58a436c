package shell_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/shell"
)

// The variables that say how long the stress takes, as a duration, and with which seed
// it begins, to see a failure again. Without the first the seed is always the same, so that
// a change is blamed for what it has done alone.
const (
	stressVar     = "LIMPET_STRESS"
	stressSeedVar = "LIMPET_STRESS_SEED"
)

const (
	stressDefault = 3 * time.Second
	stressAll     = time.Minute // in ./test all
	stepsAtMost   = 20          // in a sequence
	shrinkTime    = time.Minute // for a failed one
)

// TestStressOfRandomHostileSequences runs sequences of hostile commands, each in a
// session of its own, stopped at random. After each of them the session must work.
func TestStressOfRandomHostileSequences(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	limit, seed := stressDefault, uint64(1)
	if testenv.All() {
		limit = stressAll
	}
	var err error
	if text := os.Getenv(stressVar); text != "" {
		limit, err = time.ParseDuration(text)
		require.NoError(t, err, stressVar)
		seed = uint64(time.Now().UnixNano())
	}
	if text := os.Getenv(stressSeedVar); text != "" {
		seed, err = strconv.ParseUint(text, 10, 64)
		require.NoError(t, err, stressSeedVar)
	}
	t.Logf("%s=%d", stressSeedVar, seed)
	_ = play(t, nil) // What the program starts once, for all sessions, is no leak.
	count := 0
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); seed++ {
		steps := sequence(rand.New(rand.NewPCG(seed, 0)))
		count += len(steps)
		if broken := play(t, steps); broken != nil {
			t.Fatalf("%s=%d: %v", stressSeedVar, seed, shrink(t, steps, broken))
		}
	}
	t.Logf("%d steps", count)
}

// TestEachHostileStepAlone runs one of each kind in a fresh session, and several in ./test all.
func TestEachHostileStepAlone(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	each := testenv.Repeats(0, 1, 8)
	for i, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(i), 4))
			for range each {
				s := newStep(k, r)
				if !k.endless {
					s.after, s.byCaller = 0, false
				}
				if broken := playApart(t, []step{s}); broken != nil {
					t.Errorf("%s\n%v", s, broken.err)
				}
			}
		})
	}
}

// sequence makes steps. Half of all sequences have only steps that leave nothing, so
// that their statuses can be compared to the end.
func sequence(r *rand.Rand) []step {
	from := kinds
	if r.IntN(2) == 0 {
		from = nil
		for _, k := range kinds {
			if !k.leaves {
				from = append(from, k)
			}
		}
	}
	var steps []step
	for range 1 + r.IntN(stepsAtMost) {
		steps = append(steps, newStep(pick(r, from), r))
	}
	return steps
}

// breach says at which step of a sequence a promise was broken. An index behind the
// last one is the end of the sequence.
type breach struct {
	at  int
	err error
}

// play runs a sequence, and looks for what it leaked.
func play(t *testing.T, steps []step) *breach {
	t.Helper()
	goroutines, fds := runtime.NumGoroutine(), testenv.FDs(t)
	if broken := playApart(t, steps); broken != nil {
		return broken
	}
	if len(steps) == 0 {
		return nil
	}
	if err := settle("goroutines after Close", goroutines, runtime.NumGoroutine); err != nil {
		return &breach{len(steps), fmt.Errorf("%w\n%s", err, stacks())}
	}
	if err := settle("descriptors after Close", fds, func() int { return testenv.FDs(t) }); err != nil {
		return &breach{len(steps), err}
	}
	return nil
}

// session is one under stress.
type session struct {
	t     *testing.T
	sh    *shell.PersistentShell
	work  string
	files string
	mark  string // its processes' entry in the environment
	fresh bool   // nothing has been left behind yet
}

// playApart runs a sequence beside others, for which goroutines and descriptors cannot
// be counted.
func playApart(t *testing.T, steps []step) *breach {
	t.Helper()
	work, err := os.MkdirTemp("", "stress-work-")
	require.NoError(t, err)
	defer os.RemoveAll(work) // Best effort: a killed job may still write.
	files, err := os.MkdirTemp("", "stress-files-")
	require.NoError(t, err)
	defer os.RemoveAll(files) // As above.
	sh, err := shell.Start(testenv.Context(t), &shell.Options{
		Dir: work, RuntimeDir: files, Env: stressEnv(work),
		Ladder: interrupt.Ladder{{Signal: syscall.SIGINT, Grace: 100 * time.Millisecond}, {Signal: syscall.SIGTERM, Grace: 100 * time.Millisecond}, {Signal: syscall.SIGKILL, Grace: time.Second}},
	})
	require.NoError(t, err)
	s := &session{t: t, sh: sh, work: work, files: files, fresh: true}
	broken := s.play(steps)
	closed := make(chan error, 1)
	go func() { closed <- sh.Close() }()
	select {
	case err = <-closed:
	case <-time.After(testenv.Patience):
		err = errors.New("the session does not close")
	}
	if err == nil && broken == nil {
		err = settle("processes after Close", 0, s.processes)
	}
	if err != nil && broken == nil {
		broken = &breach{len(steps), err}
	}
	return broken
}

func stressEnv(work string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + work, "LC_ALL=C"}
}

func (s *session) play(steps []step) *breach {
	res, err := s.sh.Run(testenv.Context(s.t), "echo $LIMPET_SESSION")
	if err != nil {
		return &breach{0, err}
	}
	s.mark = "LIMPET_SESSION=" + strings.TrimSpace(res.Stdout.String())
	idle := runtime.NumGoroutine()
	fds := testenv.FDs(s.t)
	for i, step := range steps {
		if err := s.do(step); err != nil {
			return &breach{i, err}
		}
		if err := s.ok(); err != nil {
			return &breach{i, err}
		}
	}
	if err := s.reset(); err != nil {
		return &breach{len(steps), err}
	}
	if s.t.Name() != "TestStressOfRandomHostileSequences" {
		return nil // Others run beside it.
	}
	if err := settle("goroutines after Reset", idle, runtime.NumGoroutine); err != nil {
		return &breach{len(steps), fmt.Errorf("%w\n%s", err, stacks())}
	}
	if err := settle("descriptors after Reset", fds, func() int { return testenv.FDs(s.t) }); err != nil {
		return &breach{len(steps), err}
	}
	return nil
}

// do runs a step, and compares its status where there is one to compare with.
func (s *session) do(st step) error {
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
	defer cancel()
	req := command.Request{Script: s.place(st.script), Timeout: st.after}
	stopped := ctx
	if st.byCaller {
		req.Timeout = 0
		var stop context.CancelFunc
		stopped, stop = context.WithTimeout(ctx, st.after)
		defer stop()
	}
	res, err := s.sh.Do(stopped, req)
	if ctx.Err() != nil {
		return fmt.Errorf("the step does not end: %w", err)
	}
	compared := s.fresh && st.kind.sameStatus && st.after == 0
	s.fresh = s.fresh && !st.kind.leaves
	if !compared {
		return nil // Whether it was stopped, and how it ended, is chance.
	}
	if err != nil {
		return fmt.Errorf("the step has no status: %w", err)
	}
	if want := bashStatus(s.t, st.script); res.ExitCode != want {
		return fmt.Errorf("status %d, and %d from bash -c; stderr %q", res.ExitCode, want, res.Stderr.String())
	}
	return nil
}

// place puts the session's directories into a script.
func (s *session) place(script string) string {
	return strings.NewReplacer("@WORK@", s.work, "@FILES@", s.files).Replace(script)
}

// ok checks that the session works. That bash had to be replaced is all right.
func (s *session) ok() error {
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
	defer cancel()
	res, err := s.sh.Run(ctx, "echo ok")
	if err != nil || res.ExitCode != 0 || res.Stdout.String() != "ok\n" {
		return fmt.Errorf("echo ok: status %d, stdout %q, stderr %q, error %v", res.ExitCode, res.Stdout.String(), res.Stderr.String(), err)
	}
	return nil
}

// reset takes the session back to its beginning, and checks that nothing is left.
func (s *session) reset() error {
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
	defer cancel()
	if err := s.sh.Reset(ctx); err != nil {
		return fmt.Errorf("reset: %w", err)
	}
	if err := s.ok(); err != nil {
		return fmt.Errorf("after reset: %w", err)
	}
	s.fresh = true
	for _, script := range []string{"(exit 7)", "set -e; false", "exit 9"} {
		if err := s.do(step{kind: &kind{sameStatus: true}, script: script}); err != nil {
			return fmt.Errorf("%q after reset: %w", script, err)
		}
	}
	if err := s.ok(); err != nil {
		return fmt.Errorf("after reset: %w", err)
	}
	return settle("processes after Reset", 1, s.processes)
}

// processes counts those that carry the session's mark.
func (s *session) processes() int { return len(testenv.Marked(s.mark)) }

// settle waits until there are no more things than there should be.
func settle(what string, most int, count func() int) error {
	n := count()
	for deadline := time.Now().Add(testenv.Patience); n > most; n = count() {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d %s, %d at most", n, what, most)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// statuses keeps those that bash -c had.
var statuses sync.Map

// bashStatus is the status that bash -c has for a script.
func bashStatus(t *testing.T, script string) int {
	t.Helper()
	if known, ok := statuses.Load(script); ok {
		return known.(int)
	}
	work := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", strings.ReplaceAll(script, "@WORK@", work))
	cmd.Dir, cmd.Env = work, stressEnv(work)
	err := cmd.Run()
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		require.NoError(t, err, script)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	code := status.ExitStatus()
	if status.Signaled() {
		code = 128 + int(status.Signal())
	}
	statuses.Store(script, code)
	return code
}

// shrink takes out of a sequence what its failure does not need, the latest steps
// first, and reports the rest. A failure that does not come again is reported whole.
func shrink(t *testing.T, steps []step, broken *breach) error {
	t.Helper()
	steps = steps[:min(broken.at+1, len(steps))]
	deadline := time.Now().Add(shrinkTime)
	for i := len(steps) - 1; i >= 0 && time.Now().Before(deadline); i-- {
		if i == broken.at {
			continue // It is the failing one.
		}
		fewer := append(append([]step{}, steps[:i]...), steps[i+1:]...)
		if again := play(t, fewer); again != nil {
			broken, steps = again, fewer[:min(again.at+1, len(fewer))]
			i = min(i, len(steps))
		}
	}
	var report strings.Builder
	for i, s := range steps {
		mark := "  "
		if i == broken.at {
			mark = "> "
		}
		fmt.Fprintf(&report, "\n%s%s", mark, s)
	}
	return fmt.Errorf("%w, after these steps:%s", broken.err, report.String())
}

// TestHostileKindsAreSound checks the table of the stress: a kind that is misnamed, or
// compares what cannot be compared, would switch a check off.
func TestHostileKindsAreSound(t *testing.T) {
	seen := make(map[string]bool)
	for _, k := range kinds {
		require.False(t, seen[k.name], "two kinds are named %q", k.name)
		seen[k.name] = true
		require.False(t, k.sameStatus && (k.endless || k.leaves), "%s: its status cannot be compared", k.name)
		r := rand.New(rand.NewPCG(1, 1))
		for range 20 {
			script := k.make(r)
			require.NotContains(t, script, "%!", k.name)
		}
	}
}
