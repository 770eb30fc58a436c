package page_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/internal/questions"
)

// asksToRun is a question about a script.
func asksToRun(id, script string) questions.Open {
	q := questions.Open{ID: id, From: "limpet mcp", Session: "build", Age: 2 * time.Second, Left: time.Minute}
	q.Question.Script, q.Question.Dir = script, "/src"
	return q
}

func asksForPassword(id, prompt string) questions.Open {
	return questions.Open{ID: id, From: "limpet mcp", Password: &command.PasswordQuestion{Prompt: prompt}}
}

// list is what the page is told of the questions.
type list struct {
	Answering bool
	Questions []struct {
		ID, Digest, From, Session, Script string
		Age                               float64 `json:"age_seconds"`
		Left                              float64 `json:"left_seconds"`
	}
	Log []struct{ From, Session, Brief, Answer string }
}

// sheet is a question in full.
type sheet struct {
	Digest, Title string
	Parts         []page.Part
	Choices       []page.Choice
}

func (p *served) sheet(id string) (s sheet) {
	p.t.Helper()
	p.get("/api/questions/"+id, &s)
	return s
}

// answers sends an answer as the page does, unless change says otherwise, and returns the status and the body.
func (p *served) answers(id string, content any, change func(*http.Request)) (status int, body string) {
	p.t.Helper()
	b, err := json.Marshal(content)
	require.NoError(p.t, err)
	answer := p.ask("/api/questions/"+id, func(r *http.Request) {
		r.Method = http.MethodPost
		r.Header.Set("Origin", "http://"+p.addr)
		r.Header.Set("Content-Type", "application/json")
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
		if change != nil {
			change(r)
		}
	})
	text, err := io.ReadAll(answer.Body)
	require.NoError(p.t, err)
	return answer.StatusCode, string(text)
}

func TestAQuestionIsShownAndAnswered(t *testing.T) {
	s := newStand()
	s.questions = []questions.Open{asksToRun("one", "rm -rf build"), asksForPassword("two", "[sudo] password: ")}
	p := serveWith(t, s, &page.Options{Answering: true})
	var all list
	p.get("/api/questions", &all)
	require.Len(t, all.Questions, 2)
	assert.True(t, all.Answering)
	assert.Equal(t, "rm -rf build", all.Questions[0].Script)
	assert.Equal(t, 2.0, all.Questions[0].Age)
	assert.Equal(t, 60.0, all.Questions[0].Left)
	one, two := p.sheet("one"), p.sheet("two")
	assert.Equal(t, all.Questions[0].Digest, one.Digest, "by which the page sees that it is another one")
	assert.Equal(t, []page.Part{{Text: "rm -rf build"}}, one.Parts)
	assert.NotEqual(t, one.Digest, two.Digest)

	status, body := p.answers("one", page.Answer{Digest: one.Digest, Answer: page.No, Reason: "keep it"}, nil)
	require.Equal(t, http.StatusOK, status, body)
	assert.JSONEq(t, `{"said": "said no"}`, body)
	status, body = p.answers("two", page.Answer{Digest: two.Digest, Answer: page.Give, Secret: []byte("s3cret")}, nil)
	require.Equal(t, http.StatusOK, status, body)
	assert.Equal(t, "keep it", s.answers[0].Reason)
	assert.Equal(t, "s3cret", string(s.answers[1].Secret))

	answer := p.ask("/api/questions", nil)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "s3cret")
	assert.NotContains(t, string(text), "password: ", "what a program asks with is not logged")
	all = list{}
	require.NoError(t, json.Unmarshal(text, &all))
	assert.Empty(t, all.Questions, "the answer is seen at once")
	require.Len(t, all.Log, 2)
	assert.Equal(t, struct{ From, Session, Brief, Answer string }{"limpet mcp", "build", "brief", "said no"}, all.Log[0])
	assert.Equal(t, struct{ From, Session, Brief, Answer string }{"limpet mcp", "", "a program asks", "said give"}, all.Log[1])
}

func TestNothingIsAnsweredWithoutTheRight(t *testing.T) {
	for name, opts := range map[string]*page.Options{"read-only": nil, "typing": {Typing: true}} {
		t.Run(name, func(t *testing.T) {
			s := newStand()
			s.questions = []questions.Open{asksToRun("one", "rm a")}
			p := serveWith(t, s, opts)
			var all list
			p.get("/api/questions", &all)
			assert.False(t, all.Answering)
			status, body := p.answers("one", page.Answer{Digest: p.sheet("one").Digest, Answer: page.Once}, nil)
			assert.Equal(t, http.StatusForbidden, status)
			assert.Contains(t, body, "without --allow-answers; answer at a terminal: limpet approvals answer one")
			assert.Empty(t, s.answers)
		})
	}
}

// An answer is for what the person has seen, and for nothing that came in its place.
func TestAnAnswerToSomethingElseIsRefused(t *testing.T) {
	s := newStand()
	s.questions = []questions.Open{asksToRun("one", "rm a")}
	s.rule = "rm a"
	p := serveWith(t, s, &page.Options{Answering: true})
	shown := p.sheet("one")
	yes := page.Answer{Digest: shown.Digest, Answer: page.Once}
	refused := func(id string, want int, why string) {
		t.Helper()
		status, body := p.answers(id, yes, nil)
		assert.Equal(t, want, status)
		assert.Contains(t, body, why)
		assert.Empty(t, s.answers)
	}
	for name, change := range map[string]func(q *questions.Open){
		"script": func(q *questions.Open) { q.Question.Script = "rm b" }, "directory": func(q *questions.Open) { q.Question.Dir = "/" },
		"input": func(q *questions.Open) { q.Stdin = "x" }, "session": func(q *questions.Open) { q.Session = "other" },
		"what it is": func(q *questions.Open) { *q = asksForPassword("one", "p") },
	} {
		t.Run(name, func(t *testing.T) {
			q := asksToRun("one", "rm a")
			change(&q)
			s.change(func() { s.questions = []questions.Open{q} })
			refused("one", http.StatusConflict, "read it again")
		})
	}
	s.change(func() { s.questions = []questions.Open{asksToRun("one", "rm a")}; s.rule = "rm" })
	refused("one", http.StatusConflict, "read it again") // Always would write more.
	s.change(func() { s.rule = "rm a" })
	refused("two", http.StatusConflict, "not asked any more")
	s.change(func() { s.refuses = questions.ErrNotOpen })
	refused("one", http.StatusConflict, "not asked any more") // Another was sooner.
	s.change(func() { s.refuses = questions.ErrWithin })
	refused("one", http.StatusForbidden, "cannot answer")
	s.change(func() { s.refuses, s.questions = nil, nil })
	refused("one", http.StatusConflict, "not asked any more") // It was withdrawn.

	later := asksToRun("one", "rm a")
	later.Age, later.Left = time.Hour, time.Second
	s.change(func() { s.questions = []questions.Open{later} })
	status, body := p.answers("one", yes, nil)
	assert.Equal(t, http.StatusOK, status, "time changes nothing: %s", body)
}

func TestAnAnswerThatIsNotOfferedIsRefused(t *testing.T) {
	s := newStand()
	s.questions = []questions.Open{asksToRun("one", "rm a"), asksForPassword("two", "p")}
	p := serveWith(t, s, &page.Options{Answering: true})
	long := strings.Repeat("x", 1024)
	for name, row := range map[string]struct {
		id string
		a  page.Answer
	}{
		"no answer": {"one", page.Answer{}}, "of another kind": {"one", page.Answer{Answer: page.Give}}, "not offered": {"one", page.Answer{Answer: page.ForSession}},
		"a yes for a password": {"two", page.Answer{Answer: page.Once}}, "an empty password": {"two", page.Answer{Answer: page.Give}},
		"two lines": {"two", page.Answer{Answer: page.Give, Secret: []byte("a\nb")}}, "NUL": {"two", page.Answer{Answer: page.Give, Secret: []byte("a\x00")}},
		"a long password": {"two", page.Answer{Answer: page.Give, Secret: []byte(long)}}, "a long reason": {"one", page.Answer{Answer: page.No, Reason: long}},
		"a secret that nobody wants": {"one", page.Answer{Answer: page.Once, Secret: []byte("x")}}, "a reason for a yes": {"one", page.Answer{Answer: page.Once, Reason: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			row.a.Digest = p.sheet(row.id).Digest
			status, body := p.answers(row.id, row.a, nil)
			assert.Equal(t, http.StatusBadRequest, status, body)
			assert.Empty(t, s.answers)
		})
	}
}

func TestAnAnswerFromElsewhereIsRefused(t *testing.T) {
	s := newStand()
	s.questions = []questions.Open{asksToRun("one", "rm a")}
	p := serveWith(t, s, &page.Options{Answering: true})
	yes := page.Answer{Digest: p.sheet("one").Digest, Answer: page.Once}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	large := bytes.Repeat([]byte("x"), 16<<10+1)
	for name, row := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"no token":         {func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"another token":    {header("Authorization", "Bearer "+strings.ToLower(token)), 401},
		"token in a query": {func(r *http.Request) { r.Header.Del("Authorization"); r.URL.RawQuery = "token=" + token }, 401},
		"no origin":        {func(r *http.Request) { r.Header.Del("Origin") }, 403},
		"another origin":   {header("Origin", "https://evil.example"), 403},
		"a frame, a file":  {header("Origin", "null"), 403},
		"another port":     {header("Origin", "http://127.0.0.1:1"), 403},
		"another site":     {header("Sec-Fetch-Site", "same-site"), 403},
		"another host":     {func(r *http.Request) { r.Host = "evil.example" }, 403},
		"a form":           {header("Content-Type", "application/x-www-form-urlencoded"), 415},
		"text":             {header("Content-Type", "text/plain"), 415},
		"no type":          {func(r *http.Request) { r.Header.Del("Content-Type") }, 415},
		"PUT":              {func(r *http.Request) { r.Method = http.MethodPut }, 405},
		"too long": {func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(large)), int64(len(large))
		}, 413},
		"of no length": {func(r *http.Request) { r.ContentLength = -1 }, 413},
		"to the list":  {func(r *http.Request) { r.URL.Path = "/api/questions" }, 405},
		"no JSON":      {func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("s3cret")), 6 }, 400},
		"more than that": {func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(`{"x": "s3cret"}`)), 15
		}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := p.answers("one", yes, row.change)
			assert.Equal(t, row.want, status, body)
			assert.NotContains(t, body, "s3cret", "errors of JSON quote it")
			assert.Empty(t, s.answers)
		})
	}
	status, body := p.answers("one", yes, header("Sec-Fetch-Site", "same-origin"))
	assert.Equal(t, 200, status, body)
}
