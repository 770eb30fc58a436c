package wire_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/socket"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
)

const (
	commands = "/v1/sessions/s/commands"
	someID   = "0123456789abcdef"
)

// raw asks as anybody can, and returns the status and the body.
func (s *served) raw(t *testing.T, method, path, body string) (int, string) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return s.dial(ctx) },
		DisableKeepAlives: true,
	}}
	req, err := http.NewRequestWithContext(testenv.Context(t), method, "http://limpet"+path, strings.NewReader(body))
	require.NoError(t, err)
	resp, err := c.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b)
}

// asked is a request for a script.
func asked(id, script string) string {
	b, _ := json.Marshal(map[string]any{"id": id, "script": script}) // It is made of texts.
	return string(b)
}

func TestACommandThatIsAskedForTwiceRunsOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, "socket")
	file := filepath.Join(testenv.TempDir(t), "file")
	script := "echo ran >>" + file + "; cat " + file
	for range 3 {
		status, said := s.raw(t, "POST", commands+"?out=0", asked(someID, script))
		assert.Equal(t, http.StatusOK, status)
		assert.True(t, strings.HasPrefix(said, "1 0 0 4\nran\n0 "), said)
	}
	status, said := s.raw(t, "POST", commands, asked(someID, "echo other"))
	assert.Equal(t, http.StatusConflict, status)
	assert.Contains(t, said, `"is":["other_command"]`)
	status, said = s.raw(t, "GET", commands+"/"+someID, "")
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, said, `"state":"ended"`)
	assert.Contains(t, said, `"exit_code":0`)
	status, said = s.raw(t, "GET", commands, "")
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, 1, strings.Count(said, `"id"`), said)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "ran\n", string(b))
}

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	s := serve(t, "socket")
	for _, row := range []struct {
		method, path, body string
		status             int
		said               string
	}{
		{"GET", "/v2", "", 404, "there is no GET /v2 here; this is version 1 of the protocol"},
		{"GET", "/v1/sessions/other", "", 404, "there is none of that name"},
		{"POST", commands, "{", 400, "not what it should be"},
		{"POST", commands, asked("", "true"), 400, "an id has"},
		{"POST", commands, asked(strings.Repeat("a", 65), "true"), 400, "an id has"},
		{"POST", commands, asked("../../../etc/passwd", "true"), 400, "an id has"},
		{"POST", commands, asked(someID, strings.Repeat("#", 9<<20)), 413, "the request is too large: more than 8388608 bytes"},
		{"GET", commands + "/" + someID, "", 404, "no command of that id"},
		{"POST", commands + "/" + someID + "/stop", "", 404, "no command of that id"},
		{"POST", commands + "/" + someID + "/stdin?offset=0", "", 404, "no command of that id"},
		{"POST", "/v1/sessions/s/checkpoint", `{"name": "` + strings.Repeat("a", 70000) + `"}`, 413, "too large"},
		{"POST", "/v1/sessions/s/checkpoint", `{"name": "a/b"}`, 400, "no name"},
	} {
		status, said := s.raw(t, row.method, row.path, row.body)
		assert.Equal(t, row.status, status, "%s %s: %s", row.method, row.path, said)
		assert.Contains(t, said, row.said)
	}
	status, said := s.raw(t, "POST", commands, asked(someID, "true"))
	assert.Equal(t, 200, status, said)
	status, said = s.raw(t, "POST", commands+"/"+someID+"/stdin?offset=x", "")
	assert.Equal(t, 400, status)
	assert.Contains(t, said, "wants a number")
	status, said = s.raw(t, "POST", commands+"/"+someID+"/stdin", "")
	assert.Equal(t, 400, status)
	assert.Contains(t, said, "without stdin")
}

func TestABodyThatNeverEndsIsCutOff(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	s := serve(t, "socket")
	conn, err := s.dial(testenv.Context(t))
	require.NoError(t, err)
	defer conn.Close()
	go func() {
		_, _ = io.WriteString(conn, "POST "+commands+" HTTP/1.1\r\nHost: limpet\r\nTransfer-Encoding: chunked\r\n\r\n")
		for err := error(nil); err == nil; {
			_, err = io.WriteString(conn, "1000\r\n"+strings.Repeat(" ", 0x1000)+"\r\n")
		}
	}()
	line, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	assert.Equal(t, "HTTP/1.1 413 Request Entity Too Large\r\n", line)
	res, err := s.client(t).Session("s").Run(testenv.Context(t), "echo next")
	require.NoError(t, err)
	assert.Equal(t, "next\n", res.Stdout.String())
}

func TestACommandOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	s := serve(t, "socket")
	dir := testenv.TempDir(t)
	conn, err := s.dial(testenv.Context(t))
	require.NoError(t, err)
	body := asked(someID, fmt.Sprintf("echo >%[1]s/begun; until [ -e %[1]s/go ]; do sleep 0.01; done; echo over", dir))
	_, err = fmt.Fprintf(conn, "POST %s?out=0 HTTP/1.1\r\nHost: limpet\r\nContent-Length: %d\r\n\r\n%s", commands, len(body), body)
	require.NoError(t, err)
	testenv.AwaitFile(t, dir+"/begun")
	require.NoError(t, conn.Close())
	require.NoError(t, os.WriteFile(dir+"/go", nil, 0o600))
	status, said := s.raw(t, "GET", commands+"/"+someID+"/output?out=0", "")
	assert.Equal(t, 200, status)
	assert.True(t, strings.HasPrefix(said, "1 0 0 5\nover\n0 "), said)
}

func TestASlowReaderSlowsNobody(t *testing.T) {
	t.Parallel()
	s := serve(t, "socket")
	const size = 60 << 20
	conn, err := s.dial(testenv.Context(t))
	require.NoError(t, err)
	defer conn.Close()
	body := asked(someID, fmt.Sprintf("head -c %d /dev/zero", size))
	_, err = fmt.Fprintf(conn, "POST %s?out=0 HTTP/1.1\r\nHost: limpet\r\nContent-Length: %d\r\n\r\n%s", commands, len(body), body)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 4*testenv.Patience) // It waits for its turn alone, and 60 MB take a busy machine 30 s.
	defer cancel()
	res, err := s.client(t).Session("s").Run(ctx, "echo next")
	require.NoError(t, err)
	assert.Equal(t, "next\n", res.Stdout.String())

	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Contains(t, string(b[len(b)-5000:]), fmt.Sprintf(`"total":%d`, size), "what came of it")
	assert.Less(t, len(b), size, "some was missed")
}

func TestTwoHundredClientsAtOnce(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	s := serve(t, "socket")
	var all sync.WaitGroup
	for i := range 200 {
		one := s.client(t).Session("s")
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 4*testenv.Patience)
			defer cancel()
			var out bytes.Buffer
			_, err := one.Do(ctx, command.Request{Script: fmt.Sprintf("own=%d; n=$((n+1)); echo $own", i), Stdout: &out})
			if assert.NoError(t, err) {
				assert.Equal(t, fmt.Sprintln(i), out.String())
			}
		})
	}
	all.Wait()
	res, err := s.client(t).Session("s").Run(testenv.Context(t), "echo $n")
	require.NoError(t, err)
	assert.Equal(t, "200\n", res.Stdout.String())
}

// breaking is a connection that ends after so many bytes.
type breaking struct {
	net.Conn
	left int
}

func (b *breaking) Read(p []byte) (int, error) {
	if b.left <= 0 {
		_ = b.Close() // It is cut.
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.Conn.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

func TestAStreamThatBreaksGoesOn(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	s := serve(t, "socket")
	file := filepath.Join(testenv.TempDir(t), "file")
	var breaks int
	client := wire.NewClient(func(ctx context.Context) (net.Conn, error) {
		conn, err := s.dial(ctx)
		breaks++
		return &breaking{conn, 4<<20 + rand.IntN(1<<20)}, err
	})
	defer client.Disconnect()
	var out, errs bytes.Buffer
	res, err := client.Session("s").Do(testenv.Context(t), command.Request{
		Script: "echo ran >>" + file + "; seq 1 1000000; seq 1 300000 >&2; exit 3", Stdout: &out, Stderr: &errs,
	})
	require.NoError(t, err)
	assert.Equal(t, 3, res.ExitCode)
	assert.Equal(t, numbers(1_000_000), sha256.Sum256(out.Bytes()))
	assert.Equal(t, numbers(300_000), sha256.Sum256(errs.Bytes()))
	assert.Greater(t, breaks, 1, "it broke")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "ran\n", string(b))
}

// numbers is the sum of what seq prints.
func numbers(n int) [sha256.Size]byte {
	var b bytes.Buffer
	for i := range n {
		fmt.Fprintln(&b, i+1)
	}
	return sha256.Sum256(b.Bytes())
}

func TestAPieceOfStdinThatComesTwiceCountsOnce(t *testing.T) {
	t.Parallel()
	s := serve(t, "socket")
	status, said := s.raw(t, "POST", commands, `{"id":"`+someID+`","script":"cat","stdin":true}`)
	require.Equal(t, 200, status, said)
	stdin := commands + "/" + someID + "/stdin?offset="
	for _, row := range []struct{ path, body, said string }{
		{stdin + "0", "abc", `{"next":3}`},
		{stdin + "0", "abc", `{"next":3}`},
		{stdin + "1", "bcde", `{"next":5}`},
		{stdin + "9", "x", "the piece begins at 9, and the next one is at 5"},
		{stdin + "5&eof=1", "f", `{"next":6}`},
	} {
		_, said := s.raw(t, "POST", row.path, row.body)
		assert.Contains(t, said, row.said, row.path)
	}
	_, said = s.raw(t, "GET", commands+"/"+someID+"/output?out=0", "")
	assert.Contains(t, said, `"stdout":{"head":"YWJjZGVm","total":6}`)
	_, said = s.raw(t, "POST", stdin+"6", "late")
	assert.Contains(t, said, `"ended":true`)
}

func TestAPieceOfStdinThatIsTooLargeIsRefusedAndTheCommandGoesOn(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	const most = 256 << 10
	s := serve(t, "socket")
	status, said := s.raw(t, "POST", commands, `{"id":"`+someID+`","script":"wc -c","stdin":true}`)
	require.Equal(t, 200, status, said)
	stdin := commands + "/" + someID + "/stdin?offset="
	status, said = s.raw(t, "POST", stdin+"0", strings.Repeat("x", most+1))
	assert.Equal(t, http.StatusRequestEntityTooLarge, status)
	assert.Contains(t, said, "the request is too large: more than 262144 bytes")
	status, said = s.raw(t, "POST", stdin+"0&eof=1", strings.Repeat("x", most))
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, said, `{"next":262144}`)
	_, said = s.raw(t, "GET", commands+"/"+someID+"/output?out=0", "")
	assert.True(t, strings.HasPrefix(said, "1 0 0 7\n262144\n"), said)
}

func TestAProgramThatIsGoneIsSaidToBe(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	client := wire.NewClient(func(ctx context.Context) (net.Conn, error) { return socket.Dial(ctx, t.TempDir(), "s") })
	defer client.Disconnect()
	one := client.Session("s")
	_, err := one.Run(testenv.Context(t), "true")
	require.ErrorIs(t, err, wire.ErrGone)
	require.EqualError(t, err, `session: run in "s": the program that has the session is gone`)
	_, err = one.Info(testenv.Context(t))
	require.EqualError(t, err, `session: look at "s": the program that has the session is gone`)
	_, err = client.Hello(testenv.Context(t))
	require.ErrorIs(t, err, wire.ErrGone)
}

func TestAProgramThatIsMuteHoldsNobodyUp(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	l := listenPipes()
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(io.Discard, c) }()
		}
	}()
	client := wire.NewClient(l.dial)
	defer client.Disconnect()
	ctx, cancel := context.WithTimeout(testenv.Context(t), 100*time.Millisecond)
	defer cancel()
	_, err := client.Session("s").Run(ctx, "true")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = client.Session("s").Info(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	later := client.Session("s")
	time.AfterFunc(100*time.Millisecond, client.Disconnect)
	_, err = later.Run(testenv.Context(t), "true")
	require.ErrorIs(t, err, session.ErrClosed)
}

func TestHelloSaysWhoSpeaks(t *testing.T) {
	t.Parallel()
	s := serve(t, "pipe")
	said, err := s.client(t).Hello(testenv.Context(t))
	require.NoError(t, err)
	assert.Equal(t, wire.Hello{Protocol: [2]int{1, 1}, Version: "test", PID: os.Getpid()}, said)
	list, err := s.client(t).List(testenv.Context(t))
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "s", list[0].Name)
}

func TestAProgramThatSpeaksOtherVersionsIsSaidTo(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		protocol string
		refused  bool
	}{
		{"[2,3]", true},
		{"[0,0]", true},
		{"[1,3]", false},
		{"[0,1]", false},
	} {
		l := listenPipes()
		server := socket.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"protocol":`+row.protocol+`,"version":"v9"}`) // Who has hung up fails below.
		}), wire.Refuse)
		server.Serve(l)
		client := wire.NewClient(l.dial)
		_, err := client.Hello(testenv.Context(t))
		client.Disconnect()
		server.Close(session.ErrClosed)
		if !row.refused {
			require.NoError(t, err, row.protocol)
			continue
		}
		require.ErrorIs(t, err, wire.ErrUnreachable, row.protocol)
		versions := strings.NewReplacer("[", "", ",", " to ", "]", "").Replace(row.protocol)
		assert.EqualError(t, err, "the program that has the session cannot be asked: it is limpet v9 and speaks versions "+versions+" of the protocol, and this one speaks 1")
	}
}
