package questions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// answerVar has the test binary answer a question with yes instead of running tests: its directory.
const answerVar = "LIMPET_TEST_ANSWER"

func TestMain(m *testing.M) {
	dir := os.Getenv(answerVar)
	if dir == "" {
		os.Exit(testenv.Main(m))
	}
	open, err := questions.List(context.Background(), dir)
	if err == nil {
		err = questions.Answer(context.Background(), dir, open[0].ID, approval.Reply{Answer: approval.Once})
	}
	fmt.Print(err)
}

// outcome is what Ask returns.
type outcome struct {
	reply approval.Reply
	err   error
}

// ask asks a question, and returns it when it is open, with what comes of it.
func ask(t *testing.T, ctx context.Context, dir, script string) (questions.Open, <-chan outcome) {
	t.Helper()
	before := listed(t, dir)
	ended := make(chan outcome, 1)
	go func() {
		reply, err := questions.Ask(ctx, dir, questions.Open{From: "a test", Session: "s", Question: approval.Question{
			Script: script, Dir: "/tmp", Judgement: approval.Judge(script, nil),
		}})
		ended <- outcome{reply, err}
	}()
	testenv.Await(t, "the question", func() bool { return len(listed(t, dir)) > len(before) })
	now := listed(t, dir)
	return now[len(now)-1], ended
}

func listed(t *testing.T, dir string) []questions.Open {
	t.Helper()
	list, err := questions.List(testenv.Context(t), dir)
	require.NoError(t, err)
	return list
}

func TestAQuestionIsThereUntilItIsAnswered(t *testing.T) {
	dir := filepath.Join(testenv.TempDir(t), "q")
	assert.Empty(t, listed(t, dir), "there is no directory")
	first, firstEnds := ask(t, testenv.Context(t), dir, "rm a")
	second, secondEnds := ask(t, testenv.Context(t), dir, "rm b")
	assert.Equal(t, "rm a", first.Question.Script)
	assert.Equal(t, approval.Ask, first.Question.Judgement.Verdict)
	assert.Equal(t, "it deletes files", first.Question.Judgement.Findings[0].Reason)
	assert.Equal(t, os.Getpid(), first.PID)
	assert.Positive(t, first.Age)
	require.NoError(t, questions.Answer(testenv.Context(t), dir, second.ID, approval.Reply{Reason: "use trash"}))
	assert.Equal(t, outcome{reply: approval.Reply{Reason: "use trash"}}, <-secondEnds)
	require.ErrorIs(t, questions.Answer(testenv.Context(t), dir, second.ID, approval.Reply{Answer: approval.Once}), questions.ErrNotOpen)
	assert.Len(t, listed(t, dir), 1)
	require.NoError(t, questions.Answer(testenv.Context(t), dir, first.ID, approval.Reply{Answer: approval.Session}))
	assert.Equal(t, outcome{reply: approval.Reply{Answer: approval.Session}}, <-firstEnds)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// If an answered question stayed in the list for a moment, it would be shown to the person again, and a second answer would be taken and do nothing.
func TestWhatIsAnsweredIsNotAskedForAnInstantMore(t *testing.T) {
	dir := filepath.Join(testenv.TempDir(t), "q")
	for range 50 {
		q, ends := ask(t, testenv.Context(t), dir, "rm a")
		require.NoError(t, questions.Answer(testenv.Context(t), dir, q.ID, approval.Reply{Answer: approval.Once}))
		require.ErrorIs(t, questions.Answer(testenv.Context(t), dir, q.ID, approval.Reply{}), questions.ErrNotOpen)
		require.Empty(t, listed(t, dir))
		require.Equal(t, outcome{reply: approval.Reply{Answer: approval.Once}}, <-ends)
	}
}

func TestWhoeverWaitsHearsThatAQuestionIsOver(t *testing.T) {
	dir := filepath.Join(testenv.TempDir(t), "q")
	gaveUp := errors.New("gave up")
	ctx, cancel := context.WithCancelCause(testenv.Context(t))
	q, ends := ask(t, ctx, dir, "rm a")
	waits, leave := context.WithCancelCause(testenv.Context(t))
	leave(gaveUp)
	require.ErrorIs(t, questions.Over(waits, dir, q.ID), gaveUp, "it is still asked")
	over := make(chan error, 1)
	go func() { over <- questions.Over(testenv.Context(t), dir, q.ID) }()
	cancel(gaveUp)
	require.ErrorIs(t, (<-ends).err, gaveUp)
	require.NoError(t, <-over)
	require.NoError(t, questions.Over(testenv.Context(t), dir, q.ID))
}

// A program that was killed leaves its socket.
func TestWhatNobodyAsksAnyMoreIsRemoved(t *testing.T) {
	dir := testenv.TempDir(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "x.question"), Net: "unix"})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	assert.Empty(t, listed(t, dir))
	require.NoFileExists(t, filepath.Join(dir, "x.question"))
}

func TestADirectoryOfOthersIsNotUsed(t *testing.T) {
	dir := testenv.TempDir(t)
	require.NoError(t, os.Chmod(dir, 0o777))
	_, err := questions.Ask(testenv.Context(t), dir, questions.Open{})
	assert.ErrorContains(t, err, "others than this user can write to it")
}

// What runs in a session, or was started by what does, may not answer what it is asked about.
// Whoever runs as this user can ask, and say that it is another question: an answer goes to who has asked.
func TestAQuestionIsThatOfItsSocket(t *testing.T) {
	dir := filepath.Join(testenv.TempDir(t), "asking")
	q, ended := ask(t, testenv.Context(t), dir, "rm -rf /")
	l, err := net.Listen("unix", filepath.Join(dir, "zzz.question"))
	require.NoError(t, err)
	lies := q
	lies.Question.Script = "ls"
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // It ends with the listener.
			_ = json.NewEncoder(w).Encode(lies) // The other side is this test.
		}))
	}()
	testenv.Await(t, "both", func() bool { return len(listed(t, dir)) == 2 })
	for _, one := range listed(t, dir) {
		assert.Equal(t, one.Question.Script == "ls", one.ID == "zzz", "%s: %s", one.ID, one.Question.Script)
	}
	require.NoError(t, l.Close())
	require.NoError(t, questions.Answer(testenv.Context(t), dir, q.ID, approval.Reply{}))
	assert.Equal(t, approval.No, (<-ended).reply.Answer)
}

func TestWhatRunsInASessionCannotAnswer(t *testing.T) {
	testenv.NeedProc(t)
	dir := filepath.Join(testenv.TempDir(t), "q")
	_, ends := ask(t, testenv.Context(t), dir, "rm a")
	self, err := os.Executable()
	require.NoError(t, err)
	env := os.Environ()
	answers := func(env []string, argv ...string) string {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env = append(env, answerVar+"="+dir)
		out, err := cmd.Output()
		require.NoError(t, err)
		return string(out)
	}
	marked := append(env[:len(env):len(env)], environ.JobVar+"=x")
	assert.Equal(t, questions.ErrWithin.Error(), answers(marked, self))
	assert.Equal(t, questions.ErrWithin.Error(), answers(marked, "bash", "-c", `env -u "$1" "$2"; exit`, "bash", environ.JobVar, self), "its child, without the mark")
	assert.Equal(t, "<nil>", answers(env, self))
	assert.Equal(t, outcome{reply: approval.Reply{Answer: approval.Once}}, <-ends)
}

func TestAPasswordIsGivenOrNot(t *testing.T) {
	dir := filepath.Join(testenv.TempDir(t), "q")
	type outcome struct {
		secret string
		err    error
	}
	ended := make(chan outcome, 1)
	wants := func() questions.Open {
		go func() {
			secret, err := questions.AskPassword(testenv.Context(t), dir, questions.Open{From: "a test", Password: &command.PasswordQuestion{
				Prompt: "Password: ", Program: "sudo", Chain: []command.AskingProcess{{PID: 1, Command: "sudo -A ls"}},
			}})
			ended <- outcome{string(secret), err}
		}()
		testenv.Await(t, "the question", func() bool { return len(listed(t, dir)) == 1 })
		return listed(t, dir)[0]
	}
	q := wants()
	assert.Equal(t, "Password: ", q.Password.Prompt)
	assert.Equal(t, "sudo -A ls", q.Password.Chain[0].Command)
	require.NoError(t, questions.AnswerPassword(testenv.Context(t), dir, q.ID, []byte("a b\xff"), true))
	assert.Equal(t, outcome{secret: "a b\xff"}, <-ended)
	q = wants()
	require.NoError(t, questions.AnswerPassword(testenv.Context(t), dir, q.ID, nil, true))
	assert.Equal(t, outcome{}, <-ended, "an empty one is one")
	q = wants()
	require.NoError(t, questions.AnswerPassword(testenv.Context(t), dir, q.ID, nil, false))
	assert.Equal(t, outcome{err: questions.ErrRefused}, <-ended)
	q = wants()
	require.NoError(t, questions.Answer(testenv.Context(t), dir, q.ID, approval.Reply{Answer: approval.Session}))
	assert.Equal(t, outcome{err: questions.ErrRefused}, <-ended, "a yes is no password")
}

// A program that passes requests on must know which of them answer, however they are written.
func TestARequestThatAnswersIsKnown(t *testing.T) {
	for request, want := range map[string]bool{
		"POST http://limpet/v1/questions/a/answer":     true,
		"POST http://limpet.x/v1/questions/a/answer?b": true,
		"POST http://limpet/v1/questions/a/%61nswer":   true,
		"POST http://limpet/v1/%71uestions/a/answer":   true,
		"POST http://limpet//v1/./questions/a/answer":  true,
		"PUT http://limpet/v1/questions/a/answer":      true,
		"GET http://limpet/v1/questions":               false,
		"GET http://limpet/v1/questions/a/over":        false,
		"POST http://limpet/v1/sessions/questions/run": false,
	} {
		method, url, _ := strings.Cut(request, " ")
		r, err := http.NewRequestWithContext(testenv.Context(t), method, url, nil)
		require.NoError(t, err)
		assert.Equal(t, want, questions.Answers(r), request)
	}
}

// A program that asks and stands still, or answers what is no question, hides no others; and it is noticed when it does say what it asks.
func TestWhoSaysNothingHidesNobody(t *testing.T) {
	testenv.Slow(t)
	dir := filepath.Join(testenv.TempDir(t), "asking")
	q, ended := ask(t, testenv.Context(t), dir, "ls")
	still, nonsense := filepath.Join(dir, "aaa.question"), filepath.Join(dir, "bbb.question")
	goOn := make(chan struct{})
	for path, answers := range map[string]http.HandlerFunc{
		still: func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-goOn:
			case <-r.Context().Done():
				return
			}
			_ = json.NewEncoder(w).Encode(questions.Open{From: "late"}) // The other side is this test.
		},
		nonsense: func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("[1")) }, // As above.
	} {
		l, err := net.Listen("unix", path)
		require.NoError(t, err)
		defer l.Close()
		go func() { _ = http.Serve(l, answers) }() // It ends with the listener.
	}
	open := listed(t, dir)
	require.Len(t, open, 1)
	assert.Equal(t, q.ID, open[0].ID)

	found := make(chan error, 1)
	go func() {
		found <- questions.Dir(dir).AwaitOther(testenv.Context(t), func(id string) bool { return id == q.ID })
	}()
	close(goOn)
	require.NoError(t, <-found)
	assert.Len(t, listed(t, dir), 2)
	require.NoError(t, questions.Answer(testenv.Context(t), dir, q.ID, approval.Reply{}))
	<-ended
}
