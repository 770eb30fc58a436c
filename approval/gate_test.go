package approval_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
)

// person answers questions, and remembers them.
type person struct {
	mu     sync.Mutex
	answer approval.Answer
	reason string
	asked  []approval.Question
}

func (p *person) ask(_ context.Context, q approval.Question) (approval.Reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, q)
	return approval.Reply{Answer: p.answer, Reason: p.reason}, nil
}

func refused(t *testing.T, err error) *approval.RefusedError {
	t.Helper()
	e, ok := errors.AsType[*approval.RefusedError](err)
	require.True(t, ok, "%v", err)
	return e
}

func TestOnlyWhatIsNotKnownToChangeNothingAsks(t *testing.T) {
	p := &person{answer: approval.Once}
	g := approval.NewGate(p.ask, nil)
	require.NoError(t, g.Check(t.Context(), "ls -l | wc -l", "/"))
	assert.Empty(t, p.asked)
	for range 2 {
		require.NoError(t, g.Check(t.Context(), "rm a", "/tmp"))
	}
	require.Len(t, p.asked, 2, "once is once")
	assert.Equal(t, "rm a", p.asked[0].Script)
	assert.Equal(t, "/tmp", p.asked[0].Dir)
}

func TestWhatIsRefusedSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		gate   *approval.Gate
		script string
		says   string
	}{
		"no":        {approval.NewGate((&person{}).ask, nil), "ls; rm a", "not approved: rm a: it deletes files; the answer was no"},
		"a reason":  {approval.NewGate((&person{reason: "use make clean"}).ask, nil), "rm a", "not approved: rm a: it deletes files; the answer was no: use make clean"},
		"nobody":    {approval.NewGate(nil, nil), "rm a", "not approved: rm a: it deletes files; there is nobody to ask"},
		"denied":    {approval.NewGate((&person{answer: approval.Session}).ask, nil), "rm -rf /", "not approved: rm -rf /: it deletes a home or a directory of the system; no answer allows it"},
		"no script": {approval.NewGate((&person{}).ask, nil), "if", "not approved: it cannot be read: it is too long, incomplete, or no bash that is known here; the answer was no"},
	} {
		err := c.gate.Check(t.Context(), c.script, "/")
		refused(t, err)
		assert.EqualError(t, err, c.says, name)
	}
}

// An answer for the session is for the very script, in the very directory.
func TestAnAnswerForTheSessionIsForThatScriptThere(t *testing.T) {
	p := &person{answer: approval.Session}
	g := approval.NewGate(p.ask, nil)
	for range 3 {
		require.NoError(t, g.Check(t.Context(), "rm a", "/tmp"))
	}
	require.Len(t, p.asked, 1)
	for _, other := range []struct{ script, dir string }{{"rm a", "/"}, {"rm a ", "/tmp"}, {"rm b", "/tmp"}} {
		require.NoError(t, g.Check(t.Context(), other.script, other.dir))
	}
	assert.Len(t, p.asked, 4)
}

// What was approved may have made ls another command. A program cannot.
func TestWhatMayHaveChangedNamesMakesAllAsk(t *testing.T) {
	for script, changes := range map[string]bool{
		"rm a": false, "/bin/rm a": false, "cat ~/.ssh/id_rsa": false, "make": false, "echo a > b": false, "unknown-program x": false, "kill 5": false, "rm a; curl x": false, "vim a": false,
		"ls() { rm a; }": true, "alias ls=rm": true, "PATH=.:$PATH": true, "source x": true, "eval \"$x\"": true, "hash -p /tmp/x ls": true,
		"$x": true, "enable -f x ls": true, "trap 'rm a' DEBUG": true, "exec > a": true, "{PATH}> a": true, "export PATH=.": true,
		"printf -v PATH .": true, "shopt -s expand_aliases": true, "unset PATH": true, "if": true, "read PATH": true, "declare -n ls=x": true,
		"source ~/.aws/credentials": true, ". .env": true, "set -k": true, "mapfile PATH": true, "command source x": true, "builtin source x": true, `\source x`: true,
		"time source x": true, "rm a; source x": true, "x=1 source x": true, "if rm a; then source x; fi": true, "getopts a ls": true, "ulimit -n 5": true,
	} {
		p := &person{answer: approval.Once}
		g := approval.NewGate(p.ask, nil)
		require.NoError(t, g.Check(t.Context(), script, "/"))
		require.Len(t, p.asked, 1, script)
		require.NoError(t, g.Check(t.Context(), "ls", "/"))
		if !changes {
			assert.Len(t, p.asked, 1, script)
			continue
		}
		if assert.Len(t, p.asked, 2, script) {
			assert.True(t, p.asked[1].Changed, script)
		}
		p.answer = approval.No
		err := g.Check(t.Context(), "ls", "/")
		assert.EqualError(t, refused(t, err), "not approved: names may mean something else in this shell than in a new one; the answer was no", script)
	}
}

func TestAShellThatOthersUseMakesAllAsk(t *testing.T) {
	p := &person{answer: approval.Session}
	g := approval.NewGate(p.ask, nil)
	g.Changed()
	for range 2 {
		require.NoError(t, g.Check(t.Context(), "ls", "/"))
	}
	assert.Len(t, p.asked, 2, "each time: it may be another ls by now")
}

// The answer was about what make was then.
func TestAnAnswerForTheSessionEndsWhenNamesMayHaveChanged(t *testing.T) {
	p := &person{answer: approval.Session}
	g := approval.NewGate(p.ask, nil)
	for _, script := range []string{"make", "make", "make() { rm -r x; }", "make"} {
		require.NoError(t, g.Check(t.Context(), script, "/"))
	}
	assert.Len(t, p.asked, 3)
}

// Several callers with the same script at the same time cause one question. A caller whose context ends leaves, though that
// question is still open.
func TestEqualQuestionsAreOne(t *testing.T) {
	began, answer := make(chan struct{}), make(chan struct{})
	asked := 0
	g := approval.NewGate(func(context.Context, approval.Question) (approval.Reply, error) {
		asked++
		close(began)
		<-answer
		return approval.Reply{Answer: approval.Session}, nil
	}, nil)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { assert.NoError(t, g.Check(context.Background(), "rm a", "/")) })
	}
	<-began
	cause := errors.New("given up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	require.ErrorIs(t, g.Check(ctx, "rm b", "/"), cause)
	close(answer)
	all.Wait()
	assert.Equal(t, 1, asked)
}

func TestAnErrorOfWhoAsksIsThatOfTheCheck(t *testing.T) {
	gone := errors.New("the terminal is gone")
	g := approval.NewGate(func(context.Context, approval.Question) (approval.Reply, error) {
		return approval.Reply{Answer: approval.Session}, gone
	}, nil)
	for range 2 {
		require.ErrorIs(t, g.Check(t.Context(), "rm a", "/"), gone)
	}
}

// A script that waits for its turn is approved for where it was to run, and for what names meant.
func TestAPassHoldsAsLongAsThingsAreAsTheyWere(t *testing.T) {
	p := &person{answer: approval.Once}
	g := approval.NewGate(p.ask, nil)
	reads, err := g.Pass(t.Context(), approval.Question{Script: "ls", Dir: "/a"})
	require.NoError(t, err)
	deletes, err := g.Pass(t.Context(), approval.Question{Script: "rm x", Dir: "/a"})
	require.NoError(t, err)
	assert.True(t, reads.Holds("/b"), "it may run anywhere")
	assert.True(t, deletes.Holds("/a"))
	assert.False(t, deletes.Holds("/b"))
	changes, err := g.Pass(t.Context(), approval.Question{Script: "alias ls=rm", Dir: "/a"})
	require.NoError(t, err)
	assert.True(t, changes.Holds("/a"))
	assert.False(t, reads.Holds("/a"))
	assert.False(t, deletes.Holds("/a"))
}

func TestAForkKnowsWhatChangedAndNoAnswers(t *testing.T) {
	p := &person{answer: approval.Session}
	g := approval.NewGate(p.ask, nil)
	require.NoError(t, g.Check(t.Context(), "rm a", "/"))
	require.NoError(t, g.Fork().Check(t.Context(), "rm a", "/"))
	assert.Len(t, p.asked, 2)
	require.NoError(t, g.Fork().Check(t.Context(), "ls", "/"))
	assert.Len(t, p.asked, 2)
	g.Changed()
	require.NoError(t, g.Fork().Check(t.Context(), "ls", "/"))
	assert.Len(t, p.asked, 3)
}

func TestInputAsksUntilThePersonTrustsThatProgram(t *testing.T) {
	p := &person{answer: approval.Once}
	g := approval.NewGate(p.ask, nil)
	g.Changed() // That is about the shell.
	for _, c := range []struct {
		input, text string
		asks        bool
	}{{"job-1", "y", true}, {"job-1", "y", true}, {"job-1", "n", false}, {"job-2", "y", true}} {
		asked := len(p.asked)
		_, err := g.Pass(t.Context(), approval.Question{Input: c.input, Script: c.text})
		require.NoError(t, err)
		assert.Equal(t, c.asks, len(p.asked) > asked, "%+v", c)
		if c.asks {
			assert.Equal(t, c.input, p.asked[asked].Input)
			assert.False(t, p.asked[asked].Changed)
		}
		p.answer = approval.Session // From the second on.
	}
	p.answer = approval.No
	_, err := g.Pass(t.Context(), approval.Question{Input: "job-3", Script: "rm -rf /\n"})
	assert.EqualError(t, refused(t, err), "not approved: rm -rf /\n: what it does is up to the program that reads it; the answer was no")
}

func TestQuestionsInARowWithoutAYesAreCounted(t *testing.T) {
	p := &person{}
	g := approval.NewGate(p.ask, nil)
	for n := range 3 {
		assert.Equal(t, n+1, refused(t, g.Check(t.Context(), "rm a", "/")).Refusals)
	}
	p.answer = approval.Once
	require.NoError(t, g.Check(t.Context(), "rm a", "/"))
	p.answer = approval.No
	assert.Equal(t, 1, refused(t, g.Check(t.Context(), "rm a", "/")).Refusals)
	assert.Zero(t, refused(t, g.Check(t.Context(), "rm -rf /", "/")).Refusals, "nobody was asked")
	assert.Equal(t, 2, g.Unanswered(approval.Question{Script: "rm b", Dir: "/"}).Refusals)
	assert.Equal(t, 3, refused(t, g.Check(t.Context(), "rm a", "/")).Refusals)
	p.answer = approval.Once
	require.NoError(t, g.Check(t.Context(), "rm a", "/"))
	assert.Equal(t, 1, g.Unanswered(approval.Question{Script: "rm b", Dir: "/"}).Refusals)
}

// In a sandbox that only reads, it matters what may be told, and nothing else.
func TestWhatCanDoNoHarmAsksNobody(t *testing.T) {
	p := &person{answer: approval.Once}
	g := approval.NewGate(p.ask, &approval.Options{Contained: true, Home: "/home/me"})
	for _, script := range []string{"rm a", "echo a > b", "curl x", "bash x.sh", "make", "$x", "ls() { rm a; }", "ls", "kill 1"} {
		require.NoError(t, g.Check(t.Context(), script, "/"), script)
	}
	_, err := g.Pass(t.Context(), approval.Question{Input: "term-1", Script: "rm a"})
	require.NoError(t, err)
	assert.Empty(t, p.asked)
	for i, script := range []string{"cat ~/.ssh/id_rsa", "printenv", "cat ~/.ssh/id_rsa\nif", strings.Repeat("ls;", 2001) + "cat ~/.ssh/id_rsa"} {
		require.NoError(t, g.Check(t.Context(), script, "/"), script)
		assert.Len(t, p.asked, i+1, script)
		assert.False(t, p.asked[i].Changed, script)
	}
	assert.Error(t, g.Check(t.Context(), "rm -rf /", "/"))
	own := approval.Judge("make", &approval.Options{Contained: true, Own: []approval.Own{{Verdict: approval.Ask, Words: []string{"make"}}}})
	assert.Equal(t, approval.Ask, own.Verdict, "a person has said so")
}
