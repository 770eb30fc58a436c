package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// askPage asks a page for a value, by a POST if there is a body, and returns the status.
func askPage(t *testing.T, page, token, path, body string, value any) int {
	t.Helper()
	r, err := http.NewRequestWithContext(testenv.Context(t), http.MethodGet, page+path, nil)
	require.NoError(t, err)
	if body != "" {
		r.Method, r.Body, r.ContentLength = http.MethodPost, io.NopCloser(strings.NewReader(body)), int64(len(body))
		r.Header.Set("Origin", strings.TrimSuffix(page, "/"))
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	if value != nil && answer.StatusCode == http.StatusOK {
		require.NoError(t, json.NewDecoder(answer.Body).Decode(value))
	}
	return answer.StatusCode
}

// A page has the sessions of another machine beside those of this one, of the same names, and goes on over a connection that is lost.
func TestServeShowsAnotherMachine(t *testing.T) {
	testenv.Slow(t)
	m := newFarMachine(t)
	target := "exec:sh " + m.how
	on := func(args ...string) string {
		out, err := m.command(append(args, "--on", target)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	on("run", "-s", "s", "echo far")
	on("jobs", "start", "-s", "s", "echo from a job")
	on("term", "start", "-s", "s", "--line", "echo on a screen; read line")
	out, err := m.command("run", "-s", "s", "echo near").CombinedOutput()
	require.NoError(t, err, "%s", out)
	defer func() { _ = m.command("session", "close", "s").Run() }() // It has ended, unless the test failed.

	var said bytes.Buffer
	cmd := exec.Command("limpet", "serve", "--on", target)
	cmd.Dir, cmd.Stderr = m.home, &said
	page, token := linkParts(t, linkOf(t, cmd))
	asked := func(by, path, body string, value any) int {
		t.Helper()
		return askPage(t, page, by, path, body, value)
	}
	type list struct {
		Sessions []struct {
			Name, ID, Dir string
			Answers       bool
		}
		Machines []struct{ Target, Error string }
	}
	sessions := func() (l list) {
		t.Helper()
		require.Equal(t, http.StatusOK, asked(token, "api/sessions", "", &l))
		return l
	}
	var l list
	testenv.Await(t, "the other machine", func() bool { l = sessions(); return len(l.Sessions) == 2 && l.Machines[0].Error == "" })
	far := "s@" + target
	assert.Equal(t, []string{far, "s"}, []string{l.Sessions[0].Name, l.Sessions[1].Name})
	assert.True(t, l.Sessions[0].Answers)
	query := "?session=" + url.QueryEscape(far)

	event := func(of string) string {
		r, err := http.NewRequestWithContext(testenv.Context(t), http.MethodGet, page+"api/events?session="+url.QueryEscape(of), nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		all := json.NewDecoder(answer.Body)
		for {
			var e struct{ Kind, Session, Script string }
			require.NoError(t, all.Decode(&e))
			if e.Kind == "begin" {
				return e.Session + ": " + e.Script
			}
		}
	}
	assert.Equal(t, far+": echo far", event(far))
	assert.Equal(t, "s: echo near", event("s"))
	var jobs struct {
		Jobs []struct{ ID, Command string }
	}
	require.Equal(t, http.StatusOK, asked(token, "api/jobs"+query, "", &jobs))
	require.Len(t, jobs.Jobs, 1)
	assert.Equal(t, "echo from a job", jobs.Jobs[0].Command)
	var log struct{ Text []byte }
	testenv.Await(t, "the job's output", func() bool {
		require.Equal(t, http.StatusOK, asked(token, "api/jobs/"+jobs.Jobs[0].ID+"/log"+query, "", &log))
		return string(log.Text) == "from a job\n"
	})
	testenv.Await(t, "the screen", func() bool {
		var terminals struct{ Terminals []struct{ Screen string } }
		require.Equal(t, http.StatusOK, asked(token, "api/terminals"+query, "", &terminals))
		return len(terminals.Terminals) == 1 && strings.Contains(terminals.Terminals[0].Screen, "on a screen")
	})
	refused := asked(token, "api/jobs/"+jobs.Jobs[0].ID+"/stop"+query, "{}", nil)
	assert.Equal(t, http.StatusRequestEntityTooLarge, refused, "a stop has no body")
	for _, name := range []string{"s@", "s@nowhere", "@" + target, "s s@" + target} {
		assert.Contains(t, []int{http.StatusBadRequest, http.StatusNotFound}, asked(token, "api/jobs?session="+url.QueryEscape(name), "", nil), name)
	}

	// A share link is of the one session, and not of the other of that name.
	wants, err := json.Marshal(map[string]any{"session": far, "id": l.Sessions[0].ID, "seconds": 60})
	require.NoError(t, err)
	var share struct{ Token string }
	require.Equal(t, http.StatusOK, asked(token, "api/shares", string(wants), &share))
	var shared list
	require.Equal(t, http.StatusOK, asked(share.Token, "api/sessions", "", &shared))
	require.Len(t, shared.Sessions, 1)
	assert.Equal(t, far, shared.Sessions[0].Name)
	assert.Empty(t, shared.Machines)
	assert.Equal(t, http.StatusOK, asked(share.Token, "api/jobs"+query, "", nil))
	assert.Equal(t, http.StatusForbidden, asked(share.Token, "api/jobs?session=s", "", nil))

	m.cut()
	testenv.Await(t, "the loss", func() bool {
		l = sessions()
		return strings.Contains(l.Machines[0].Error, "was not reached") && !l.Sessions[0].Answers && l.Sessions[1].Answers
	})
	m.mend()
	testenv.Await(t, "the machine again", func() bool { l = sessions(); return l.Machines[0].Error == "" && l.Sessions[0].Answers })
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait() // Its exit code is looked at.
	assert.Equal(t, codeSignal+int(syscall.SIGTERM), cmd.ProcessState.ExitCode(), said.String())
	on("session", "close", "s")
}

// What an agent wants on another machine is answered on a page of this one.
func TestServeAnswersWhatAnotherMachineAsks(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	t.Setenv("XDG_STATE_HOME", p.state)
	t.Setenv("XDG_RUNTIME_DIR", p.runtime)
	far := testenv.TempDir(t)
	target := "exec:env -i HOME=" + far + " GORACE=atexit_sleep_ms=0 " + p.mark + " sh"
	c := p.stdio("--on", target, "--keep=agent", "--approve", "ask", "--tools", "shell")
	cmd := exec.Command("limpet", "serve", "--on", target, "--allow-answers", "--notify", "cat >>"+far+"/told")
	page, token := linkParts(t, linkOf(t, cmd))
	type list struct {
		Questions []struct{ ID, Digest, Session, Script string }
	}
	asks := func(script string) (q list) {
		t.Helper()
		testenv.Await(t, "the question "+script, func() bool {
			q = list{}
			require.Equal(t, http.StatusOK, askPage(t, page, token, "api/questions", "", &q))
			return len(q.Questions) == 1 && q.Questions[0].Script == script
		})
		return q
	}
	answers := func(id, digest, answer string) int {
		t.Helper()
		body, err := json.Marshal(map[string]string{"digest": digest, "answer": answer})
		require.NoError(t, err)
		return askPage(t, page, token, "api/questions/"+url.PathEscape(id), string(body), nil)
	}
	waits := calls(t, c.ClientSession, "run_command", runs("touch ~/one"))
	q := asks("touch ~/one").Questions[0]
	assert.Equal(t, "agent@"+target, q.Session)
	own, found := strings.CutSuffix(q.ID, "@"+target)
	require.True(t, found, q.ID)
	var sheet struct {
		Title, Command, Digest string
		Choices                []struct{ Answer string }
	}
	require.Equal(t, http.StatusOK, askPage(t, page, token, "api/questions/"+url.PathEscape(q.ID), "", &sheet))
	assert.Contains(t, sheet.Title, " on "+target+", session agent, asks: may this run in "+far)
	assert.Equal(t, "limpet approvals answer --on '"+target+"' "+own, sheet.Command)
	var offered []string
	for _, one := range sheet.Choices {
		offered = append(offered, one.Answer)
	}
	assert.NotContains(t, offered, "always", "its rules are over there")
	assert.Equal(t, http.StatusConflict, answers(own, q.Digest, "once"), "it is none of this machine")
	assert.Equal(t, http.StatusConflict, answers(own+"@elsewhere", q.Digest, "once"))
	assert.Equal(t, http.StatusBadRequest, answers(q.ID, q.Digest, "always"))
	require.NoFileExists(t, filepath.Join(far, "one"))
	testenv.Await(t, "the notice", func() bool { // The other machine is asked for questions every 2 s.
		told, _ := os.ReadFile(filepath.Join(far, "told")) // It may not be there yet.
		return strings.Count(string(told), "may this run?") == 1
	})
	require.Equal(t, http.StatusOK, answers(q.ID, q.Digest, "once"))
	assert.False(t, (<-waits).failed)
	require.FileExists(t, filepath.Join(far, "one"))

	waits = calls(t, c.ClientSession, "run_command", runs("touch ~/two"))
	q = asks("touch ~/two").Questions[0]
	require.Equal(t, http.StatusOK, answers(q.ID, q.Digest, "no"))
	assert.True(t, (<-waits).failed)
	require.NoFileExists(t, filepath.Join(far, "two"))
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait() // It ends by the signal.
	c.leaves()
	p.limpet("session", "close", "--on", target, "agent")
	p.limpet("hosts", "close", "--all")
	p.gone("after the last connection was closed")
}

// A machine that is not reached is said at once, and none is asked for twice.
func TestServeSaysWhichMachineIsNotReached(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", testenv.TempDir(t))
	for flags, want := range map[string]string{
		"--on exec:false":                 `reach "exec:false": the machine was not reached: false ended with exit code 1`,
		"--on exec:false --on exec:false": `invalid argument "exec:false" for "--on" flag: it is given twice`,
		"--agents /":                      "--agents means nothing without --on",
	} {
		out, err := exec.Command("limpet", append([]string{"serve"}, strings.Fields(flags)...)...).CombinedOutput()
		require.Error(t, err, "%s", out)
		assert.Contains(t, string(out), want)
	}
}
