package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// pageOf is a limpet serve that a person has opened.
type pageOf struct {
	t          *testing.T
	cmd        *exec.Cmd
	url, token string
}

func (p *mcpPlace) page(flags ...string) *pageOf {
	p.t.Helper()
	cmd := p.command(append([]string{"serve"}, flags...)...)
	link := linkOf(p.t, cmd)
	url, token, _ := strings.Cut(strings.TrimSpace(link), "#")
	return &pageOf{p.t, cmd, url, token}
}

// does sends a request as the page does, and returns the status and the body.
func (p *pageOf) does(method, path string, content any) (status int, body string) {
	p.t.Helper()
	var sent io.Reader
	if content != nil {
		b, err := json.Marshal(content)
		require.NoError(p.t, err)
		sent = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(testenv.Context(p.t), method, p.url+path, sent)
	require.NoError(p.t, err)
	r.Header.Set("Authorization", "Bearer "+p.token)
	r.Header.Set("Origin", strings.TrimSuffix(p.url, "/"))
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(p.t, err)
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	require.NoError(p.t, err)
	return answer.StatusCode, string(b)
}

// question waits for one, and returns its ID and digest.
func (p *pageOf) question() (id, digest string) {
	p.t.Helper()
	var list struct{ Questions []struct{ ID, Digest string } }
	testenv.Await(p.t, "the question", func() bool {
		_, body := p.does(http.MethodGet, "api/questions", nil)
		require.NoError(p.t, json.Unmarshal([]byte(body), &list))
		return len(list.Questions) == 1
	})
	return list.Questions[0].ID, list.Questions[0].Digest
}

func (p *pageOf) ends() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGTERM))
	_ = p.cmd.Wait() // Its exit code is looked at.
	assert.Equal(p.t, codeSignal+int(syscall.SIGTERM), p.cmd.ProcessState.ExitCode())
	http.DefaultClient.CloseIdleConnections()
}

type content map[string]any

// A person answers on the page what an agent wants in a session that is kept. What runs in a session cannot, with all that the page has.
func TestAPersonAnswersOnThePage(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	t.Setenv("XDG_STATE_HOME", p.state)
	c := p.stdio("--approve", "ask", "--keep")
	page := p.page("--allow-answers")
	waits := calls(t, c.ClientSession, "run_command", runs("touch one"))
	id, digest := page.question()
	status, body := page.does(http.MethodGet, "api/questions/"+id, nil)
	require.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, "may this run in "+p.dir+"?")
	assert.Contains(t, body, `"text":"touch one"`)
	assert.Contains(t, body, "Always below "+p.dir)

	// A session has the link: it asks, and may see; it is not answered.
	t.Run("from a session", func(t *testing.T) {
		script := `exec 3<>/dev/tcp/127.0.0.1/` + strings.TrimSuffix(page.url[strings.LastIndex(page.url, ":")+1:], "/") + `
			body='{"digest": "` + digest + `", "answer": "once"}'
			printf 'POST /api/questions/` + id + ` HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\nAuthorization: Bearer ` + page.token + `\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s' \
				$PAGE $PAGE ${#body} "$body" >&3; cat <&3`
		out, err := p.command("run", "--env", "PAGE="+strings.Trim(strings.TrimPrefix(page.url, "http:"), "/"), script).CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Contains(t, string(out), "403 Forbidden")
		assert.Contains(t, string(out), "what runs in a session, a job or a terminal of limpet cannot answer")
		require.NoFileExists(t, filepath.Join(p.dir, "one"))

		// It is gone before anybody looks who it was: what is read first of the two holds up the answer.
		closing := strings.Replace(script, "printf 'POST", `printf 'GET /api/sessions HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer `+page.token+`\r\n\r\n' $PAGE >&3; printf 'POST`, 1)
		closing = strings.Replace(closing, "cat <&3", "exec 3>&-", 1)
		for range 5 {
			out, err = p.command("run", "--env", "PAGE="+strings.Trim(strings.TrimPrefix(page.url, "http:"), "/"), closing).CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
		_, body := page.does(http.MethodGet, "api/questions", nil)
		assert.Contains(t, body, `"id":"`+id+`"`, "it waits as before")
		require.NoFileExists(t, filepath.Join(p.dir, "one"))
	})

	status, body = page.does(http.MethodPost, "api/questions/"+id, content{"digest": strings.Repeat("0", 64), "answer": "once"})
	assert.Equal(t, http.StatusConflict, status, body)
	status, body = page.does(http.MethodPost, "api/questions/"+id, content{"digest": digest, "answer": "once"})
	assert.Equal(t, http.StatusOK, status, body)
	assert.False(t, (<-waits).failed)
	require.FileExists(t, filepath.Join(p.dir, "one"))
	status, body = page.does(http.MethodPost, "api/questions/"+id, content{"digest": digest, "answer": "once"})
	assert.Equal(t, http.StatusConflict, status)
	assert.Contains(t, body, "not asked any more")

	waits = calls(t, c.ClientSession, "run_command", runs("touch two"))
	id, digest = page.question()
	status, body = page.does(http.MethodPost, "api/questions/"+id, content{"digest": digest, "answer": "no", "reason": "call it three"})
	assert.Equal(t, http.StatusOK, status, body)
	assert.Contains(t, (<-waits).text, "the answer was no: call it three")
	_, body = page.does(http.MethodGet, "api/questions", nil)
	assert.Contains(t, body, `"answer":"yes, this time"`)
	assert.Contains(t, body, `"answer":"no: call it three"`)
	page.ends()
	c.leaves()
	p.closeKept()
}

func TestThePageWithoutAllowAnswersSaysWhatToRun(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	t.Setenv("XDG_STATE_HOME", p.state)
	c := p.stdio("--approve", "ask", "--approve-wait", "20s")
	page := p.page("--allow-typing")
	waits := calls(t, c.ClientSession, "run_command", runs("touch one"))
	id, digest := page.question()
	status, body := page.does(http.MethodPost, "api/questions/"+id, content{"digest": digest, "answer": "once"})
	assert.Equal(t, http.StatusForbidden, status)
	assert.Contains(t, body, "answer at a terminal: limpet approvals answer "+id)
	tm := onTerminal(t, p.home, "xterm", "approvals", "answer", id)
	tm.sees("any other key: no")
	tm.types("n")
	tm.exits(0)
	assert.True(t, (<-waits).failed)
	page.ends()
	c.leaves()
	p.gone("closed")
}

// A limpet serve that runs in a session could be an agent's own.
func TestServeInASessionAnswersNothing(t *testing.T) {
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	for _, script := range []string{"limpet serve --allow-answers", `env -i PATH="$PATH" HOME="$HOME" limpet serve --allow-answers; exit $?`} {
		out, code := limpetIn(t, dir, "run", script)
		assert.Equal(t, codeFailed, code, out)
		assert.Contains(t, out, "--allow-answers: this limpet serve runs in a session, a job or a terminal of limpet")
	}
}

// What a person does on the page is written down, without what is secret in it.
func TestWhatAPersonDoesOnThePageIsWrittenDown(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	t.Setenv("XDG_STATE_HOME", p.state)
	c := p.stdio("--approve", "ask", "--keep")
	file := filepath.Join(p.home, "page.jsonl")
	page := p.page("--allow-answers", "--audit", file, "--audit-required")
	waits := calls(t, c.ClientSession, "run_command", runs("touch one"))
	id, digest := page.question()
	status, body := page.does(http.MethodPost, "api/questions/"+id, content{"digest": digest, "answer": "no", "reason": "AKIAABCDEFGHIJKLMNOP"})
	require.Equal(t, http.StatusOK, status, body)
	<-waits
	all := audited(t, file)
	require.Len(t, all, 1)
	assert.Equal(t, "person answer", kinds(all)[0])
	assert.Equal(t, "limpet serve", all[0].From)
	assert.Equal(t, id, all[0].Input)
	assert.Equal(t, "touch one", all[0].Script)
	assert.True(t, strings.HasPrefix(all[0].Answer, "no: "), all[0].Answer)
	assert.NotContains(t, all[0].Answer, "AKIAABCDEFGHIJKLMNOP")
	assert.NotEmpty(t, all[0].Masked)
	assert.NotEmpty(t, all[0].Host)
	page.ends()
	c.leaves()
	p.closeKept()
}
