package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// asks returns where the sessions of a machine ask.
func (m machine) asks(t *testing.T) string {
	t.Helper()
	r, err := keeper.Open(filepath.Join(m.home, ".local/state/limpet/keep"))
	require.NoError(t, err)
	return r.Questions()
}

// one returns the only question of a desk, as soon as it is asked.
func one(t *testing.T, desk questions.Desk) questions.Open {
	t.Helper()
	require.NoError(t, desk.Await(testenv.Context(t)))
	open, err := desk.List(testenv.Context(t))
	require.NoError(t, err)
	require.Len(t, open, 1)
	return open[0]
}

func TestQuestionsOverThereAreAnsweredFromHere(t *testing.T) {
	testenv.NeedProc(t)
	m := machineOf(t, "sh")
	desk, err := dial(t, m.target, nil).Questions()
	require.NoError(t, err)
	open, err := desk.List(testenv.Context(t))
	require.NoError(t, err)
	assert.Empty(t, open)

	type outcome struct {
		reply approval.Reply
		err   error
	}
	ended := make(chan outcome)
	ask := func(ctx context.Context) {
		reply, err := questions.Ask(ctx, m.asks(t), questions.Open{From: "a test", Session: "s", Question: approval.Question{Script: "rm x", Dir: "/tmp"}})
		ended <- outcome{reply, err}
	}
	go ask(testenv.Context(t))
	q := one(t, desk)
	assert.Equal(t, "rm x", q.Question.Script)
	require.NoError(t, desk.Answer(testenv.Context(t), q.ID, approval.Reply{Reason: "not that"}))
	assert.Equal(t, outcome{reply: approval.Reply{Reason: "not that"}}, <-ended)
	for _, id := range []string{q.ID, "../x", "a/b", ""} {
		require.Error(t, desk.Answer(testenv.Context(t), id, approval.Reply{Answer: approval.Once}), "%q", id)
	}
	require.ErrorIs(t, desk.Answer(testenv.Context(t), q.ID, approval.Reply{}), questions.ErrNotOpen)
	require.NoError(t, desk.Over(testenv.Context(t), q.ID))

	// Whoever asks gives up: that is seen here.
	asking, giveUp := context.WithCancelCause(testenv.Context(t))
	gaveUp := errors.New("given up")
	go ask(asking)
	q = one(t, desk)
	over := make(chan error)
	go func() { over <- desk.Over(testenv.Context(t), q.ID) }()
	giveUp(gaveUp)
	require.NoError(t, <-over)
	require.ErrorIs(t, (<-ended).err, gaveUp)

	// A password.
	secret := make(chan string)
	go func() {
		b, err := questions.AskPassword(testenv.Context(t), m.asks(t), questions.Open{From: "a test", Password: &command.PasswordQuestion{Prompt: "Password:"}})
		assert.NoError(t, err)
		secret <- string(b)
	}()
	q = one(t, desk)
	require.NotNil(t, q.Password)
	require.NoError(t, desk.AnswerPassword(testenv.Context(t), q.ID, []byte("hunter2"), true))
	assert.Equal(t, "hunter2", <-secret)

	// Nobody asks: a wait ends with its context.
	waiting, stop := context.WithCancelCause(testenv.Context(t))
	go func() { over <- desk.Await(waiting) }()
	stop(gaveUp)
	require.ErrorIs(t, <-over, gaveUp)
}

// Who may answer is decided over there, too: what runs in a session may not, though it reached this machine by itself.
func TestWhatRunsInASessionCannotAnswerByWayOfAConnection(t *testing.T) {
	testenv.NeedProc(t)
	m := machineOf(t, environ.SessionVar+"=x", "sh")
	desk, err := dial(t, m.target, nil).Questions()
	require.NoError(t, err)
	asking, giveUp := context.WithCancel(testenv.Context(t))
	ended := make(chan error)
	go func() {
		_, err := questions.Ask(asking, m.asks(t), questions.Open{From: "a test", Question: approval.Question{Script: "rm x"}})
		ended <- err
	}()
	q := one(t, desk)
	require.ErrorIs(t, desk.Answer(testenv.Context(t), q.ID, approval.Reply{Answer: approval.Once}), questions.ErrWithin)
	giveUp()
	require.ErrorIs(t, <-ended, context.Canceled, "nobody has answered")
}

// answerVar has the test binary answer the only question of a target by the connection that is shared, and print what became of it.
const answerVar = "LIMPET_TEST_ANSWER_ON"

func init() {
	target := os.Getenv(answerVar)
	if target == "" {
		return
	}
	err := func() error {
		ctx := context.Background()
		to, err := host.ParseTarget(target)
		if err != nil {
			return err
		}
		h, err := host.Dial(ctx, to, &host.Options{Share: true})
		if err != nil {
			return err
		}
		defer h.Disconnect() // Nothing temporary was made.
		desk, err := h.Questions()
		if err != nil {
			return err
		}
		open, err := desk.List(ctx)
		if err != nil || len(open) != 1 {
			return fmt.Errorf("%d questions: %w", len(open), err)
		}
		return desk.Answer(ctx, open[0].ID, approval.Reply{Answer: approval.Once})
	}()
	fmt.Print(err)
	os.Exit(0)
}

// It is decided here as well: over there it cannot be seen what runs in a session of this machine.
func TestWhatRunsInASessionHereCannotAnswerByASharedConnection(t *testing.T) {
	testenv.NeedProc(t)
	m := machineOf(t, "sh")
	sharing(t)
	desk, err := dial(t, m.target, &host.Options{Share: true}).Questions()
	require.NoError(t, err)
	ended := make(chan error)
	go func() {
		_, err := questions.Ask(testenv.Context(t), m.asks(t), questions.Open{From: "a test", Question: approval.Question{Script: "rm x"}})
		ended <- err
	}()
	q := one(t, desk)
	self, err := os.Executable()
	require.NoError(t, err)
	// The second one has taken the mark out of its environment, but not out of that of the shell above it.
	for _, argv := range [][]string{{self}, {"sh", "-c", "env -u " + environ.SessionVar + ` "$0"; exit $?`, self}} {
		answers := exec.Command(argv[0], argv[1:]...)
		answers.Env = append(os.Environ(), answerVar+"="+m.target, environ.SessionVar+"=x")
		said, err := answers.Output()
		require.NoError(t, err)
		assert.Equal(t, questions.ErrWithin.Error(), string(said), "%q", argv)
	}
	require.NoError(t, desk.Answer(testenv.Context(t), q.ID, approval.Reply{Answer: approval.Once}), "nobody has answered yet")
	require.NoError(t, <-ended)
}

func TestALimpetThatKnowsNoQuestionsIsSaid(t *testing.T) {
	testenv.Slow(t)
	const old = `printf '%s bash /bin/bash\n%s system Linux x86_64\n%s uid 0\n%s limpet 1 1 /bin/true\n%s end 0\n' "$m" "$m" "$m" "$m" "$m"
read -r line
echo "limpet-ready $m {\"protocol\":[1,1],\"version\":\"0.1\",\"place\":\"x\"}"; exec sleep 1000
`
	to, err := host.ParseTarget(liar(t, old))
	require.NoError(t, err)
	h, err := host.Dial(testenv.Context(t), to, &host.Options{Reconnect: -1})
	require.NoError(t, err)
	_, err = h.Questions()
	require.ErrorIs(t, err, host.ErrNoQuestions)
	require.ErrorContains(t, err, "limpet 0.1 is there, which is too old; bring it up to date")
	_ = h.Disconnect() // It does not answer.
}
