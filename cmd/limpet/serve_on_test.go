package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// A page has the sessions of another machine beside those of this one, of the same names, and goes on over a connection that is lost.
func TestServeShowsAnotherMachine(t *testing.T) {
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
	parts := regexp.MustCompile(`^(http://127\.0\.0\.1:\d+/)#([A-Z2-7]{26})\n$`).FindStringSubmatch(linkOf(t, cmd))
	require.NotNil(t, parts)
	asked := func(token, path, body string, value any) int {
		t.Helper()
		r, err := http.NewRequestWithContext(testenv.Context(t), http.MethodGet, parts[1]+path, nil)
		require.NoError(t, err)
		if body != "" {
			r.Method, r.Body, r.ContentLength = http.MethodPost, io.NopCloser(strings.NewReader(body)), int64(len(body))
			r.Header.Set("Origin", strings.TrimSuffix(parts[1], "/"))
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
	type list struct {
		Sessions []struct {
			Name, ID, Dir string
			Answers       bool
		}
		Machines []struct{ Target, Error string }
	}
	sessions := func() (l list) {
		t.Helper()
		require.Equal(t, http.StatusOK, asked(parts[2], "api/sessions", "", &l))
		return l
	}
	var l list
	testenv.Await(t, "the other machine", func() bool { l = sessions(); return len(l.Sessions) == 2 && l.Machines[0].Error == "" })
	far := "s@" + target
	assert.Equal(t, []string{far, "s"}, []string{l.Sessions[0].Name, l.Sessions[1].Name})
	assert.True(t, l.Sessions[0].Answers)
	query := "?session=" + url.QueryEscape(far)

	event := func(of string) string {
		r, err := http.NewRequestWithContext(testenv.Context(t), http.MethodGet, parts[1]+"api/events?session="+url.QueryEscape(of), nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+parts[2])
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
	require.Equal(t, http.StatusOK, asked(parts[2], "api/jobs"+query, "", &jobs))
	require.Len(t, jobs.Jobs, 1)
	assert.Equal(t, "echo from a job", jobs.Jobs[0].Command)
	var log struct{ Text []byte }
	testenv.Await(t, "the job's output", func() bool {
		require.Equal(t, http.StatusOK, asked(parts[2], "api/jobs/"+jobs.Jobs[0].ID+"/log"+query, "", &log))
		return string(log.Text) == "from a job\n"
	})
	testenv.Await(t, "the screen", func() bool {
		var terminals struct{ Terminals []struct{ Screen string } }
		require.Equal(t, http.StatusOK, asked(parts[2], "api/terminals"+query, "", &terminals))
		return len(terminals.Terminals) == 1 && strings.Contains(terminals.Terminals[0].Screen, "on a screen")
	})
	refused := asked(parts[2], "api/jobs/"+jobs.Jobs[0].ID+"/stop"+query, "{}", nil)
	assert.Equal(t, http.StatusRequestEntityTooLarge, refused, "a stop has no body")
	for _, name := range []string{"s@", "s@nowhere", "@" + target, "s s@" + target} {
		assert.Contains(t, []int{http.StatusBadRequest, http.StatusNotFound}, asked(parts[2], "api/jobs?session="+url.QueryEscape(name), "", nil), name)
	}

	// A share link is of the one session, and not of the other of that name.
	wants, err := json.Marshal(map[string]any{"session": far, "id": l.Sessions[0].ID, "seconds": 60})
	require.NoError(t, err)
	var share struct{ Token string }
	require.Equal(t, http.StatusOK, asked(parts[2], "api/shares", string(wants), &share))
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

// A machine that is not reached is said at once, and none is asked for twice.
func TestServeSaysWhichMachineIsNotReached(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", testenv.TempDir(t))
	for flags, want := range map[string]string{
		"--on exec:false":                 `reach "exec:false": the machine was not reached: false ended with exit code 1`,
		"--on exec:false --on exec:false": `invalid argument "exec:false" for "--on" flag: is said twice`,
		"--agents /":                      "--agents means nothing without --on",
	} {
		out, err := exec.Command("limpet", append([]string{"serve"}, strings.Fields(flags)...)...).CombinedOutput()
		require.Error(t, err, "%s", out)
		assert.Contains(t, string(out), want)
	}
}
