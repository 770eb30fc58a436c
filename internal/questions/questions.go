// Package questions lets a program ask the person who uses the machine, at whatever terminal that person sits. A question is a socket in
// a directory of the user's, for as long as it is asked; who answers connects to it. There is nothing else to keep, and nothing
// left of a program that was killed but a socket at which nobody listens, which the next who looks removes.
//
// An answer is taken from a process of the same user that belongs to no session, job or terminal of limpet: what runs there is
// asked about, and may not answer. It is told by the marks in the environment of the process and of those above it, on Linux alone.
package questions

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/socket"
	"github.com/limpet-sh/limpet/internal/statedir"
)

// Open is a question that is asked now.
type Open struct {
	ID       string            `json:"id"`
	From     string            `json:"from"` // the program that asks, and for whom, in words
	PID      int               `json:"pid"`
	Session  string            `json:"session"`
	Question approval.Question `json:"question"`
	Stdin    string            `json:"stdin,omitempty"` // what the script reads

	// Password is what a program wants to know, instead of the Question.
	Password *command.PasswordQuestion `json:"password,omitempty"`

	Age  time.Duration `json:"age_ns"`  // how long it is asked
	Left time.Duration `json:"left_ns"` // how long it will be asked; 0: as long as the caller waits
}

// answer is what comes of a person.
type answer struct {
	Answer approval.Answer `json:"answer"`
	Reason string          `json:"reason,omitempty"`

	Given  bool   `json:"given,omitempty"` // the Secret, which may be empty
	Secret []byte `json:"secret,omitempty"`
}

// mostAnswer bounds an answer, in bytes.
const mostAnswer = 64 << 10

// ErrNotOpen means that a question is not asked any more: somebody has answered it, or whoever asked gave up.
var ErrNotOpen = errors.New("it is not asked any more")

// ErrWithin means that whoever would answer runs in a session of limpet.
var ErrWithin = errors.New("what runs in a session, a job or a terminal of limpet cannot answer: do it at a terminal of your own")

const ext = ".question"

// path is where a question is, and over where there is no answer until it is over.
const (
	path = "/v1/question"
	over = "/over"
)

// Ask asks a question in a directory, which is made if it must be, and waits for the answer; ctx bounds that, and the error is
// its cause then. Of the question ID, PID, Age and Left are set.
func Ask(ctx context.Context, dir string, q Open) (approval.Reply, error) {
	a, err := ask(ctx, dir, q)
	return approval.Reply{Answer: a.Answer, Reason: a.Reason}, err
}

// ErrRefused means that a person has not given a password.
var ErrRefused = errors.New("the answer was no")

// AskPassword is Ask for a question with a Password. The caller overwrites the answer.
func AskPassword(ctx context.Context, dir string, q Open) ([]byte, error) {
	a, err := ask(ctx, dir, q)
	if err == nil && !a.Given {
		err = ErrRefused
	}
	return a.Secret, err
}

func ask(ctx context.Context, dir string, q Open) (answer, error) {
	fail := func(err error) (answer, error) {
		return answer{}, fmt.Errorf("asking a person: %w", err)
	}
	err := private.MkdirAll(dir)
	if err == nil {
		err = statedir.Private(dir)
	}
	if err != nil {
		return fail(err)
	}
	q.ID, q.PID = strings.ToLower(rand.Text()[:8]), os.Getpid()
	l, err := socket.Listen(dir, q.ID+ext)
	if err != nil {
		return fail(err)
	}
	defer os.Remove(filepath.Join(dir, q.ID+ext)) // Whoever lists the questions may have been sooner.
	a := &asked{question: q, since: time.Now(), replies: make(chan answer, 1)}
	a.until, _ = ctx.Deadline()
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path, a.show)
	mux.HandleFunc("POST "+path, a.answer)
	mux.HandleFunc("GET "+path+over, func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		refuse(w, http.StatusConflict, ErrNotOpen)
	})
	server := socket.NewServer(mux, func(w http.ResponseWriter, why error) { refuse(w, http.StatusForbidden, why) })
	server.Serve(l)
	defer server.Close(ErrNotOpen)
	select {
	case reply := <-a.replies:
		return reply, nil
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
}

// asked is a question that is open.
type asked struct {
	question     Open
	since, until time.Time
	replies      chan answer // has room for the one that there is
	answered     atomic.Bool // the socket is there for an instant more
}

func (a *asked) show(w http.ResponseWriter, _ *http.Request) {
	if a.answered.Load() {
		refuse(w, http.StatusConflict, ErrNotOpen)
		return
	}
	q := a.question
	q.Age = time.Since(a.since)
	if !a.until.IsZero() {
		q.Left = max(time.Until(a.until), 1)
	}
	jsonhttp.Write(w, http.StatusOK, q)
}

func (a *asked) answer(w http.ResponseWriter, r *http.Request) {
	if Within(socket.RequestPID(r.Context())) {
		refuse(w, http.StatusForbidden, ErrWithin)
		return
	}
	var in answer
	if err := jsonhttp.Decode(w, r, mostAnswer, &in); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	if !a.answered.CompareAndSwap(false, true) {
		refuse(w, http.StatusConflict, ErrNotOpen)
		return
	}
	a.replies <- in
	jsonhttp.Write(w, http.StatusOK, struct{}{})
}

// refusal is the body of an answer that is an error.
type refusal struct {
	Error string `json:"error"`
}

func refuse(w http.ResponseWriter, status int, why error) {
	jsonhttp.Write(w, status, refusal{why.Error()})
}

// Within reports whether a process, or one above it, carries a mark of limpet's: it belongs to a session, a job or a terminal. On Linux a
// process that is not known is in another namespace, as in a sandbox; elsewhere none is known.
func Within(pid int) bool {
	if runtime.GOOS != "linux" {
		return false
	}
	if pid == 0 {
		return true
	}
	for range 1000 { // It is a tree; a process that ended may have lent its number to a child of it.
		if pid <= 1 {
			return false
		}
		for _, name := range environ.Marks {
			if _, marked := proc.Env(pid, name); marked {
				return true
			}
		}
		st, err := proc.Read(pid)
		if err != nil {
			return true // It has just ended: nobody who waits for an answer does.
		}
		pid = st.PPID
	}
	return true
}

// List returns the questions that are asked in a directory, the oldest first. Sockets at which nobody listens are removed.
func List(ctx context.Context, dir string) ([]Open, error) {
	list, _, err := look(ctx, dir)
	return list, err
}

// look is List, and counts the programs that ask, and do not say what.
func look(ctx context.Context, dir string) (list []Open, mute int, err error) {
	found, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	for _, one := range found {
		id, is := strings.CutSuffix(one.Name(), ext)
		if !is {
			continue
		}
		each, cancel := context.WithTimeout(ctx, askPatience)
		q, err := get(each, dir, id)
		cancel()
		switch {
		case err == nil:
			list = append(list, q)
		case ctx.Err() != nil:
			return nil, 0, context.Cause(ctx)
		case !errors.Is(err, ErrNotOpen):
			mute++
		}
	}
	slices.SortFunc(list, func(a, b Open) int { return cmp.Compare(b.Age, a.Age) })
	return list, mute, nil
}

// askPatience is how long a program that asks may take to say what. One that stands still, or says what is no question, hides no others.
const askPatience = 2 * time.Second

// get returns a question. Its ID is that of the socket, whatever is said there: an answer goes to who has asked, and to nobody else.
func get(ctx context.Context, dir, id string) (q Open, err error) {
	err = call(ctx, dir, id, jsonhttp.Request{Method: http.MethodGet}, &q)
	q.ID = id
	return q, err
}

// Answer answers a question. The error is ErrNotOpen if it is not asked any more, and ErrWithin if this program may not.
func Answer(ctx context.Context, dir, id string, reply approval.Reply) error {
	return post(ctx, dir, id, answer{Answer: reply.Answer, Reason: reply.Reason})
}

// AnswerPassword is Answer for a question with a Password; given is false for a no.
func AnswerPassword(ctx context.Context, dir, id string, secret []byte, given bool) error {
	return post(ctx, dir, id, answer{Given: given, Secret: secret})
}

func post(ctx context.Context, dir, id string, a answer) error {
	body, err := json.Marshal(a)
	if err != nil {
		return err
	}
	defer clear(body) // It may be secret.
	return call(ctx, dir, id, jsonhttp.Request{Method: http.MethodPost, Content: body}, &struct{}{})
}

// Over waits until a question is not asked any more, and returns nil then. Else the error is the cause of ctx.
func Over(ctx context.Context, dir, id string) error {
	err := call(ctx, dir, id, jsonhttp.Request{Method: http.MethodGet, Path: over}, &struct{}{})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, ErrNotOpen) {
		return nil
	}
	return err
}

// call asks who asks a question.
func call(ctx context.Context, dir, id string, r jsonhttp.Request, value any) error {
	transport := jsonhttp.NewDirect(func(ctx context.Context) (net.Conn, error) { return socket.Dial(ctx, dir, id+ext) })
	c := jsonhttp.NewClient(transport, jsonhttp.Errors{Gone: ErrNotOpen, Unreachable: errUnreachable, Closed: ErrNotOpen, Said: said})
	defer c.Close()
	r.Path = strings.TrimPrefix(path, "/v1") + r.Path
	err := c.Call(ctx, r, value)
	if errors.Is(err, ErrNotOpen) {
		_ = os.Remove(filepath.Join(dir, id+ext)) // It is over, or will be in an instant. Another may have been sooner.
	}
	return err
}

var errUnreachable = errors.New("the program that asks does not answer")

// said makes an error of what a program says that asks.
func said(b []byte) error {
	var r refusal
	if err := json.Unmarshal(b, &r); err != nil || r.Error == "" {
		return nil
	}
	for _, known := range []error{ErrNotOpen, ErrWithin} {
		if r.Error == known.Error() {
			return known
		}
	}
	return fmt.Errorf("the program that asks says: %s", r.Error)
}
