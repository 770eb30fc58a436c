package page

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/questions"
)

// Desk knows how questions are put to a person, and answers them. Its methods are called from several goroutines.
type Desk interface {
	// Sheet is what a person is shown of a question.
	Sheet(q questions.Open) Sheet

	// Answer answers a question by one of the Choices of its Sheet. It returns the answer in words, without what is secret in it. The error
	// is questions.ErrNotOpen if nobody asks it any more.
	Answer(ctx context.Context, q questions.Open, a Answer) (said string, err error)
}

// Sheet is what a person is shown of a question. In its texts nothing is hidden, and nothing turns the direction of text: whoever makes
// one escapes what does, but for line breaks.
type Sheet struct {
	Title   string   `json:"title"`   // who asks, and for what
	Brief   string   `json:"brief"`   // the same in some words, for a list; without the words of a program that asks for a password
	Parts   []Part   `json:"parts"`   // what would run, and what it reads; or the words of a program
	Notes   []string `json:"notes"`   // why it is asked, and other lines to be read before an answer
	Choices []Choice `json:"choices"` // the answers that there are
	Command string   `json:"command"` // how it is answered at a terminal
}

// Part is a text of others.
type Part struct {
	Title string `json:"title,omitempty"`
	Text  string `json:"text"`
}

// Choice is an answer that a question offers.
type Choice struct {
	Answer string   `json:"answer"`
	Text   string   `json:"text"`            // on its button
	Rules  []string `json:"rules,omitempty"` // that it would write
	Field  string   `json:"field,omitempty"` // what a person may type with it: a Reason; or must: Name, Password
}

// The answers, and the fields.
const (
	Once       = "once"
	ForSession = "session"
	Always     = "always"
	No         = "no"
	Give       = "give" // what a program wants to know

	Reason   = "reason"
	Name     = "name"
	Password = "password"
)

// Answer is what comes of a person.
type Answer struct {
	Digest string `json:"digest"` // of what the person was shown
	Answer string `json:"answer"`
	Reason string `json:"reason"`
	Secret []byte `json:"secret"` // as base64, so that it is overwritten when it was given
}

const (
	questionPath = "/api/questions/" // and the ID

	mostAnswer = 16 << 10 // bytes of a body
	mostField  = 1023     // bytes that are typed: sudo and ssh take no more
	mostLogged = 200      // answers that are remembered

	bodyPatience = 10 * time.Second // for a body to come whole
)

// sheetJSON is a question in full.
type sheetJSON struct {
	Digest string `json:"digest"`
	Sheet
}

// digestOf tells a question from every other, and from the same one if a person would be shown something else, as another rule.
func digestOf(q questions.Open, s Sheet) string {
	q.Age, q.Left = 0, 0
	b, err := json.Marshal(struct {
		Question questions.Open
		Sheet    Sheet
	}{q, s})
	if err != nil {
		return "" // It has texts and numbers alone. No answer has this digest.
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// question returns a question that is asked now.
func (h *Handler) question(ctx context.Context, id string) (q questions.Open, s Sheet, err error) {
	if q, err = h.sessions.Question(ctx, id); errors.Is(err, questions.ErrNotOpen) {
		return q, s, errNotAsked
	} else if err != nil {
		return q, s, err
	}
	return q, h.sessions.Sheet(q), nil
}

var errNotAsked = errors.New("this question is not asked any more: somebody has answered it, or the program that asked has given up")

// serveQuestion answers with a question in full, or takes the answer to it.
func (h *Handler) serveQuestion(w http.ResponseWriter, r *http.Request, as rights, id string) {
	if r.Method == http.MethodPost {
		h.serveAnswer(w, r, id)
		return
	}
	h.answered(w, r, as, r.URL.Path, func(ctx context.Context) (any, error) {
		q, s, err := h.question(ctx, id)
		return sheetJSON{digestOf(q, s), s}, err
	})
}

// serveAnswer takes the answer to a question, which is refused if the person was shown another one.
func (h *Handler) serveAnswer(w http.ResponseWriter, r *http.Request, id string) {
	a, status, err := readAnswer(w, r) // First: what is not read would have the connection be reset, and the reason be lost.
	defer clear(a.Secret)
	switch {
	case err != nil:
		refuse(w, status, err.Error())
		return
	case !h.opts.Answering:
		refuse(w, http.StatusForbidden, fmt.Sprintf("nothing is answered here: limpet serve was started without --allow-answers; answer at a terminal: limpet approvals answer %s", at(cut(id, mostBrief))))
		return
	case fromSession(r):
		refuse(w, http.StatusForbidden, questions.ErrWithin.Error())
		return
	case !h.enter():
		refuse(w, http.StatusServiceUnavailable, errClosed.Error())
		return
	}
	defer h.work.Done()
	said, err := h.answer(id, a)
	if err != nil {
		refuse(w, statusOf(err), err.Error())
		return
	}
	jsonhttp.Write(w, http.StatusOK, struct {
		Said string `json:"said"`
	}{said})
}

// fromSession reports whether a request comes from a process of this machine that belongs to a session, a job or a terminal of limpet.
// It is asked about, and the token may have come into its hands. A process that cannot be looked at is none; one that has closed its end by
// then could be any, and no browser does that which waits for what becomes of an answer.
func fromSession(r *http.Request) bool {
	server, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	to, err := netip.ParseAddrPort(server.String())
	if err != nil {
		return false
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	pids, gone := proc.Connected(from, to)
	return gone || slices.ContainsFunc(pids, questions.Within)
}

// readAnswer reads the body of a request. The caller overwrites the answer's Secret, also after an error.
func readAnswer(w http.ResponseWriter, r *http.Request) (a Answer, status int, err error) {
	body, status, err := readBody(w, r, bodyPatience)
	defer clear(body)
	if err != nil {
		return a, status, err
	}
	// Not by a Decoder, which has a copy of its own of what may be secret.
	if err := json.Unmarshal(body, &a); err != nil || a.Digest == "" || a.Answer == "" {
		return a, http.StatusBadRequest, errors.New(`an answer is {"digest", "answer", "reason", "secret"}`) // The error may quote it.
	}
	return a, 0, nil
}

// readBody reads the body of a request, which has patience to come. The guard in guard.go has seen that it is not too long. readBody returns what has come of it also with an error.
func readBody(w http.ResponseWriter, r *http.Request, patience time.Duration) (body []byte, status int, err error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return nil, http.StatusUnsupportedMediaType, errors.New("what is sent must be application/json")
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(patience)) // A connection has deadlines.
	body = make([]byte, r.ContentLength)
	n, err := io.ReadFull(r.Body, body)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return body, http.StatusRequestTimeout, fmt.Errorf("of the %d bytes that were announced %d came within %v: send it again", len(body), n, patience)
	case err != nil: // It has the addresses of the connection, which nobody asked for.
		return body, http.StatusBadRequest, fmt.Errorf("of the %d bytes that were announced %d came: send it again", len(body), n)
	}
	return body, 0, nil
}

// badAnswerError is one that a question does not offer.
type badAnswerError string

func (e badAnswerError) Error() string { return string(e) }

// errChanged refuses an answer to something else.
var errChanged = errors.New("the question is another one now than the one that was shown: read it again")

// answer answers a question that waits. It is not given up if the browser goes: nobody would know then what has become of it.
func (h *Handler) answer(id string, a Answer) (said string, err error) {
	ctx, cancel := context.WithTimeout(h.life, askPatience)
	defer cancel()
	q, s, err := h.question(ctx, id)
	if err != nil {
		return "", err
	}
	if a.Digest != digestOf(q, s) {
		return "", errChanged
	}
	i := slices.IndexFunc(s.Choices, func(c Choice) bool { return c.Answer == a.Answer })
	if i < 0 {
		return "", badAnswerError(fmt.Sprintf("the question does not offer the answer %.20q", a.Answer))
	}
	if err := a.check(s.Choices[i].Field); err != nil {
		return "", err
	}
	done, err := h.acts(Act{Kind: AnswerAct, Session: q.Session, About: q.ID, Script: s.Brief, Answer: a.words()})
	if err != nil {
		return "", err
	}
	said, err = h.sessions.Answer(ctx, q, a)
	done(err)
	if errors.Is(err, questions.ErrNotOpen) {
		err = errNotAsked
	}
	h.memo.forget("/api/questions", questionPath+id)
	if err != nil {
		return "", err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.log = append(h.log, loggedJSON{time.Now(), q.From, q.Session, s.Brief, said})
	h.log = slices.Clone(lastOf(h.log, mostLogged)) // The older ones are not held on to.
	return said, nil
}

// words are the answer, without what is secret in it.
func (a Answer) words() string {
	if a.Reason != "" {
		return a.Answer + ": " + a.Reason
	}
	return a.Answer
}

// check returns an error if what was typed is not fit for a field.
func (a Answer) check(field string) error {
	switch {
	case len(a.Reason) > mostField, len(a.Secret) > mostField:
		return badAnswerError(fmt.Sprintf("the answer has more than %d bytes", mostField))
	case field != Reason && a.Reason != "", field != Name && field != Password && len(a.Secret) > 0:
		return badAnswerError("the answer has more in it than the question asks for")
	case (field == Name || field == Password) && len(a.Secret) == 0:
		return badAnswerError("the answer is empty: type something, or choose no")
	case bytes.ContainsAny(a.Secret, "\x00\r\n"):
		return badAnswerError("the answer must be one line")
	}
	return nil
}

// loggedJSON is an answer that was given by this program.
type loggedJSON struct {
	At      time.Time `json:"at"`
	From    string    `json:"from"`
	Session string    `json:"session,omitempty"`
	Brief   string    `json:"brief"`
	Answer  string    `json:"answer"`
}

// questionJSON is one question of the list.
type questionJSON struct {
	ID          string  `json:"id"`
	Digest      string  `json:"digest"`
	From        string  `json:"from"`
	Session     string  `json:"session"`
	Dir         string  `json:"dir,omitempty"`
	Script      string  `json:"script,omitempty"` // the beginning; of a question for a password the program that asks
	Reason      string  `json:"reason"`
	Password    bool    `json:"password,omitempty"`
	AgeSeconds  float64 `json:"age_seconds"`
	LeftSeconds float64 `json:"left_seconds,omitempty"` // 0: as long as the program that asks waits
}

func toQuestionJSON(q questions.Open, s Sheet) questionJSON {
	out := questionJSON{
		ID: q.ID, Digest: digestOf(q, s), From: cut(q.From, mostBrief), Session: q.Session, AgeSeconds: q.Age.Seconds(), LeftSeconds: q.Left.Seconds(),
	}
	if p := q.Password; p != nil {
		out.Password, out.Reason = true, "it asks: "+p.Prompt
		if len(p.Chain) > 0 {
			out.Script = p.Chain[0].Command
		}
	} else {
		out.Dir, out.Script = q.Question.Dir, q.Question.Script
		out.Reason, _ = q.Question.Why()
	}
	out.Script, out.Reason = cut(out.Script, mostBrief), cut(out.Reason, mostBrief)
	return out
}

type questionsJSON struct {
	Questions []questionJSON `json:"questions"` // the oldest first
	Answering bool           `json:"answering"` // whether they may be answered on the page
	Log       []loggedJSON   `json:"log"`       // the last answers of this program, the newest last
}

func (h *Handler) listQuestions(ctx context.Context) (any, error) {
	list, err := h.sessions.Questions(ctx)
	if err != nil {
		return nil, err
	}
	out := questionsJSON{Questions: []questionJSON{}, Answering: h.opts.Answering, Log: h.logged()}
	for _, one := range list[:min(len(list), mostQuestions)] {
		out.Questions = append(out.Questions, toQuestionJSON(one, h.sessions.Sheet(one)))
	}
	return out, nil
}

func (h *Handler) logged() []loggedJSON {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]loggedJSON{}, h.log...)
}
