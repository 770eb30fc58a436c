package page_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestWhatMayNotAskIsRefused(t *testing.T) {
	testenv.Slow(t)
	p := serve(t, newStand())
	_, port, err := net.SplitHostPort(p.addr)
	require.NoError(t, err)
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	sockets := regexp.MustCompile(`( ws://(127\.0\.0\.1|localhost|\[::1\]):` + port + `)?`) // Those of the page itself; none in a refusal.
	for name, row := range map[string]struct {
		path   string
		change func(*http.Request)
		want   int
	}{
		"as the page":                  {"/api/sessions", header("Sec-Fetch-Site", "same-origin"), 200},
		"no token":                     {"/api/sessions", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"another token":                {"/api/sessions", header("Authorization", "Bearer "+strings.ToLower(token)), 401},
		"the beginning of the token":   {"/api/sessions", header("Authorization", "Bearer "+token[:25]), 401},
		"more than the token":          {"/api/sessions", header("Authorization", "Bearer "+token+"A"), 401},
		"an empty token":               {"/api/sessions", header("Authorization", "Bearer "), 401},
		"no scheme":                    {"/api/sessions", header("Authorization", token), 401},
		"another scheme":               {"/api/sessions", header("Authorization", "Bearers "+token), 401},
		"the scheme in lower case":     {"/api/sessions", header("Authorization", "bearer "+token), 200},
		"two blanks":                   {"/api/sessions", header("Authorization", "BEARER  "+token), 200},
		"the token as a password":      {"/api/sessions", func(r *http.Request) { r.SetBasicAuth("limpet", token) }, 401},
		"the token in the query":       {"/api/sessions?token=" + token, func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"the token in a cookie":        {"/api/sessions", func(r *http.Request) { r.Header.Del("Authorization"); r.Header.Set("Cookie", "token="+token) }, 401},
		"no token, events":             {"/api/events?session=build", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"no token, jobs":               {"/api/jobs?session=build", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"no token, a log":              {"/api/jobs/x/log?session=build", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"no token, questions":          {"/api/questions", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"no token, metrics":            {"/metrics", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"metrics of another site":      {"/metrics", header("Sec-Fetch-Site", "cross-site"), 403},
		"metrics of another origin":    {"/metrics", header("Origin", "https://evil.example"), 403},
		"metrics of another host":      {"/metrics", host("evil.example"), 403},
		"metrics":                      {"/metrics", nil, 200},
		"no token, nothing there":      {"/api/nosuch", func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"localhost":                    {"/api/sessions", host("localhost:" + port), 200},
		"::1":                          {"/api/sessions", host("[::1]:" + port), 200},
		"a name that leads here":       {"/api/sessions", host("rebind.example:" + port), 403},
		"its page":                     {"/", host("rebind.example:" + port), 403},
		"another port":                 {"/api/sessions", host("127.0.0.1:1"), 403},
		"no port":                      {"/api/sessions", host("localhost"), 403},
		"a name that begins right":     {"/api/sessions", host("localhost." + "example:" + port), 403},
		"its own origin":               {"/api/sessions", header("Origin", "http://127.0.0.1:"+port), 200},
		"another site":                 {"/api/sessions", header("Origin", "https://evil.example"), 403},
		"an origin like the host":      {"/api/sessions", func(r *http.Request) { r.Host = "evil:" + port; r.Header.Set("Origin", "http://evil:"+port) }, 403},
		"another server of this host":  {"/api/sessions", header("Origin", "http://127.0.0.1:1"), 403},
		"TLS":                          {"/api/sessions", header("Origin", "https://127.0.0.1:"+port), 403},
		"a sandboxed frame, or a file": {"/api/sessions", header("Origin", "null"), 403},
		"two origins":                  {"/api/sessions", func(r *http.Request) { r.Header["Origin"] = []string{"http://127.0.0.1:" + port, "http://evil"} }, 403},
		"an asset for another site":    {"/app.mjs", header("Origin", "https://evil.example"), 403},
		"as an image of another site":  {"/api/sessions", header("Sec-Fetch-Site", "cross-site"), 403},
		"of another port, the same":    {"/api/sessions", header("Sec-Fetch-Site", "same-site"), 403},
		"a link of another site":       {"/", header("Sec-Fetch-Site", "cross-site"), 200},
		"POST":                         {"/api/sessions", func(r *http.Request) { r.Method = "POST" }, 405},
		"OPTIONS":                      {"/api/sessions", func(r *http.Request) { r.Method = "OPTIONS" }, 405},
		"DELETE":                       {"/", func(r *http.Request) { r.Method = "DELETE" }, 405},
		"HEAD":                         {"/", func(r *http.Request) { r.Method = "HEAD" }, 405},
		"a body":                       {"/api/sessions", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("x")); r.ContentLength = 1 }, 413},
		"a query that is too long":     {"/api/sessions?" + strings.Repeat("x", 1025), nil, 414},
		"headers that are too large":   {"/api/sessions", header("X-Large", strings.Repeat("x", 64<<10)), 431},
		"out of the files":             {"/../page.go", nil, 404},
		"out of them, written so":      {"/%2e%2e/page.go", nil, 404},
		"the directory":                {"/assets/", nil, 404},
		"with two slashes":             {"//api/sessions", nil, 404},
		"out of the API":               {"/api/../index.html", nil, 404},
		"nothing there":                {"/api/nosuch", nil, 404},
		"a job's log elsewhere":        {"/api/jobs/..%2f..%2fx/log?session=build", nil, 404},
		"no session":                   {"/api/events", nil, 400},
		"no name of one":               {"/api/jobs?session=../x", nil, 400},
		"no number":                    {"/api/events?session=build&after=x", nil, 400},
		"one below zero":               {"/api/events?session=build&after=-1", nil, 400},
	} {
		t.Run(name, func(t *testing.T) {
			answer := p.ask(row.path, row.change)
			assert.Equal(t, row.want, answer.StatusCode)
			if row.want == 431 {
				return // The server's own answer.
			}
			assert.Equal(t, "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
				sockets.ReplaceAllString(answer.Header.Get("Content-Security-Policy"), ""))
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
				"Access-Control-Allow-Origin": "", "Set-Cookie": "",
			} {
				assert.Equal(t, want, answer.Header.Get(name), name)
			}
			if row.want != 200 {
				body, err := io.ReadAll(answer.Body)
				require.NoError(t, err)
				assert.NotContains(t, string(body), token)
				assert.NotContains(t, string(body), "build")
			}
		})
	}
}

// What HTTP clients would not send.
func TestRawRequestsAreRefused(t *testing.T) {
	p := serve(t, newStand())
	for request, want := range map[string]int{
		"GET /../../etc/passwd HTTP/1.1\r\nHost: " + p.addr + "\r\n\r\n":                           404,
		"GET http://evil.example/api/sessions HTTP/1.1\r\nHost: " + p.addr + "\r\n\r\n":            403, // The host of the line counts.
		"GET /api/sessions HTTP/1.1\r\n\r\n":                                                       400,
		"GET /api/sessions HTTP/1.0\r\n\r\n":                                                       403,
		"GET /api/sessions HTTP/1.1\r\nHost: " + p.addr + "\r\nHost: evil\r\n\r\n":                 400,
		"GET /api/sessions HTTP/1.1\r\nHost: " + p.addr + "\r\nTransfer-Encoding: chunked\r\n\r\n": 413,
	} {
		c, err := net.Dial("tcp", p.addr)
		require.NoError(t, err)
		_, err = fmt.Fprint(c, request)
		require.NoError(t, err)
		answer, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		assert.Equal(t, want, answer.StatusCode, "%q", request)
		require.NoError(t, answer.Body.Close())
		require.NoError(t, c.Close())
	}
}

func TestATokenThatCanBeGuessedIsRefused(t *testing.T) {
	_, err := page.New(newStand(), "secret", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80}, nil)
	require.ErrorContains(t, err, "too short")
}

// The page loads its own files alone, and has no script and no style in the HTML, which its policy would not run.
func TestThePageLoadsItsOwnFilesAlone(t *testing.T) {
	p := serve(t, newStand())
	seen := map[string]string{}
	var load func(path string)
	load = func(path string) {
		if seen[path] != "" {
			return
		}
		answer := p.ask(path, func(r *http.Request) { r.Header.Del("Authorization") })
		require.Equal(t, http.StatusOK, answer.StatusCode, path)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		seen[path] = answer.Header.Get("Content-Type")
		text := string(body)
		assert.NotContains(t, text, token)
		if strings.HasPrefix(path, "/vendor/") {
			return // What it does in a browser, browser/ has tests of.
		}
		assert.NotRegexp(t, `innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function`, text, path)
		if path != "/icon.svg" {
			assert.NotRegexp(t, `https?://\w`, text, path)
		}
		for _, found := range regexp.MustCompile(`(?:src|href)="([^"]+)"|from "\./([^"]+)"|[^f] import\("\./([^"]+)"|\[import\("\./([^"]+)"`).FindAllStringSubmatch(text, -1) {
			load("/" + strings.Join(found[1:], ""))
		}
	}
	load("/")
	html, err := io.ReadAll(p.ask("/", nil).Body)
	require.NoError(t, err)
	assert.NotRegexp(t, `(?i)<style|style=|\son\w+=|<script[^>]*>[^<]`, string(html))
	assert.Equal(t, map[string]string{
		"/": "text/html; charset=utf-8", "/style.css": "text/css; charset=utf-8", "/icon.svg": "image/svg+xml",
		"/notices.mjs": "text/javascript; charset=utf-8", "/app.mjs": "text/javascript; charset=utf-8", "/api.mjs": "text/javascript; charset=utf-8", "/log.mjs": "text/javascript; charset=utf-8",
		"/jobs.mjs": "text/javascript; charset=utf-8", "/text.mjs": "text/javascript; charset=utf-8", "/tree.mjs": "text/javascript; charset=utf-8", "/terminals.mjs": "text/javascript; charset=utf-8",
		"/view.mjs": "text/javascript; charset=utf-8", "/list.mjs": "text/javascript; charset=utf-8", "/inbox.mjs": "text/javascript; charset=utf-8", "/shares.mjs": "text/javascript; charset=utf-8", "/styles.mjs": "text/javascript; charset=utf-8",
		"/xterm.mjs": "text/javascript; charset=utf-8", "/recordings.mjs": "text/javascript; charset=utf-8", "/player.mjs": "text/javascript; charset=utf-8", "/timeline.mjs": "text/javascript; charset=utf-8", "/vendor/xterm.css": "text/css; charset=utf-8",
		"/vendor/xterm.mjs": "text/javascript; charset=utf-8", "/vendor/addon-fit.mjs": "text/javascript; charset=utf-8",
	}, seen)
}

// The parser of what programs print has its tests in JavaScript.
func TestThePagesParser(t *testing.T) {
	testenv.Slow(t)
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no node")
	}
	out, err := exec.Command(node, "--test", "testdata").CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Regexp(t, `(?m)^# pass [1-9]|^ℹ pass [1-9]`, string(out))
}
