package approve_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/approve"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// aQuestion is one about a script in a directory.
func aQuestion(script, dir string) questions.Open {
	return questions.Open{ID: "id", From: "limpet mcp\x1b[2J", Session: "s", Question: approval.Question{Script: script, Dir: dir, Judgement: approval.Judge(script, nil)}}
}

func offered(s page.Sheet) (answers []string) {
	for _, c := range s.Choices {
		answers = append(answers, c.Answer)
	}
	return answers
}

func TestASheetHidesNothing(t *testing.T) {
	q := aQuestion("touch a\x1b[8m\n\trm \u202eb\r\n", "/tmp/\u200bx")
	q.Stdin = "in\x00put"
	s := approve.Desk{}.Sheet(q)
	assert.Equal(t, `limpet mcp\x1b[2J, session s, asks: may this run in /tmp/\u200bx?`, s.Title)
	assert.Equal(t, []page.Part{{Text: `touch a\x1b[8m` + "\n" + `\x09rm \u202eb\x0d` + "\n"}, {Title: "It reads", Text: `in\x00put`}}, s.Parts)
	assert.NotEmpty(t, s.Notes)
	for _, note := range s.Notes {
		assert.NotContains(t, note, "\x1b")
	}
}

func TestASheetOffersWhatTheTerminalOffers(t *testing.T) {
	t.Setenv("HOME", testenv.TempDir(t))
	dir := testenv.TempDir(t)
	plain := approve.Desk{}.Sheet(aQuestion("touch one", dir))
	assert.Equal(t, []string{page.Once, page.ForSession, page.Always, page.No}, offered(plain))
	assert.Equal(t, "Always below "+dir+", for 30 days", plain.Choices[2].Text)
	require.Len(t, plain.Choices[2].Rules, 1)
	assert.Contains(t, plain.Choices[2].Rules[0], "touch")
	assert.Equal(t, []string{page.Once, page.ForSession, page.No}, offered(approve.Desk{}.Sheet(aQuestion("bash x", dir))), "never for what runs its arguments")
	changed := aQuestion("touch one", dir)
	changed.Question.Changed = true
	assert.Equal(t, []string{page.Once, page.No}, offered(approve.Desk{}.Sheet(changed)))
	typed := aQuestion("ls", dir)
	typed.Question.Input = "t1"
	assert.Contains(t, approve.Desk{}.Sheet(typed).Title, "may this be typed to t1?")
	assert.Equal(t, []string{page.Once, page.ForSession, page.No}, offered(approve.Desk{}.Sheet(typed)))
	long := approve.Desk{}.Sheet(aQuestion("touch "+strings.Repeat("x", 300<<10), dir))
	assert.Equal(t, []string{page.No}, offered(long), "nobody reads that through")
	assert.Contains(t, long.Notes[len(long.Notes)-1], "too long")

	sudo := command.PasswordQuestion{Prompt: "[sudo] \x07", Program: "sudo", Chain: []command.AskingProcess{{PID: 7, Command: "sudo ls"}}, Again: true}
	s := approve.Desk{}.Sheet(questions.Open{From: "limpet mcp", Password: &sudo})
	assert.Equal(t, "For limpet mcp: sudo asks for a password, with these words:", s.Title)
	assert.Equal(t, "sudo asks for a password", s.Brief)
	assert.Equal(t, `[sudo] \x07`, s.Parts[0].Text)
	assert.Equal(t, []string{"It runs as sudo ls [7]", "It asks again: the last answer was probably wrong."}, s.Notes)
	assert.Equal(t, []page.Choice{{Answer: page.Give, Text: "Give the password", Field: page.Password}, {Answer: page.No, Text: "No"}}, s.Choices)
	confirms := command.PasswordQuestion{Kind: command.AskConfirm, Chain: sudo.Chain}
	s = approve.Desk{}.Sheet(questions.Open{Password: &confirms})
	assert.Equal(t, []page.Choice{{Answer: page.Give, Text: "Yes"}, {Answer: page.No, Text: "No"}}, s.Choices)
	assert.Contains(t, s.Notes[1], "Beware")
}

// asking asks in a directory until there is an answer.
func asking[T any](t *testing.T, dir string, ask func(ctx context.Context) (T, error)) (q questions.Open, answered <-chan T) {
	t.Helper()
	ended := make(chan T, 1)
	go func() {
		reply, err := ask(testenv.Context(t))
		if err != nil {
			assert.ErrorIs(t, err, questions.ErrRefused)
		}
		ended <- reply
	}()
	testenv.Await(t, "the question", func() bool {
		list, err := questions.List(testenv.Context(t), dir)
		if len(list) == 1 {
			q = list[0]
		}
		return err == nil && len(list) == 1
	})
	return q, ended
}

func TestTheDeskAnswers(t *testing.T) {
	config := testenv.TempDir(t)
	t.Setenv("HOME", testenv.TempDir(t))
	t.Setenv("XDG_CONFIG_HOME", config)
	rules := filepath.Join(config, "limpet", "approvals.json")
	root := testenv.TempDir(t)
	desk := approve.Desk{At: questions.Dir(filepath.Join(root, "q"))}
	ask := func() (questions.Open, <-chan approval.Reply) {
		return asking(t, string(desk.At.(questions.Dir)), func(ctx context.Context) (approval.Reply, error) {
			return questions.Ask(ctx, string(desk.At.(questions.Dir)), aQuestion("touch one", root))
		})
	}
	for _, row := range []struct {
		a    page.Answer
		want approval.Reply
		said string
	}{
		{page.Answer{Answer: page.Once}, approval.Reply{Answer: approval.Once}, "yes, this time"},
		{page.Answer{Answer: page.ForSession}, approval.Reply{Answer: approval.Session}, "yes, and whenever it comes again"},
		{page.Answer{Answer: page.No}, approval.Reply{}, "no"},
		{page.Answer{Answer: page.No, Reason: " not\x1b now "}, approval.Reply{Reason: "not\x1b now"}, `no: not\x1b now`},
	} {
		q, answered := ask()
		said, err := desk.Answer(testenv.Context(t), q, row.a)
		require.NoError(t, err)
		assert.Equal(t, row.said, said)
		assert.Equal(t, row.want, <-answered)
	}
	require.NoFileExists(t, rules)
	q, answered := ask()
	said, err := desk.Answer(testenv.Context(t), q, page.Answer{Answer: page.Always})
	require.NoError(t, err)
	assert.Equal(t, "yes, always", said)
	assert.Equal(t, approval.Reply{Answer: approval.Session}, <-answered)
	b, err := os.ReadFile(rules)
	require.NoError(t, err)
	assert.Contains(t, string(b), `"touch"`)
	require.NoError(t, os.Remove(rules))
	_, err = desk.Answer(testenv.Context(t), q, page.Answer{Answer: page.Always})
	require.ErrorIs(t, err, questions.ErrNotOpen)
	require.NoFileExists(t, rules, "an answer that comes too late writes no rule")
}

func TestTheDeskGivesPasswords(t *testing.T) {
	desk := approve.Desk{At: questions.Dir(filepath.Join(testenv.TempDir(t), "q"))}
	for _, row := range []struct {
		kind       command.PasswordKind
		a          page.Answer
		want, said string
	}{
		{command.AskPassword, page.Answer{Answer: page.Give, Secret: []byte("s3cret")}, "s3cret", "given"},
		{command.AskName, page.Answer{Answer: page.Give, Secret: []byte("alice")}, "alice", "given"},
		{command.AskConfirm, page.Answer{Answer: page.Give}, "yes", "yes"},
		{command.AskNothing, page.Answer{Answer: page.Give}, "", "seen"},
		{command.AskPassword, page.Answer{Answer: page.No}, "", "no"},
	} {
		q, answered := asking(t, string(desk.At.(questions.Dir)), func(ctx context.Context) (string, error) {
			secret, err := questions.AskPassword(ctx, string(desk.At.(questions.Dir)), questions.Open{From: "a test", Password: &command.PasswordQuestion{Kind: row.kind, Prompt: "p"}})
			return string(secret), err
		})
		said, err := desk.Answer(testenv.Context(t), q, row.a)
		require.NoError(t, err)
		assert.Equal(t, row.said, said)
		assert.Equal(t, row.want, <-answered)
	}
}

// Time is not part of what was shown.
func TestASheetStaysTheSame(t *testing.T) {
	t.Setenv("HOME", testenv.TempDir(t))
	q := aQuestion("touch one", testenv.TempDir(t))
	before := approve.Desk{}.Sheet(q)
	q.Age, q.Left = time.Hour, time.Second
	assert.Equal(t, before, approve.Desk{}.Sheet(q))
}
