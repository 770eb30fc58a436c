package page_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// shared is a share link.
type shared struct {
	ID, Token string
	Expires   time.Time
}

// wholePage returns a page of a session with jobs and terminals, and a question that waits.
func wholePage(t *testing.T, opts *page.Options) (*served, *stand) {
	t.Helper()
	s := newStand()
	all, err := jobs.Open(testenv.TempDir(t), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, all.Close()) })
	s.terminals, err = terminal.Open(testenv.TempDir(t), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.terminals.Close()) })
	server, err := remote.Serve(s.terminals)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	s.jobs, s.questions = all, []questions.Open{asksToRun("one", "rm secret")}
	p := serveWith(t, s, opts)
	t.Cleanup(func() {
		p.stop()
		assert.True(t, s.is(func() bool { return s.open == 0 }), "each request disconnects its session")
	})
	return p, s
}

// by has a request sent with the token of a share link.
func (s shared) by(change func(*http.Request)) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Authorization", "Bearer "+s.Token)
		if change != nil {
			change(r)
		}
	}
}

// posts has a request be a POST of the page, with a body unless it is nil.
func (p *served) posts(content any) func(*http.Request) {
	return func(r *http.Request) {
		r.Method = http.MethodPost
		r.Header.Set("Origin", "http://"+p.addr)
		if content == nil {
			return
		}
		b, err := json.Marshal(content)
		require.NoError(p.t, err)
		r.Header.Set("Content-Type", "application/json")
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(b)), int64(len(b))
	}
}

// wants is the body of a request for a share link of the session, with some of it changed.
func wants(change map[string]any) map[string]any {
	body := map[string]any{"session": "build", "id": "k1", "seconds": 3600}
	for name, value := range change {
		body[name] = value
	}
	return body
}

// share makes a share link.
func (p *served) share(change map[string]any) (s shared) {
	p.t.Helper()
	answer := p.ask("/api/shares", p.posts(wants(change)))
	b, err := io.ReadAll(answer.Body)
	require.NoError(p.t, err)
	require.Equal(p.t, http.StatusOK, answer.StatusCode, "%s", b)
	require.NoError(p.t, json.Unmarshal(b, &s))
	require.GreaterOrEqual(p.t, len(s.Token), 26)
	return s
}

func (p *served) revokes(s shared) {
	p.t.Helper()
	require.Equal(p.t, http.StatusOK, p.ask("/api/shares/"+s.ID+"/revoke", p.posts(nil)).StatusCode)
}

func (p *served) statusOf(path string, change func(*http.Request)) int {
	p.t.Helper()
	return p.ask(path, change).StatusCode
}

// What a share link shows and allows, and each way in which it could be stretched.
func TestAShareLinkAllowsWhatItIsForAndNothingElse(t *testing.T) {
	casts := testenv.TempDir(t)
	require.NoError(t, os.WriteFile(filepath.Join(casts, "one.cast"), []byte(castHead+`[1,"o","rm secret"]`), 0o600))
	root, err := os.OpenRoot(casts)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, root.Close()) })
	p, s := wholePage(t, &page.Options{Typing: true, Answering: true, Recordings: root})
	job, err := s.jobs.(*jobs.Registry).Start(testenv.Context(t), jobs.Spec{Command: "echo of the job; exec sleep 1000", Session: "build"})
	require.NoError(t, err)
	one, other := startOn(t, s.terminals, "exec sleep 1000"), startOn(t, s.terminals, "exec sleep 1000")
	links := map[string]shared{
		"view": p.share(nil), "type": p.share(map[string]any{"typing": true}),
		"terminal": p.share(map[string]any{"terminal": one.ID()}), "type there": p.share(map[string]any{"terminal": one.ID(), "typing": true}),
	}
	const allowed, forbidden = http.StatusOK, http.StatusForbidden
	inJob := "/api/jobs/" + job.ID
	sheet := p.sheet("one")
	for _, row := range []struct {
		what, path string
		post       any // what is sent by POST; "" for no body
		want       map[string]int
	}{
		{"the list", "/api/sessions", nil, map[string]int{"view": allowed, "type": allowed, "terminal": allowed, "type there": allowed}},
		{"its terminals", "/api/terminals?session=build", nil, map[string]int{"view": allowed, "type": allowed, "terminal": allowed, "type there": allowed}},
		{"its jobs", "/api/jobs?session=build", nil, map[string]int{"view": allowed, "type": allowed}},
		{"a log", inJob + "/log?session=build", nil, map[string]int{"view": allowed, "type": allowed}},
		{"a search", inJob + "/search?session=build&pattern=job", nil, map[string]int{"view": allowed, "type": allowed}},
		{"a stop of no job", "/api/jobs/nosuch/stop?session=build", "", map[string]int{"type": http.StatusNotFound}},
		{"questions", "/api/questions", nil, nil},
		{"a question", "/api/questions/one", nil, nil},
		{"an answer", "/api/questions/one", page.Answer{Digest: sheet.Digest, Answer: page.Once}, nil},
		{"metrics", "/metrics", nil, nil},
		{"recordings", "/api/recordings", nil, nil},
		{"a recording", "/api/recordings/one.cast", nil, nil},
		{"one, with its session", "/api/recordings/one.cast?session=build", nil, nil},
		{"one, as a log", "/api/recordings/one.cast/log?session=build&id=" + one.ID(), nil, nil},
		{"share links", "/api/shares", nil, nil},
		{"another share link", "/api/shares", wants(map[string]any{"typing": true, "seconds": 60}), nil},
		{"its own end", "/api/shares/" + links["type"].ID + "/revoke", "", nil},
		{"another one's jobs", "/api/jobs?session=mute", nil, nil},
		{"one that is not there", "/api/jobs?session=nosuch", nil, nil},
		{"both", "/api/jobs?session=mute&session=build", nil, nil},
		{"no name", "/api/jobs", nil, nil},
		{"another one's terminals", "/api/terminals?session=mute", nil, nil},
		{"another one's events", "/api/events?session=mute", nil, nil},
		{"notices", "/api/events?session=build&notices=", nil, nil},
		{"notices of all", "/api/events?notices=0", nil, nil},
		{"what is not known", "/api/terminals?session=build&all=1", nil, nil},
		{"another one's log", inJob + "/log?session=mute", nil, nil},
		{"a stop in another one", inJob + "/stop?session=mute", "", nil},
		{"what is not there", "/api/nosuch?session=build", nil, nil},
		{"what is not there of a job", inJob + "/nosuch?session=build", nil, nil},
		{"another way to write it", "/api/jobs/?session=build", nil, nil},
		{"the API", "/api", nil, nil},
	} {
		for name, link := range links {
			change := func(*http.Request) {}
			if row.post == "" {
				change = p.posts(nil)
			} else if row.post != nil {
				change = p.posts(row.post)
			}
			want := forbidden
			if status, ok := row.want[name]; ok {
				want = status
			}
			answer := p.ask(row.path, link.by(change))
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			assert.Equal(t, want, answer.StatusCode, "%s, by a link of kind %q: %s", row.what, name, body)
			for _, never := range []string{"mute", `"k2"`, `"k0"`, "rm secret", "password", "forked", "the.parent", `"k8"`, other.ID()} {
				if never == other.ID() && (name == "view" || name == "type") {
					continue
				}
				assert.NotContains(t, string(body), never, "%s, by a link of kind %q", row.what, name)
			}
		}
	}
	assert.Empty(t, s.answers)
	now, err := s.jobs.Get(job.ID)
	require.NoError(t, err)
	assert.False(t, now.State.Finished())

	for name, link := range links {
		for session, allows := range map[string]bool{"build": true, "mute": false} {
			for id, ofOne := range map[string]bool{one.ID(): true, other.ID(): false} {
				c, _, err := p.dial(nil)
				require.NoError(t, err)
				b := &socket{t: t, c: c}
				b.says(map[string]any{"token": link.Token, "session": session, "terminal": id})
				h, err := b.read(testenv.Context(t))
				if allows && (ofOne || name == "view" || name == "type") {
					require.NoError(t, err)
					assert.Equal(t, "hello", h.Kind)
					assert.Equal(t, name == "type" || name == "type there", h.Typing, name)
				} else {
					assert.Equal(t, websocket.StatusPolicyViolation, websocket.CloseStatus(err), "%s: %s %s", name, session, id)
				}
				_ = c.CloseNow() // It may be closed.
			}
		}
	}
	status := p.statusOf(inJob+"/stop?session=build", links["type"].by(p.posts(nil)))
	assert.Equal(t, http.StatusOK, status, "who may type may stop jobs")
	var list struct{ Jobs []struct{ Finished bool } }
	p.get("/api/jobs?session=build", &list)
	assert.True(t, list.Jobs[0].Finished, "the owner sees it at once")
}

// A page that was shared is told of its session, and not even how many others there are.
func TestAPageThatWasSharedHasNoOtherNames(t *testing.T) {
	p, s := wholePage(t, &page.Options{Typing: true})
	one := startOn(t, s.terminals, "exec sleep 1000")
	type told struct {
		Sessions []struct {
			Name, ID, Dir, Running, Policy string
			Jobs                           int
		}
		Typing bool
		Share  *struct {
			Terminal string
			Typing   bool
			Expires  time.Time
		}
	}
	ask := func(link shared) (all told) {
		require.NoError(t, json.NewDecoder(p.ask("/api/sessions", link.by(nil)).Body).Decode(&all))
		return all
	}
	whole := p.share(nil)
	all := ask(whole)
	require.Len(t, all.Sessions, 1)
	assert.Equal(t, "k1", all.Sessions[0].ID)
	assert.Equal(t, "/src", all.Sessions[0].Dir)
	assert.False(t, all.Typing)
	require.NotNil(t, all.Share)
	assert.WithinDuration(t, whole.Expires, all.Share.Expires, 0)

	all = ask(p.share(map[string]any{"terminal": one.ID(), "typing": true}))
	require.Len(t, all.Sessions, 1)
	assert.Equal(t, "build", all.Sessions[0].Name)
	assert.Empty(t, all.Sessions[0].Dir+all.Sessions[0].Running+all.Sessions[0].Policy, "of a session of which one terminal is shared nothing is shown")
	assert.Zero(t, all.Sessions[0].Jobs)
	assert.True(t, all.Typing)
	assert.Equal(t, one.ID(), all.Share.Terminal)

	all = told{}
	p.get("/api/sessions", &all)
	assert.Len(t, all.Sessions, 3)
	assert.Nil(t, all.Share)
}

// A session that was closed and made anew under its name is another one.
func TestAShareLinkIsOfNoOtherSessionOfThatName(t *testing.T) {
	p, s := wholePage(t, &page.Options{Typing: true})
	one := startOn(t, s.terminals, "exec sleep 1000")
	s.puts(session.Event{Seq: 1, Kind: session.BeginEvent, Script: "first"})
	link := p.share(map[string]any{"typing": true})
	assert.Equal(t, http.StatusOK, p.statusOf("/api/jobs?session=build", link.by(nil)))
	s.change(func() { s.id, s.events = "k9", nil })
	s.puts(session.Event{Seq: 1, Kind: session.BeginEvent, Script: "of another one"})
	for _, path := range []string{"/api/terminals?session=build", "/api/jobs/x/log?session=build", "/api/jobs/x/search?session=build&pattern=x"} {
		assert.Equal(t, http.StatusNotFound, p.statusOf(path, link.by(nil)), path)
	}
	assert.Equal(t, http.StatusNotFound, p.statusOf("/api/jobs/x/stop?session=build", link.by(p.posts(nil))))
	body, err := io.ReadAll(p.ask("/api/events?session=build", link.by(nil)).Body)
	require.NoError(t, err)
	assert.Contains(t, string(body), "the session has ended")
	assert.NotContains(t, string(body), "another one")
	assert.Equal(t, "ended", p.watch(one.ID(), map[string]any{"token": link.Token}).awaits("over").Why)
	answer := p.ask("/api/shares", p.posts(wants(nil)))
	assert.Equal(t, http.StatusNotFound, answer.StatusCode, "nor is one made for it")

	own := p.stream("")
	own.next()
	assert.Equal(t, "of another one", own.next().Script, "the owner sees the session that has the name")
}

// What a session that had the name before has left is the owner's to see. By a share link it is not to be had.
func TestAShareLinkHasNothingOfASessionBefore(t *testing.T) {
	p, s := wholePage(t, &page.Options{Typing: true})
	all := s.jobs.(*jobs.Registry)
	before, err := all.Start(testenv.Context(t), jobs.Spec{Command: "echo secret; exec sleep 1000", Session: "build"})
	require.NoError(t, err)
	there := startOn(t, s.terminals, "exec sleep 1000")
	s.change(func() { s.created = time.Now() })
	after, err := all.Start(testenv.Context(t), jobs.Spec{Command: "exec sleep 1000", Session: "build"})
	require.NoError(t, err)
	link := p.share(map[string]any{"typing": true})
	body, err := io.ReadAll(p.ask("/api/jobs?session=build", link.by(nil)).Body)
	require.NoError(t, err)
	assert.Contains(t, string(body), after.ID)
	assert.NotContains(t, string(body), before.ID)
	assert.Contains(t, string(body), `"more":0`)
	for _, what := range []string{"/log?session=build", "/search?session=build&pattern=x"} {
		assert.Equal(t, http.StatusNotFound, p.statusOf("/api/jobs/"+before.ID+what, link.by(nil)), what)
		assert.Equal(t, http.StatusOK, p.statusOf("/api/jobs/"+after.ID+what, link.by(nil)), what)
		assert.Equal(t, http.StatusOK, p.statusOf("/api/jobs/"+before.ID+what, nil), what)
	}
	assert.Equal(t, http.StatusNotFound, p.statusOf("/api/jobs/"+before.ID+"/stop?session=build", link.by(p.posts(nil))))
	body, err = io.ReadAll(p.ask("/api/terminals?session=build", link.by(nil)).Body)
	require.NoError(t, err)
	assert.JSONEq(t, `{"terminals": []}`, string(body))
	s.puts(session.Event{Seq: 1, Kind: session.NoticeEvent, Notice: &session.Notice{Kind: session.JobEnded, About: before.ID, Text: "a job of the one before"}})
	stream := p.ask("/api/events?session=build", link.by(nil))
	in := bufio.NewReader(stream.Body)
	_, err = in.ReadString('\n') // The hello.
	require.NoError(t, err)
	event, err := in.ReadString('\n')
	require.NoError(t, err)
	assert.Contains(t, event, `"kind":"notice"`)
	assert.NotContains(t, event, before.ID)
	assert.NotContains(t, event, "the one before")
	h := p.watch(there.ID(), map[string]any{"token": link.Token}).hears()
	assert.Equal(t, "over", h.Kind)
	assert.Equal(t, "ended", h.Why)
	assert.Equal(t, "hello", p.watch(there.ID(), nil).hears().Kind)
	assert.Equal(t, http.StatusNotFound, p.statusOf("/api/shares", p.posts(wants(map[string]any{"terminal": there.ID()}))))
	now, err := all.Get(before.ID)
	require.NoError(t, err)
	assert.False(t, now.State.Finished())
}

// What was open by a share link ends with it, at once.
func TestWhatIsOpenByAShareLinkEndsWithIt(t *testing.T) {
	testenv.Slow(t)
	for name, end := range map[string]func(*served, shared){
		"revoked": func(p *served, s shared) { p.revokes(s) },
		"expired": func(*served, shared) {},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := wholePage(t, &page.Options{Typing: true})
			s.puts(session.Event{Seq: 1, Kind: session.BeginEvent, Script: "first"})
			one := startOn(t, s.terminals, `while read x; do echo "[$x]"; done`)
			seconds := 3600
			if name == "expired" {
				seconds = 5
			}
			link := p.share(map[string]any{"typing": true, "seconds": seconds})
			answer := p.ask("/api/events?session=build", link.by(nil))
			require.Equal(t, http.StatusOK, answer.StatusCode)
			b := p.watch(one.ID(), map[string]any{"token": link.Token})
			b.awaits("hello")
			b.says(map[string]any{"kind": "take"})
			b.awaits("taken")
			b.says(map[string]any{"kind": "size", "cols": 100, "rows": 30})
			b.types("before\r")
			b.reads("[before]")
			end(p, link)
			var err error
			for err == nil {
				_, err = b.read(testenv.Context(t))
			}
			assert.EqualValues(t, 4401, websocket.CloseStatus(err), "%v", err)
			_ = b.c.Write(testenv.Context(t), websocket.MessageBinary, []byte("after\r")) // That is what is tried.
			body, _ := io.ReadAll(answer.Body)                                            // How it ends does not matter.
			assert.Contains(t, string(body), "first")
			assert.NotContains(t, string(body), `"over"`)
			assert.Equal(t, http.StatusUnauthorized, p.statusOf("/api/sessions", link.by(nil)))
			assert.Equal(t, http.StatusUnauthorized, p.statusOf("/api/jobs?session=build", link.by(nil)))
			c, _, err := p.dial(nil)
			require.NoError(t, err)
			again := &socket{t: t, c: c}
			again.says(map[string]any{"token": link.Token, "session": "build", "terminal": one.ID()})
			_, err = again.read(testenv.Context(t))
			assert.EqualValues(t, 4401, websocket.CloseStatus(err))
			testenv.Await(t, "the size from before", func() bool { return one.Info().Size == terminal.DefaultSize })

			own := p.watch(one.ID(), nil)
			own.says(map[string]any{"kind": "take"})
			own.awaits("taken")
			own.types("own\r")
			own.reads("[own]")
			out, err := one.Output(0, 1<<20)
			require.NoError(t, err)
			assert.NotContains(t, string(out.Data), "after")
			testenv.Await(t, "its end in the list", func() bool { return len(p.shares()) == 0 })
			assert.Equal(t, http.StatusNotFound, p.statusOf("/api/shares/"+link.ID+"/revoke", p.posts(nil)))
		})
	}
}

// shares is the list of share links, as the owner sees it.
func (p *served) shares() []map[string]any {
	p.t.Helper()
	var list struct{ Shares []map[string]any }
	p.get("/api/shares", &list)
	return list.Shares
}

func TestAShareLinkForViewingTypesNothing(t *testing.T) {
	p, s := wholePage(t, &page.Options{Typing: true})
	one := startOn(t, s.terminals, `read x; echo "[$x]"; exec sleep 1000`)
	b := p.watch(one.ID(), map[string]any{"token": p.share(nil).Token})
	assert.False(t, b.awaits("hello").Typing)
	b.types("typed\r")
	assert.Contains(t, b.awaits("refused").Error, "for viewing")
	b.says(map[string]any{"kind": "take"})
	assert.Contains(t, b.awaits("refused").Error, "for viewing")
	b.says(map[string]any{"kind": "size", "cols": 100, "rows": 30})
	assert.Contains(t, b.awaits("refused").Error, "for viewing")
	assert.Equal(t, terminal.DefaultSize, one.Info().Size)
	_, err := one.Write([]byte("other\r"))
	require.NoError(t, err)
	b.reads("[other]")
}

// Whoever types by a share link, and the owner, take the terminal over from each other.
func TestTheOwnerTakesATerminalBack(t *testing.T) {
	p, s := wholePage(t, &page.Options{Typing: true})
	one := startOn(t, s.terminals, `while read x; do echo "[$x]"; done`)
	guest := p.watch(one.ID(), map[string]any{"token": p.share(map[string]any{"terminal": one.ID(), "typing": true}).Token})
	own := p.watch(one.ID(), nil)
	guest.says(map[string]any{"kind": "take"})
	guest.awaits("taken")
	guest.types("guest\r")
	own.reads("[guest]")
	own.says(map[string]any{"kind": "take"})
	own.awaits("taken")
	assert.Contains(t, guest.awaits("back").Error, "another page")
	guest.types("no more\r")
	own.types("own\r")
	own.reads("[own]")
	out, err := one.Output(0, 1<<20)
	require.NoError(t, err)
	assert.NotContains(t, string(out.Data), "no more")
}
