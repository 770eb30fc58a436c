package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// stand is what stands in for the sessions of a machine. It counts what is open.
type stand struct {
	mu        sync.Mutex
	id        string
	created   time.Time
	events    []session.Event
	news      chan struct{}
	made      chan struct{} // there may be a new session
	ended     bool
	lists     int // how often it was asked
	open      int // sessions that are not disconnected
	watchers  int // calls of Events that wait
	jobs      jobs.Handle
	terminals *terminal.Registry
	questions []questions.Open
	rule      string // that "always" would write
	answers   []page.Answer
	refuses   error // what an answer comes to
}

func newStand() *stand {
	return &stand{id: "k1", news: make(chan struct{}), made: make(chan struct{}, 1)}
}

func (s *stand) change(how func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	how()
	close(s.news)
	s.news = make(chan struct{})
}

// puts has things happen in the session.
func (s *stand) puts(events ...session.Event) {
	s.change(func() { s.events = append(s.events, events...) })
}

func (s *stand) is(counts func() bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return counts()
}

func (s *stand) List(context.Context) ([]keeper.Listed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	return []keeper.Listed{
		{Record: keeper.Record{ID: "k0", Name: "build", End: &keeper.End{Why: "closed", Dir: "/old"}, Spec: forkOf("../k8", "a lie")}},
		{Record: keeper.Record{ID: s.id, Name: "build", Spec: forkOf("k8", "the.parent")}, Alive: true, Info: &session.Info{
			Name: "build", State: "idle", Dir: "/src", Running: strings.Repeat("make ", 10000), Jobs: 1, Terminals: 2, Checkpoints: []string{"clean"}, Policy: "read-only",
		}},
		{Record: keeper.Record{ID: "k2", Name: "mute"}, Alive: true},
	}, nil
}

// forkOf is how a session is made that was forked from another one.
func forkOf(id, name string) keeper.Spec {
	return keeper.Spec{ForkedFrom: &keeper.Parent{ID: id, Name: name}}
}

func (s *stand) Open(_ context.Context, name string) (page.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name != "build" {
		return nil, &session.Error{Op: "open", Session: name, Err: session.ErrNotFound}
	}
	s.open++
	return &opened{stand: s, id: s.id}, nil
}

func (s *stand) Questions(context.Context) ([]questions.Open, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.questions, nil
}

func (s *stand) Question(_ context.Context, id string) (questions.Open, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.questions, func(q questions.Open) bool { return q.ID == id })
	if i < 0 {
		return questions.Open{}, questions.ErrNotOpen
	}
	return s.questions[i], nil
}

func (s *stand) AwaitQuestion(ctx context.Context, known func(id string) bool) error {
	return s.await(ctx, func() bool {
		return slices.ContainsFunc(s.questions, func(q questions.Open) bool { return !known(q.ID) })
	})
}

// await waits for something. It holds mu while it looks.
func (s *stand) await(ctx context.Context, is func() bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !is() {
		news := s.news
		s.mu.Unlock()
		var err error
		select {
		case <-news:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		s.mu.Lock()
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *stand) Made() (<-chan struct{}, func(), error) { return s.made, func() {}, nil }

// Sheet shows the texts as they are, and offers all there is.
func (s *stand) Sheet(q questions.Open) page.Sheet {
	s.mu.Lock()
	defer s.mu.Unlock()
	if q.Password != nil {
		return page.Sheet{Title: q.Password.Prompt, Brief: "a program asks", Choices: []page.Choice{{Answer: page.Give, Field: page.Password}, {Answer: page.No}}}
	}
	return page.Sheet{
		Title: "may this run?", Brief: "brief", Parts: []page.Part{{Text: q.Question.Script}},
		Choices: []page.Choice{{Answer: page.Once}, {Answer: page.Always, Rules: []string{s.rule}}, {Answer: page.No, Field: page.Reason}},
	}
}

func (s *stand) Answer(_ context.Context, q questions.Open, a page.Answer) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuses != nil {
		return "", s.refuses
	}
	a.Secret = slices.Clone(a.Secret)
	s.answers = append(s.answers, a)
	s.questions = slices.DeleteFunc(slices.Clone(s.questions), func(one questions.Open) bool { return one.ID == q.ID })
	return "said " + a.Answer, nil
}

type opened struct {
	*stand
	id   string
	once sync.Once
}

func (o *opened) ID() string                 { return o.id }
func (o *opened) SessionID() string          { return o.id }
func (o *opened) Created() time.Time         { return o.created }
func (o *opened) Jobs() (jobs.Handle, error) { return o.jobs, nil }
func (o *opened) Terminals() *remote.Client {
	c, err := remote.Dial(context.Background(), o.terminals.Dir(), o.terminals.Owner())
	if err != nil {
		panic(err) // The test has served them.
	}
	return c
}

func (o *opened) Disconnect() {
	o.once.Do(func() {
		o.mu.Lock()
		o.open--
		o.mu.Unlock()
	})
}

func (o *opened) Noticed(ctx context.Context, after int64) (list []session.Event, err error) {
	err = o.await(ctx, func() bool {
		if o.ended {
			return true
		}
		for _, e := range o.events {
			if e.Seq > after && e.Notice != nil {
				list = append(list, e)
			}
		}
		return len(list) > 0
	})
	if err == nil && len(list) == 0 {
		err = session.ErrClosed
	}
	return list, err
}

func (o *opened) Events(ctx context.Context, after int64) ([]session.Event, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		if o.ended {
			return nil, session.ErrClosed
		}
		if i := slices.IndexFunc(o.events, func(e session.Event) bool { return e.Seq > after }); i >= 0 {
			return slices.Clone(o.events[i:]), nil
		}
		news := o.news
		o.watchers++
		o.mu.Unlock()
		var err error
		select {
		case <-news:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		o.mu.Lock()
		o.watchers--
		if err != nil {
			return nil, err
		}
	}
}

const token = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// served is a page that is served at a port of this machine.
type served struct {
	t      *testing.T
	addr   string
	client *http.Client
	stop   func()
}

func serve(t *testing.T, s page.Sessions) *served {
	t.Helper()
	return serveWith(t, s, nil)
}

func serveWith(t *testing.T, s page.Sessions, opts *page.Options) *served {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h, err := page.New(s, token, l.Addr(), opts)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- page.Serve(ctx, l, h) }()
	transport := &http.Transport{MaxConnsPerHost: 0}
	p := &served{t: t, addr: l.Addr().String(), client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	p.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
		transport.CloseIdleConnections()
	})
	t.Cleanup(p.stop)
	return p
}

// ask sends a request as the page does, unless change says otherwise.
func (p *served) ask(path string, change func(*http.Request)) *http.Response {
	p.t.Helper()
	r, err := http.NewRequestWithContext(testenv.Context(p.t), http.MethodGet, "http://"+p.addr+path, nil)
	require.NoError(p.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	if change != nil {
		change(r)
	}
	answer, err := p.client.Do(r)
	require.NoError(p.t, err)
	p.t.Cleanup(func() { _ = answer.Body.Close() }) // It may have been read.
	return answer
}

// get asks for a value.
func (p *served) get(path string, value any) {
	p.t.Helper()
	answer := p.ask(path, nil)
	body, err := io.ReadAll(answer.Body)
	require.NoError(p.t, err)
	require.Equal(p.t, http.StatusOK, answer.StatusCode, "%s", body)
	require.NoError(p.t, json.Unmarshal(body, value), "%s", body)
}

// line is one of a stream.
type line struct {
	Kind, Keeper, Why, Error, Script, Session string
	Seq, Missed                               int64
	Text                                      []byte
	Notice                                    page.Notice
	Notices                                   int64
	Resumed, Stderr                           bool
	ExitCode                                  int     `json:"exit_code"`
	Cut                                       int     `json:"cut"`
	Elapsed                                   float64 `json:"elapsed_ms"`
	CPU                                       float64 `json:"cpu_ms"`
	Notes                                     []string
}

// stream is one that is read.
type stream struct {
	t    *testing.T
	body io.ReadCloser
	in   *bufio.Reader
}

func (p *served) stream(query string) *stream {
	p.t.Helper()
	answer := p.ask("/api/events?session=build"+query, nil)
	require.Equal(p.t, http.StatusOK, answer.StatusCode)
	return &stream{p.t, answer.Body, bufio.NewReader(answer.Body)}
}

// next waits for a line that says something.
func (s *stream) next() (l line) {
	s.t.Helper()
	for {
		b, err := s.in.ReadBytes('\n')
		require.NoError(s.t, err)
		if len(b) > 1 {
			require.NoError(s.t, json.Unmarshal(b, &l), "%s", b)
			return l
		}
	}
}

func (s *stand) Machines() []page.Machine { return nil }
