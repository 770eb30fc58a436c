package page_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

const castHead = `{"version":2,"width":80,"height":24,"title":"a title","timestamp":1504467315}` + "\n"

// casts is a directory of recordings that a page plays. Beside it is a recording that is outside.
type casts struct {
	*served
	dir string
}

func withRecordings(t *testing.T) casts {
	t.Helper()
	above := testenv.TempDir(t)
	dir := filepath.Join(above, "casts")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(above, "outside.cast"), []byte(castHead+`[1,"o","secret"]`), 0o600))
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	p := serveWith(t, newStand(), &page.Options{Recordings: root})
	t.Cleanup(func() {
		p.stop()
		assert.NoError(t, root.Close())
	})
	return casts{p, dir}
}

func (c casts) file(name string) string { return filepath.Join(c.dir, name) }

func (c casts) writes(name, text string) {
	c.t.Helper()
	require.NoError(c.t, os.WriteFile(c.file(name), []byte(text), 0o600))
}

// listed is a recording of the list.
type listed struct {
	Name     string
	Bytes    int64
	Modified time.Time
	LengthMS *int64 `json:"length_ms"`
}

func (c casts) list() (all []listed, more int) {
	c.t.Helper()
	var list struct {
		Recordings []listed
		More       int
	}
	c.get("/api/recordings", &list)
	return list.Recordings, list.More
}

// names are those in the list, an answer of which may be a second old.
func (c casts) names() (names []string) {
	c.t.Helper()
	all, _ := c.list()
	for _, one := range all {
		names = append(names, one.Name)
	}
	return names
}

// played is a recording as a browser gets it.
type played struct {
	Kind, Title, Command, Error string
	Cols, Rows                  int
	Started                     time.Time
	Cut                         bool
	events                      []string // as they came
}

func recordingPath(name string) string { return "/api/recordings/" + url.PathEscape(name) }

// plays reads a recording to its end, which is said in it.
func (c casts) plays(name string) (p played) {
	c.t.Helper()
	answer := c.ask(recordingPath(name), nil)
	body, err := io.ReadAll(answer.Body)
	require.NoError(c.t, err)
	require.Equal(c.t, http.StatusOK, answer.StatusCode, "%s", body)
	all := strings.Split(strings.TrimSuffix(string(body), "\n"), "\n")
	require.GreaterOrEqual(c.t, len(all), 2, "%s", body)
	require.NoError(c.t, json.Unmarshal([]byte(all[0]), &p))
	assert.Equal(c.t, "recording", p.Kind)
	require.NoError(c.t, json.Unmarshal([]byte(all[len(all)-1]), &p))
	assert.Equal(c.t, "over", p.Kind)
	p.events = all[1 : len(all)-1]
	return p
}

// refuses asks for a recording, and returns the status and the error.
func (c casts) refuses(name string) (status int, why string) {
	c.t.Helper()
	answer := c.ask(recordingPath(name), nil)
	var said struct{ Error string }
	require.NoError(c.t, json.NewDecoder(answer.Body).Decode(&said))
	return answer.StatusCode, said.Error
}

// What limpet records is played: the output and the marks, in the sizes that the terminal had.
func TestARecordingOfATerminalIsPlayed(t *testing.T) {
	c := withRecordings(t)
	r, err := terminal.Open(testenv.TempDir(t), nil)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	one, err := r.Start(testenv.Context(t), terminal.Spec{Line: `printf 'one \342\202\254\n'; read -r x; echo last`, Size: terminal.Size{Cols: 90, Rows: 20}, Record: c.file("real.cast")})
	require.NoError(t, err)
	_, err = one.Write([]byte("typed\r"))
	require.NoError(t, err)
	testenv.Await(t, "the end of the recording", func() bool {
		b, err := os.ReadFile(c.file("real.cast"))
		require.NoError(t, err)
		return one.Info().State.Ended() && strings.Contains(string(b), "last")
	})
	p := c.plays("real.cast")
	assert.Equal(t, []any{90, 20, false, ""}, []any{p.Cols, p.Rows, p.Cut, p.Error})
	assert.NotZero(t, p.Started)
	assert.Contains(t, p.Title, "one")
	var text strings.Builder
	for _, line := range p.events {
		var event []any
		require.NoError(t, json.Unmarshal([]byte(line), &event))
		require.Equal(t, "o", event[0])
		text.WriteString(event[2].(string))
	}
	assert.Contains(t, text.String(), "one €\r\n")
	assert.Contains(t, text.String(), "last\r\n")

	all, more := c.list()
	require.Len(t, all, 1)
	st, err := os.Stat(c.file("real.cast"))
	require.NoError(t, err)
	assert.Zero(t, more)
	assert.Equal(t, "real.cast", all[0].Name)
	assert.Equal(t, st.Size(), all[0].Bytes)
	assert.True(t, st.ModTime().Equal(all[0].Modified))
	assert.NotNil(t, all[0].LengthMS)
}

// What was typed never gets to a browser, nor does what no player knows; times do not go back, and no size is one that a page cannot draw.
func TestWhatIsSentOfARecordingIsToBeShown(t *testing.T) {
	c := withRecordings(t)
	c.writes("one.cast", `{"version":2,"width":65535,"height":65535,"command":"bash","env":{"SECRET":"of the environment"}}`+"\n"+
		`[0.5,"o","<b>\u001b[1m€\ud800"]`+"\n"+`[1,"i","typed secret"]`+"\n"+`[1.25,"r","100x30"]`+"\n"+`[1.5,"r","60000x60000"]`+"\n"+`[1.5,"r","nonsense"]`+"\n"+
		`[1.75,"m","here"]`+"\n"+`[0.25,"o","earlier"]`+"\n"+`[2,"x","0"]`+"\n"+`[3,"secret","secret"]`+"\n")
	p := c.plays("one.cast")
	assert.Equal(t, []any{1000, 500, "bash", ""}, []any{p.Cols, p.Rows, p.Command, p.Error})
	assert.Equal(t, []string{
		`["o",0.5,"<b>\u001b[1m€�"]`, `["r",1.25,"100x30"]`, `["r",1.5,"1000x500"]`, `["m",1.75,"here"]`, `["o",1.75,"earlier"]`,
	}, p.events)
	body, err := io.ReadAll(c.ask(recordingPath("one.cast"), nil).Body)
	require.NoError(t, err)
	assert.NotContains(t, string(body), "secret")
	assert.NotContains(t, string(body), "environment")
}

func TestNoNameLeadsOutOfTheRecordings(t *testing.T) {
	c := withRecordings(t)
	const one = castHead + `[1,"o","one"]` + "\n"
	c.writes("one.cast", one)
	c.writes("notes.txt", one)
	c.writes(".cast", one)
	c.writes("a b<&?#%2f€.cast", one)
	c.writes("not\xffutf8.cast", one)
	require.NoError(t, os.Mkdir(c.file("dir.cast"), 0o700))
	require.NoError(t, os.Mkdir(c.file("below"), 0o700))
	c.writes("below/deep.cast", one)
	require.NoError(t, os.Symlink("../outside.cast", c.file("out.cast")))
	require.NoError(t, os.Symlink(filepath.Join(filepath.Dir(c.dir), "outside.cast"), c.file("absolute.cast")))
	require.NoError(t, os.Symlink("one.cast", c.file("within.cast")))
	require.NoError(t, os.Symlink("notes.txt", c.file("text.cast")))
	require.NoError(t, os.Symlink("nowhere", c.file("broken.cast")))
	require.NoError(t, os.Symlink("..", c.file("up")))
	require.NoError(t, syscall.Mkfifo(c.file("fifo.cast"), 0o600))
	socket, err := net.Listen("unix", c.file("socket.cast"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, socket.Close()) })

	assert.ElementsMatch(t, []string{"one.cast", ".cast", "a b<&?#%2f€.cast"}, c.names())
	for _, name := range c.names() {
		assert.Equal(t, []string{`["o",1,"one"]`}, c.plays(name).events, name)
	}
	for _, name := range []string{
		"../outside.cast", "..", ".", "./one.cast", "one.cast/", "/one.cast", "below/deep.cast", "below/../one.cast", "up/outside.cast", "up/casts/one.cast",
		"out.cast", "absolute.cast", "within.cast", "text.cast", "broken.cast", "fifo.cast", "socket.cast", "dir.cast", "dir.cast/x.cast", "notes.txt", "nosuch.cast",
		"one.CAST", "one.cast\x00.cast", "one\x00.cast", "not\xffutf8.cast", `..\outside.cast`, filepath.Join(filepath.Dir(c.dir), "outside.cast"), strings.Repeat("x", 5000) + ".cast",
	} {
		status, why := c.refuses(name)
		assert.Contains(t, []int{http.StatusNotFound, http.StatusBadGateway}, status, "%q", name)
		assert.NotContains(t, why, c.dir, "%q", name)
	}
	// As a client may write it, which is no browser.
	for _, path := range []string{"/../outside.cast", "/%2e%2e/outside.cast", "/..%2foutside.cast", "//one.cast", "/"} {
		conn, err := net.Dial("tcp", c.addr)
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "GET /api/recordings%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: close\r\n\r\n", path, c.addr, token)
		require.NoError(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		assert.Equal(t, http.StatusNotFound, answer.StatusCode, path)
		assert.NotContains(t, string(body), "secret", path)
		require.NoError(t, conn.Close())
	}
}

// A file that is named anew while it is opened is another one, wherever it leads.
func TestARecordingThatIsReplacedLeadsNowhere(t *testing.T) {
	c := withRecordings(t)
	const one = castHead + `[1,"o","one"]` + "\n"
	done := make(chan struct{})
	stop := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Remove(c.file("next")) // It may not be there.
			if i%2 == 0 {
				_ = os.Symlink("../outside.cast", c.file("next")) // What fails is not renamed.
			} else {
				_ = os.WriteFile(c.file("next"), []byte(one), 0o600) // As above.
			}
			_ = os.Rename(c.file("next"), c.file("one.cast")) // As above.
		}
	}()
	for range 300 {
		body, err := io.ReadAll(c.ask(recordingPath("one.cast"), nil).Body)
		require.NoError(t, err)
		assert.NotContains(t, string(body), "secret")
	}
	close(stop)
	<-done
}

// A recording is played up to what cannot be read of it, which is said.
func TestABrokenRecordingIsPlayedAsFarAsItGoes(t *testing.T) {
	c := withRecordings(t)
	const one, event = castHead + `[1,"o","one"]` + "\n", `["o",1,"one"]`
	for name, row := range map[string]struct {
		recording string
		cut       bool
		want      string // the error
	}{
		"cut in an event":    {one + `[2,"o","tw`, true, "line 3: it is cut short"},
		"cut in a number":    {one + `[2`, true, "line 3: it is cut short"},
		"no line break":      {one + `[1,"m",""]`, false, ""},
		"a line of its own":  {one + "broken\n" + one, false, "line 3: invalid character"},
		"zeros":              {one + strings.Repeat("\x00", 5000), true, "line 3: it is cut short"},
		"two headers":        {one + one, false, "line 3: json: cannot unmarshal object"},
		"two fields":         {one + "[2,3]\n", false, "line 3: an event has 3 fields"},
		"a huge line":        {one + `[2,"o","` + strings.Repeat("x", 1<<20) + "\"]\n" + one, false, "line 3: it has more than 1048576 bytes"},
		"a huge line, open":  {one + `[2,"o","` + strings.Repeat("x", 2<<20), false, "line 3: it has more than 1048576 bytes"},
		"not a time at all":  {one + `[-2,"o","x"]` + "\n", false, "line 3: -2 seconds"},
		"a time that is NaN": {one + `[NaN,"o","x"]` + "\n", false, "line 3: invalid character"},
	} {
		c.writes("x.cast", row.recording)
		p := c.plays("x.cast")
		assert.Equal(t, event, p.events[0], name)
		assert.Equal(t, row.cut, p.Cut, name)
		if row.want == "" {
			assert.Empty(t, p.Error, name)
		} else {
			assert.Contains(t, p.Error, row.want, name)
		}
	}
	for recording, want := range map[string]string{
		"":                               "there is no header",
		"\n\n":                           "there is no header",
		`{"version":2,"wid`:              "it is cut short",
		"# a text\n":                     "invalid character",
		strings.Repeat("x", 1<<20+1):     "it has more than 1048576 bytes",
		`{"version":3,"term":{}}` + "\n": `version 3: only 2 is read; asciinema 3 has "convert -f asciicast-v2"`,
	} {
		c.writes("x.cast", recording)
		status, why := c.refuses("x.cast")
		assert.Equal(t, http.StatusUnprocessableEntity, status)
		assert.Contains(t, why, "it is no recording that can be played: asciicast: line ")
		assert.Contains(t, why, want)
	}
}

// A line may be as long as limpet writes it; a file that is larger than what is played is refused, in a sentence.
func TestARecordingIsBounded(t *testing.T) {
	c := withRecordings(t)
	long := strings.Repeat("x", 1<<20-len(`[1,"o",""]`)-1)
	c.writes("long.cast", castHead+`[1,"o","`+long+`"]`+"\n")
	p := c.plays("long.cast")
	assert.Empty(t, p.Error)
	require.Len(t, p.events, 1)
	assert.Len(t, p.events[0], 1<<20-1)

	c.writes("large.cast", castHead+`[1,"o","x"]`+"\n")
	require.NoError(t, os.Truncate(c.file("large.cast"), 32<<20))
	assert.Equal(t, []string{`["o",1,"x"]`}, c.plays("large.cast").events)
	require.NoError(t, os.Truncate(c.file("large.cast"), 32<<20+1))
	status, why := c.refuses("large.cast")
	assert.Equal(t, http.StatusUnprocessableEntity, status)
	assert.Equal(t, "the recording has 33554433 bytes, and the page plays at most 33554432: play it at a terminal, by asciinema", why)
	all, _ := c.list()
	assert.Len(t, all, 2, "it is listed all the same")
}

func TestTheListOfRecordingsIsBounded(t *testing.T) {
	c := withRecordings(t)
	when := time.Now().Add(-time.Hour).Truncate(time.Second)
	for i := range 510 {
		name := fmt.Sprintf("%03d.cast", i)
		c.writes(name, castHead+fmt.Sprintf(`[%d,"o","x"]`, i)+"\n")
		at := when.Add(time.Duration(i) * time.Second)
		require.NoError(t, os.Chtimes(c.file(name), at, at))
	}
	c.writes("509.cast", "broken")
	all, more := c.list()
	require.Len(t, all, 500)
	assert.Equal(t, 10, more)
	assert.Equal(t, "509.cast", all[0].Name, "the newest first")
	assert.Nil(t, all[0].LengthMS)
	assert.Equal(t, "010.cast", all[499].Name)
	assert.EqualValues(t, 10000, *all[499].LengthMS)
}

func TestWithoutADirectoryThereAreNoRecordings(t *testing.T) {
	p := serve(t, newStand())
	for _, path := range []string{"/api/recordings", "/api/recordings/one.cast", "/api/recordings/"} {
		assert.Equal(t, http.StatusNotFound, p.statusOf(path, nil), path)
	}
	body, err := io.ReadAll(p.ask("/api/sessions", nil).Body)
	require.NoError(t, err)
	assert.NotContains(t, string(body), "recordings")
}

// Recordings are the owner's: no share link lists or plays them, and nobody without a token does.
func TestRecordingsAreTheOwnersAlone(t *testing.T) {
	c := withRecordings(t)
	c.writes("one.cast", castHead+`[1,"o","secret"]`+"\n")
	body, err := io.ReadAll(c.ask("/api/sessions", nil).Body)
	require.NoError(t, err)
	assert.Contains(t, string(body), `"recordings":true`)
	link := c.share(nil)
	for _, path := range []string{"/api/recordings", "/api/recordings?session=build", "/api/recordings/one.cast", "/api/recordings/one.cast?session=build", "/api/recordings/nosuch.cast", "/api/recordings/"} {
		for name, row := range map[string]struct {
			change func(*http.Request)
			want   int
		}{
			"a share link":       {link.by(nil), http.StatusForbidden},
			"a share link, POST": {link.by(c.posts(nil)), http.StatusMethodNotAllowed},
			"no token":           {func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusUnauthorized},
			"another site":       {func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden},
			"the owner, POST":    {c.posts(nil), http.StatusMethodNotAllowed},
		} {
			answer := c.ask(path, row.change)
			body, err := io.ReadAll(answer.Body)
			require.NoError(t, err)
			assert.Equal(t, row.want, answer.StatusCode, "%s: %s", name, path)
			assert.NotContains(t, string(body), "secret", "%s: %s", name, path)
			assert.NotContains(t, string(body), "one.cast", "%s: %s", name, path)
		}
	}
	body, err = io.ReadAll(c.ask("/api/sessions", link.by(nil)).Body)
	require.NoError(t, err)
	assert.NotContains(t, string(body), "recordings", "a page that was shared does not know of them")
}
