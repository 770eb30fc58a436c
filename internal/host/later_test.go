package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/connect"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/session/sessiontest"
	"github.com/limpet-sh/limpet/shell"
)

// tapped is a machine of this one whose connections go by a tap, and its sessions as they are known there.
func tapped(t *testing.T) (*testenv.Tap, *keeper.Registry) {
	t.Helper()
	home := testenv.TempDir(t)
	keep := filepath.Join(home, ".local/state/limpet/keep")
	endSessions(t, keep)
	there, err := keeper.Open(keep)
	require.NoError(t, err)
	there.Version, there.Execute = keeper.Version(), keeper.Itself
	self, err := os.Executable()
	require.NoError(t, err)
	return testenv.NewTap(t, func() *exec.Cmd {
		return &exec.Cmd{Path: self, Args: []string{"limpet-connect", "-"}, Env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GORACE=" + race}}
	}), there
}

// namesOf are those of the sessions that are kept there.
func namesOf(t *testing.T, there *keeper.Registry) (names []string) {
	t.Helper()
	list, err := there.List(testenv.Context(t), false)
	require.NoError(t, err)
	for _, one := range list {
		names = append(names, one.Record.Name)
	}
	return names
}

// came is what came of a command.
type came struct {
	res command.Result
	err error
}

// laterRuns has a command run that writes to a file once it does, and returns when it has.
func laterRuns(t *testing.T, ctx context.Context, k *keeper.Kept, script string) (ran string, end <-chan came) {
	t.Helper()
	ran = filepath.Join(testenv.TempDir(t), "ran")
	called := make(chan came, 1)
	go func() {
		res, err := k.Do(ctx, command.Request{Script: "echo ran >>" + ran + "; " + script})
		called <- came{res, err}
	}()
	testenv.AwaitFile(t, ran)
	return ran, called
}

// once checks that a command has run once.
func once(t *testing.T, ran string) {
	t.Helper()
	b, err := os.ReadFile(ran)
	require.NoError(t, err)
	assert.Equal(t, "ran\n", string(b))
}

// The command has run, and the session that is for it alone has ended, before anything of an answer was let through: nobody waits for a second
// one.
func TestAProgramThatRunsACommandWaitsForOneAnswer(t *testing.T) {
	testenv.Slow(t)
	for _, share := range []bool{false, true} {
		t.Run(fmt.Sprint("shared ", share), func(t *testing.T) {
			tap, there := tapped(t)
			sharing(t)
			ctx := testenv.Context(t)
			h := dial(t, tap.Target(), &host.Options{Share: share})
			_, err := h.List(ctx, false)
			require.NoError(t, err)
			for _, how := range []host.Later{{}, {}, {Temporary: true, Only: true}, {Temporary: true, Only: true}} {
				if share {
					h = dial(t, tap.Target(), &host.Options{Share: true})
				}
				name, before := "s", tap.Requests()
				if how.Temporary {
					name = host.TemporaryName("run")
				}
				made := make(chan bool, 2)
				how.Opened = func(_ context.Context, k *keeper.Kept) { made <- k.Made }
				tap.Hold(testenv.TapAnswers)
				ran, end := laterRuns(t, ctx, h.Later(ctx, name, &keeper.Spec{}, how), "x=${x}1; echo $x; sleep 1000 & echo $!")
				if how.Temporary {
					testenv.Await(t, "the session to end", func() bool { return len(namesOf(t, there)) == 1 })
				}
				assert.Empty(t, end)
				tap.Release(testenv.TapAnswers)
				got := <-end
				require.NoError(t, got.err)
				out := strings.Fields(got.res.Stdout.String())
				require.Len(t, out, 2)
				pid, err := strconv.Atoi(out[1])
				require.NoError(t, err)
				assert.Equal(t, !how.Temporary, testenv.Alive(pid), "what runs on ends with its session, before its caller is answered")
				assert.Equal(t, how.Temporary || out[0] == "1", <-made)
				assert.Empty(t, made, "it is told once")
				once(t, ran)
				if share {
					require.NoError(t, h.Disconnect())
				}
				assert.Equal(t, before+1, tap.Requests(), "%+v", how)
			}
			assert.Equal(t, []string{"s"}, namesOf(t, there))
		})
	}
}

// One that is older is asked for the session first, and for the end of one that is for a command alone.
func TestALimpetThatDoesNotKnowThatIsAskedAsBefore(t *testing.T) {
	tap, there := tapped(t)
	tap.Without(connect.CanRun)
	ctx := testenv.Context(t)
	h := dial(t, tap.Target(), nil)
	for name, how := range map[string]host.Later{"s": {}, host.TemporaryName("run"): {Temporary: true, Only: true}} {
		before, opened := tap.Requests(), 0
		how.Opened = func(context.Context, *keeper.Kept) { opened++ }
		ran, end := laterRuns(t, ctx, h.Later(ctx, name, &keeper.Spec{}, how), "echo out")
		got := <-end
		require.NoError(t, got.err)
		assert.Equal(t, "out\n", got.res.Stdout.String())
		assert.Equal(t, 1, opened)
		assert.Equal(t, before+2, tap.Requests())
		once(t, ran)
	}
	before := tap.Requests()
	require.NoError(t, h.Disconnect())
	assert.Equal(t, before+1, tap.Requests())
	assert.Equal(t, []string{"s"}, namesOf(t, there))
}

func TestASessionThatCannotBeOpenedRunsNothing(t *testing.T) {
	testenv.Slow(t)
	m := machineOf(t, "sh")
	ctx := testenv.Context(t)
	h := dial(t, m.target, nil)
	never := host.Later{Opened: func(context.Context, *keeper.Kept) { t.Error("it is not open") }}
	_, err := h.Later(ctx, "s", nil, never).Run(ctx, "echo >"+m.home+"/ran")
	require.ErrorIs(t, err, session.ErrNotFound)
	require.NotErrorIs(t, err, wire.ErrMayHaveRun)
	_, err = h.Later(ctx, "a b", &keeper.Spec{}, never).Run(ctx, "echo >"+m.home+"/ran")
	require.ErrorIs(t, err, session.ErrName)
	assert.NoFileExists(t, m.home+"/ran")

	// A request that the session refuses is no failure to open it.
	opened := 0
	told := host.Later{Opened: func(context.Context, *keeper.Kept) { opened++ }}
	k := h.Later(ctx, "s", &keeper.Spec{}, told)
	_, err = k.Do(ctx, command.Request{ID: "id", Script: "echo"})
	require.NoError(t, err)
	_, err = h.Later(ctx, "s", nil, told).Do(ctx, command.Request{ID: "id", Script: "echo another"})
	require.ErrorIs(t, err, wire.ErrOtherCommand)
	assert.Equal(t, 2, opened)

	// Somebody else has closed it, and has made one of that name.
	other := dial(t, m.target, nil)
	theirs, err := other.Session(ctx, "s", nil)
	require.NoError(t, err)
	require.NoError(t, other.Close(ctx, theirs))
	_, err = other.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	_, err = k.Run(ctx, "echo >"+m.home+"/ran")
	require.ErrorIs(t, err, wire.ErrGone)
	assert.NoFileExists(t, m.home+"/ran")
	_, err = h.Later(ctx, "s", nil, told).Run(ctx, "echo >"+m.home+"/ran")
	require.NoError(t, err, "who asks by the name means the one that has it")
	assert.FileExists(t, m.home+"/ran")
}

// The connection breaks when the command was asked for, and before anything of the answer has come.
func TestACommandThatOpensItsSessionRunsOnceWhateverBreaks(t *testing.T) {
	testenv.Slow(t)
	for name, row := range map[string]struct {
		how    host.Later
		name   string // of the session
		script string
		broken func(t *testing.T, there *keeper.Registry, name string) // before it is cut
		lost   bool                                                    // what became of it is not known
	}{
		"the session is there":                    {name: "s", script: "echo out"},
		"the command runs on":                     {how: host.Later{Temporary: true, Only: true}, script: "until [[ -e go ]]; do sleep 0.01; done; echo out"},
		"the session has ended with the command":  {how: host.Later{Temporary: true, Only: true}, script: "echo out", broken: awaitGone, lost: true},
		"the session has ended":                   {name: "s", script: "echo out", broken: killed, lost: true},
		"another session has the name":            {name: "s", script: "echo out", broken: replaced, lost: true},
		"the name is that of a part of the paths": {name: "commands", script: "echo out", broken: killed, lost: true},
	} {
		t.Run(name, func(t *testing.T) {
			tap, there := tapped(t)
			ctx := testenv.Context(t)
			h := dial(t, tap.Target(), nil)
			_, err := h.List(ctx, false)
			require.NoError(t, err)
			if row.how.Temporary {
				row.name = host.TemporaryName("run")
			}
			dir := testenv.TempDir(t)
			tap.Hold(testenv.TapAnswers)
			ran, end := laterRuns(t, ctx, h.Later(ctx, row.name, &keeper.Spec{Dir: dir}, row.how), row.script)
			if row.broken != nil {
				row.broken(t, there, row.name)
			}
			before := namesOf(t, there)
			tap.Cut()
			tap.Release(testenv.TapAnswers)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
			got := <-end
			if row.lost {
				require.ErrorIs(t, got.err, wire.ErrMayHaveRun)
				assert.Equal(t, 1, strings.Count(got.err.Error(), "may have run"), got.err.Error())
			} else {
				require.NoError(t, got.err)
				assert.Equal(t, "out\n", got.res.Stdout.String())
			}
			once(t, ran)
			assert.Equal(t, before, namesOf(t, there), "none is made anew")
			require.NoError(t, h.Disconnect())
			if row.how.Temporary {
				assert.Empty(t, namesOf(t, there))
			}
		})
	}
}

func awaitGone(t *testing.T, there *keeper.Registry, _ string) {
	testenv.Await(t, "the session to end", func() bool { return len(namesOf(t, there)) == 0 })
}

func killed(t *testing.T, there *keeper.Registry, name string) {
	require.NoError(t, there.Kill(testenv.Context(t), name))
}

func replaced(t *testing.T, there *keeper.Registry, name string) {
	killed(t, there, name)
	k, err := there.Session(testenv.Context(t), name, &keeper.Spec{})
	require.NoError(t, err)
	k.Disconnect()
}

// A command that kills its keeper, before that has answered, is not run once more in a session that is made anew.
func TestACommandThatKillsItsKeeperIsNotRunAgain(t *testing.T) {
	testenv.Slow(t)
	tap, there := tapped(t)
	ctx := testenv.Context(t)
	h := dial(t, tap.Target(), nil)
	s, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	opened := 0
	k := h.Later(ctx, "s", &keeper.Spec{}, host.Later{Opened: func(context.Context, *keeper.Kept) { opened++ }})
	ran, end := laterRuns(t, ctx, k, fmt.Sprintf("kill -9 %d; sleep 1000", s.Record.PID))
	require.ErrorIs(t, (<-end).err, wire.ErrMayHaveRun)
	assert.Equal(t, 1, opened)
	once(t, ran)
	assert.Empty(t, namesOf(t, there))
}

// Whoever upgrades the session is somebody else, and the connection knows the keeper of before.
func TestASessionThatWasUpgradedIsOpenedByACommand(t *testing.T) {
	testenv.Slow(t)
	m := machineOf(t, "sh")
	ctx := testenv.Context(t)
	h := dial(t, m.target, nil)
	run := func(script string) string {
		res, err := h.Later(ctx, "s", &keeper.Spec{}, host.Later{}).Run(ctx, script)
		require.NoError(t, err)
		return res.Stdout.String()
	}
	run("x=1")
	for range 3 {
		other := dial(t, m.target, nil)
		s, err := other.Session(ctx, "s", nil)
		require.NoError(t, err)
		_, err = other.Upgrade(ctx, s, keeper.Upgrade{Force: true})
		require.NoError(t, err)
		assert.Equal(t, "1\n", run("echo $x"))
	}
}

// A request that gets lost on its way may have got there, for all that is known here. It is not sent again to a session that does not know the
// command, which may be another one than the request was for, also where ids are remembered.
func TestARequestThatIsLostOnItsWay(t *testing.T) {
	testenv.Slow(t)
	tap, there := tapped(t)
	ctx := testenv.Context(t)
	h := dial(t, tap.Target(), nil)
	_, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	ran := filepath.Join(testenv.TempDir(t), "ran")
	for _, id := range []string{"", "an-id"} {
		before := tap.Requests()
		tap.Hold(testenv.TapRequests)
		called := make(chan error, 1)
		go func() {
			_, err := h.Later(ctx, "s", &keeper.Spec{}, host.Later{}).Do(ctx, command.Request{ID: id, Script: "echo ran >>" + ran})
			called <- err
		}()
		testenv.Await(t, "the request", func() bool { return tap.Requests() > before })
		tap.Cut()
		tap.Release(testenv.TapRequests)
		require.ErrorIs(t, <-called, wire.ErrMayHaveRun)
		assert.NoFileExists(t, ran)
	}
	assert.Equal(t, []string{"s"}, namesOf(t, there))
}

// A caller that gives up before the answer comes leaves no session that was made for its command alone. If limpet cannot know that, the error says so.
func TestACommandThatIsGivenUpLeavesNoSession(t *testing.T) {
	testenv.Slow(t)
	for _, answers := range []bool{true, false} {
		t.Run(fmt.Sprint("answers then ", answers), func(t *testing.T) {
			tap, there := tapped(t)
			h := dial(t, tap.Target(), nil)
			_, err := h.List(testenv.Context(t), false)
			require.NoError(t, err)
			tap.Hold(testenv.TapAnswers)
			ctx, cancel := context.WithCancelCause(testenv.Context(t))
			defer cancel(nil)
			name, why := host.TemporaryName("run"), errors.New("given up")
			_, end := laterRuns(t, ctx, h.Later(ctx, name, &keeper.Spec{}, host.Later{Temporary: true, Only: true}), "sleep 1000")
			require.Equal(t, []string{name}, namesOf(t, there))
			cancel(why)
			got := <-end
			require.ErrorIs(t, got.err, why)
			require.ErrorIs(t, got.err, wire.ErrMayHaveRun, "it was sent")
			if answers {
				tap.Release(testenv.TapAnswers)
				require.NoError(t, h.Disconnect())
				assert.Empty(t, namesOf(t, there))
				return
			}
			assert.ErrorContains(t, h.Disconnect(), fmt.Sprintf("session %q may be there, and stay", name))
		})
	}
}

func TestSessionsThatAreOpenedLaterKeepThePromises(t *testing.T) {
	testenv.Slow(t)
	sessiontest.RunCore(t, func(t *testing.T) session.Handle {
		return smallHost(t, machineOf(t, "sh")).Later(testenv.Context(t), "s", &keeper.Spec{Dir: testenv.TempDir(t)}, host.Later{})
	})
}

// So it is over every way: the session is made by the first, found by the second, and a command that is stopped before it has printed is
// stopped over there.
func TestACommandOpensItsSession(t *testing.T) {
	testenv.Slow(t)
	everyWay(t, func(t *testing.T, m machine) {
		sharing(t)
		ctx := testenv.Context(t)
		for _, share := range []bool{false, true} {
			h := dial(t, m.target, &host.Options{Share: share})
			for i := range 2 {
				k := h.Later(ctx, fmt.Sprint("s-", share), &keeper.Spec{}, host.Later{})
				res, err := k.Do(ctx, command.Request{Script: "read -r line; x=${x}1; echo $line $x; exit 3", Stdin: strings.NewReader("read\n")})
				require.NoError(t, err)
				assert.Equal(t, 3, res.ExitCode)
				assert.Equal(t, "read "+strings.Repeat("1", i+1)+"\n", res.Stdout.String())
			}
			short, cancel := context.WithCancel(ctx)
			_, end := laterRuns(t, short, h.Later(ctx, host.TemporaryName("run"), &keeper.Spec{}, host.Later{Temporary: true, Only: true}), "sleep 1000")
			cancel()
			require.ErrorIs(t, (<-end).err, context.Canceled)
			list, err := h.List(ctx, false)
			require.NoError(t, err)
			assert.Empty(t, list[map[bool]int{false: 1, true: 2}[share]:], "it has ended with its command")
			require.NoError(t, h.Disconnect())
		}
	})
}

// A command that waits because somebody upgrades its session has opened that all the same: its caller can ask what runs there, and stop it.
func TestACommandThatWaitsForAnUpgradeHasOpenedItsSession(t *testing.T) {
	testenv.Slow(t)
	m := machineOf(t, "sh")
	ctx := testenv.Context(t)
	h, other := dial(t, m.target, nil), dial(t, m.target, nil)
	user, err := other.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	_, called := laterRuns(t, ctx, user, "sleep 1000")
	upgraded := make(chan error, 1)
	go func() {
		_, err := other.Upgrade(ctx, user, keeper.Upgrade{Force: true})
		upgraded <- err
	}()
	_, err = user.Do(ctx, command.Request{Script: "true", TurnTimeout: 100 * time.Millisecond}) // Time for it to get there.
	require.ErrorIs(t, err, shell.ErrBusy)

	short, cancel := context.WithCancel(ctx)
	defer cancel()
	opened, end := make(chan struct{}), make(chan error, 1)
	ran := filepath.Join(testenv.TempDir(t), "ran")
	k := h.Later(ctx, "s", &keeper.Spec{}, host.Later{Opened: func(context.Context, *keeper.Kept) { close(opened) }})
	go func() {
		_, err := k.Run(short, "echo >"+ran)
		end <- err
	}()
	<-opened
	info, err := k.Info(ctx)
	require.NoError(t, err)
	assert.Contains(t, info.Running, "sleep 1000")
	cancel()
	require.ErrorIs(t, <-end, context.Canceled)
	_, err = user.Interrupt(ctx)
	require.NoError(t, err)
	<-called // What it says is another test's.
	require.NoError(t, <-upgraded)
	res, err := k.Run(ctx, "echo out")
	require.NoError(t, err)
	assert.Equal(t, "out\n", res.Stdout.String())
	assert.NoFileExists(t, ran)
}
