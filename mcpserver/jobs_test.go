package mcpserver_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
)

// background starts a job, and returns its id.
func (h *host) background(session, command string, more object) string {
	h.t.Helper()
	arguments := object{"session": session, "command": command, "background": true}
	for name, value := range more {
		arguments[name] = value
	}
	out, _ := h.call("run_command", arguments)
	return out["job"].(object)["job"].(string)
}

// ended waits for the end of a job, and returns how it is then.
func (h *host) ended(id string) object {
	h.t.Helper()
	out, _ := h.call("job_wait", object{"jobs": []string{id}, "timeout_seconds": testenv.Patience.Seconds()})
	require.Equal(h.t, "exited", out["reason"])
	return out["job"].(object)
}

// printed waits for a line of a job, and returns what job_wait does.
func (h *host) printed(id, pattern string) object {
	h.t.Helper()
	out, _ := h.call("job_wait", object{"jobs": []string{id}, "pattern": pattern, "timeout_seconds": testenv.Patience.Seconds()})
	require.Equal(h.t, "matched", out["reason"], "%v", out)
	return out
}

// unseen waits for the end of a job without having seen it. What is to be told of it is
// ready then.
func (h *host) unseen(id string) {
	h.t.Helper()
	r, err := h.sessions.Jobs()
	require.NoError(h.t, err)
	testenv.Await(h.t, "the end of "+id, func() bool {
		events, err := r.History(id)
		require.NoError(h.t, err)
		return slices.ContainsFunc(events, func(e jobs.Event) bool { return e.Kind == jobs.Ended })
	})
}

func TestABackgroundJobHasTheDirectoryAndTheExportsOfItsSession(t *testing.T) {
	h := connect(t, setup{})
	h.run("build", "mkdir -p src && cd src && export WHO=me && mine=1")
	id := h.background("build", `echo "$WHO ${mine-unset} ${PWD##*/}"`, nil)
	out, text := h.call("job_wait", object{"jobs": []string{id}})
	assert.Equal(t, "exited", out["reason"])
	assert.Equal(t, "me unset src\n", out["output"])
	job := out["job"].(object)
	assert.Equal(t, id, job["job"])
	assert.Equal(t, "build", job["session"])
	assert.Equal(t, "src", filepath.Base(job["dir"].(string)))
	assert.Equal(t, "exited", job["state"])
	assert.EqualValues(t, 0, job["exit_code"])
	assert.EqualValues(t, len("me unset src\n"), job["output_bytes"])
	assert.NotContains(t, job, "pid")
	assert.NotContains(t, job, "stopped_by")
	assert.Contains(t, text, "me unset src\n[exited after")
	assert.Contains(t, text, "exit code 0")

	h.run("build", "cd ..")
	assert.Equal(t, "src", filepath.Base(job["dir"].(string)), "the job stays where it was started")
}

func TestJobsOfTwoSessionsAreListedApart(t *testing.T) {
	h := connect(t, setup{})
	one, two := h.background("one", "sleep 1000", nil), h.background("two", "exit 3", nil)
	h.unseen(two)
	ids := func(arguments object) (ids []string) {
		out, text := h.call("job_list", arguments)
		for _, job := range out["jobs"].([]any) {
			ids = append(ids, job.(object)["job"].(string))
			assert.Contains(t, text, ids[len(ids)-1])
		}
		return ids
	}
	assert.Equal(t, []string{one, two}, ids(object{}))
	assert.Equal(t, []string{one, two}, ids(object{"state": "all"}))
	assert.Equal(t, []string{one}, ids(object{"session": "one"}))
	assert.Equal(t, []string{two}, ids(object{"session": "two"}))
	assert.Equal(t, []string{one}, ids(object{"state": "running"}))
	assert.Equal(t, []string{two}, ids(object{"state": "finished"}))
	assert.Empty(t, ids(object{"session": "two", "state": "running"}))
	assert.Empty(t, ids(object{"session": "three"}))

	h.call("session_close", object{"session": "one"})
	out, text := h.call("job_list", object{"session": "one"})
	job := out["jobs"].([]any)[0].(object)
	assert.Equal(t, "stop", job["stopped_by"], "it ends with its session, and can still be looked at")
	assert.Contains(t, text, "stopped on request")
}

func TestALeftoverOfAJobIsListedAsRunning(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{})
	id := h.background("default", "sleep 1000 >/dev/null 2>&1 & exit 5", nil)
	job := h.ended(id)
	assert.EqualValues(t, 5, job["exit_code"])
	require.Equal(t, true, job["leftover"])
	out, text := h.call("job_list", object{"state": "running"})
	assert.Len(t, out["jobs"], 1)
	assert.Contains(t, text, "run on")
	killed, _ := h.call("job_kill", object{"job": id})
	assert.Equal(t, true, killed["killed"])
	assert.NotContains(t, killed["job"], "leftover")
	out, _ = h.call("job_list", object{"state": "running"})
	assert.Empty(t, out["jobs"])
}

func TestJobKillEndsAJobWithAllThatItHasStarted(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{})
	id := h.background("default", "trap '' INT TERM; sleep 1000 & (setsid sleep 1001 & echo $!; wait); wait", nil)
	pid := h.printed(id, `^\d+$`)["match"].(object)["text"].(string)
	out, text := h.call("job_kill", object{"job": id})
	assert.Equal(t, true, out["killed"])
	assert.NotContains(t, out, "survived")
	job := out["job"].(object)
	assert.Equal(t, "exited", job["state"])
	assert.Equal(t, "stop", job["stopped_by"])
	assert.Equal(t, "signal 9 (killed)", job["signal"])
	assert.NotContains(t, job, "exit_code", "a signal ended it")
	assert.Contains(t, text, "[ended]")
	_, err := os.Stat("/proc/" + pid)
	if _, proc := os.Stat("/proc/self"); proc == nil {
		assert.ErrorIs(t, err, os.ErrNotExist)
	}

	out, text = h.call("job_kill", object{"job": id})
	assert.Equal(t, false, out["killed"], "it had ended before, which is no error")
	assert.Equal(t, job["signal"], out["job"].(object)["signal"])
	assert.Contains(t, text, "it had ended before")
	_, text = h.call("run_command", object{"command": "true"})
	assert.NotContains(t, text, id, "whoever has killed it knows")
}

func TestAJobsTimeoutStopsIt(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "sleep 1000", object{"timeout_seconds": 0.05})
	job := h.ended(id)
	assert.Equal(t, "timeout", job["stopped_by"])
	assert.Equal(t, "exited", job["state"])
}

func TestACommandThatIsMovedToTheBackgroundIsAJob(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{})
	script, open := gated(t, "echo last; exit 4")
	out, text := h.call("run_command", object{"command": "echo first; " + script, "timeout_seconds": 0.2, "on_timeout": "background"})
	require.Equal(t, "background", out["status"], text)
	id := out["job"].(object)["job"].(string)
	assert.Contains(t, text, id)
	h.printed(id, "first")
	polled, _ := h.call("job_poll", object{"job": id})
	assert.Equal(t, "running", polled["job"].(object)["state"])
	assert.Equal(t, "first\n", polled["output"])
	open()
	job := h.ended(id)
	assert.EqualValues(t, 4, job["exit_code"])
	polled, _ = h.call("job_poll", object{"job": id})
	assert.Equal(t, "last\n", polled["output"])
	assert.Equal(t, "default", job["session"])
}

func TestWhatWasMovedToTheBackgroundCanBeKilled(t *testing.T) {
	h := connect(t, setup{})
	out, _ := h.call("run_command", object{"command": "sleep 1000", "timeout_seconds": 0.1, "on_timeout": "background"})
	id := out["job"].(object)["job"].(string)
	killed, _ := h.call("job_kill", object{"job": id})
	assert.Equal(t, true, killed["killed"])
	assert.Equal(t, "stop", killed["job"].(object)["stopped_by"])
}

func TestThatThereIsNoSuchJobIsToldWithThoseThatThereAre(t *testing.T) {
	h := connect(t, setup{})
	tools := map[string]object{
		"job_poll": {"job": "nope"}, "job_log": {"job": "nope"}, "job_wait": {"jobs": []string{"nope"}}, "job_kill": {"job": "nope"},
		"job_write": {"job": "nope", "text": "x"}, "job_submit": {"job": "nope", "text": "x"}, "job_close": {"job": "nope"},
	}
	for tool, arguments := range tools {
		text := h.refuse(tool, arguments)
		assert.Contains(t, text, `there is no job "nope": there are no jobs; run_command with background: true starts one`, tool)
	}
	id := h.background("default", "sleep 1000", nil)
	for tool, arguments := range tools {
		text := h.refuse(tool, arguments)
		assert.Contains(t, text, `there is no job "nope"`, tool)
		assert.Contains(t, text, id+" (running)", tool)
	}
	assert.Contains(t, h.refuse("job_log", object{"job": "nope", "pattern": "x"}), id)
	assert.Contains(t, h.refuse("job_log", object{"job": "nope", "offset": 0}), id)
	assert.Contains(t, h.refuse("job_wait", object{"jobs": []string{id, "nope"}}), id)
}

func TestOfManyJobsTheLastAreNamed(t *testing.T) {
	h := connect(t, setup{})
	for range 12 {
		h.background("default", "true", nil)
	}
	text := h.refuse("job_poll", object{"job": "nope"})
	assert.Contains(t, text, "and 2 older ones (job_list has them)")
	assert.Equal(t, 10, strings.Count(text, "job-true-"))
}

func TestArgumentsOfJobToolsThatCannotBeMeant(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "echo text; sleep 1000", nil)
	h.printed(id, "text")
	for _, row := range []struct {
		tool, want string
		arguments  object
	}{
		{"job_list", `"state" is "ended", and must be one of "running", "finished", "all"`, object{"state": "ended"}},
		{"job_list", `there is no argument "jobs"`, object{"jobs": "x"}},
		{"job_poll", `"job" is missing`, object{}},
		{"job_poll", `"job" must be a string`, object{"job": 7}},
		{"job_poll", `"since" is -1, and must be 0 or more`, object{"job": id, "since": -1}},
		{"job_poll", `"since" is 1000, and the job has printed 5 bytes`, object{"job": id, "since": 1000}},
		{"job_poll", `"since" must be an integer`, object{"job": id, "since": 1e300}},
		{"job_poll", `"max_output_bytes" is 1, and must be 256 or more`, object{"job": id, "max_output_bytes": 1}},
		{"job_log", `only one of "tail_lines", "head_lines"`, object{"job": id, "tail_lines": 1, "head_lines": 1}},
		{"job_log", `only one of "tail_lines", "head_lines"`, object{"job": id, "line": 1, "bytes": 1}},
		{"job_log", `only one of "tail_lines", "head_lines"`, object{"job": id, "offset": 0, "pattern": "x"}},
		{"job_log", `only one of "tail_lines", "head_lines"`, object{"job": id, "lines": 3, "tail_lines": 3}},
		{"job_log", `"max_matches" and "from_offset" go with "pattern"`, object{"job": id, "max_matches": 1}},
		{"job_log", `"max_matches" and "from_offset" go with "pattern"`, object{"job": id, "from_offset": 1}},
		{"job_log", `"pattern": error parsing regexp`, object{"job": id, "pattern": "("}},
		{"job_log", `"offset" is 6, and the job has printed 5 bytes`, object{"job": id, "offset": 6}},
		{"job_log", `"from_offset" is 6, and the job has printed 5 bytes`, object{"job": id, "pattern": "x", "from_offset": 6}},
		{"job_log", `"tail_lines" is 0, and must be 1 or more`, object{"job": id, "tail_lines": 0}},
		{"job_log", `"tail_lines" is -5, and must be 1 or more`, object{"job": id, "tail_lines": -5}},
		{"job_log", `"lines" is 10001, and must be 10000 or less`, object{"job": id, "line": 1, "lines": 10001}},
		{"job_log", `did you mean "tail_lines"?`, object{"job": id, "tail": 5}},
		{"job_wait", `"pattern": error parsing regexp`, object{"pattern": "(?=x)"}},
		{"job_wait", `"from_offset" goes with "pattern"`, object{"jobs": []string{id}, "from_offset": 3}},
		{"job_wait", `"timeout_seconds" is -1`, object{"timeout_seconds": -1}},
		{"job_wait", `"silence_seconds" is 0, and must be 0.001 or more`, object{"silence_seconds": 0}},
		{"job_wait", `"silence_seconds" is 1e+300, and must be 1e+09 or less`, object{"silence_seconds": 1e300}},
		{"job_wait", `"port" is 0, and must be 1 or more`, object{"port": 0}},
		{"job_wait", `"port" is 65536, and must be 65535 or less`, object{"port": 65536}},
		{"job_wait", `"port" must be an integer`, object{"port": "http"}},
		{"job_wait", `"jobs" must be an array`, object{"jobs": 5}},
		{"job_wait", `only one of "jobs" and "session"`, object{"jobs": []string{id}, "session": "default"}},
		{"job_write", `"text" is missing`, object{"job": id}},
		{"job_submit", `"text" is missing`, object{"job": id}},
		{"job_kill", `there is no argument "signal"`, object{"job": id, "signal": "KILL"}},
		{"job_close", `"job" is missing`, nil},
	} {
		assert.Contains(t, h.bad(row.tool, row.arguments), row.want, "%s %v", row.tool, row.arguments)
	}
}

// outputs checks answers against the schemas that clients have.
func (h *host) outputs() func(tool string, arguments object) {
	tools, err := h.ListTools(testenv.Context(h.t), nil)
	require.NoError(h.t, err)
	resolved := make(map[string]*jsonschema.Resolved)
	for _, tool := range tools.Tools {
		var schema jsonschema.Schema
		remarshal(h.t, tool.OutputSchema, &schema)
		if resolved[tool.Name], err = schema.Resolve(nil); err != nil {
			h.t.Fatal(err)
		}
	}
	return func(tool string, arguments object) {
		h.t.Helper()
		out, _ := h.call(tool, arguments)
		assert.NoError(h.t, resolved[tool].Validate(out), "%s %v", tool, arguments)
	}
}

func TestAnswersOfJobToolsFitTheirSchemas(t *testing.T) {
	h := connect(t, setup{})
	check := h.outputs()
	check("job_list", nil)
	cat := h.background("default", "cat", object{"keep_stdin_open": true})
	check("job_write", object{"job": cat, "text": "a\nb"})
	check("job_submit", object{"job": cat, "text": ""})
	check("job_wait", object{"jobs": []string{cat}, "pattern": "b"})
	check("job_wait", object{"timeout_seconds": 0.001})
	check("job_poll", object{"job": cat})
	check("job_log", object{"job": cat})
	check("job_log", object{"job": cat, "pattern": "b"})
	check("job_list", nil)
	check("job_close", object{"job": cat})
	h.ended(cat)
	check("job_poll", object{"job": cat})
	killed := h.background("default", "sleep 1000", nil)
	check("job_kill", object{"job": killed})
	check("job_kill", object{"job": killed})
	check("job_list", nil)
}

func TestNoJobToolsWithoutTheGroup(t *testing.T) {
	with := setup{}
	with.server.Tools = []string{"shell"}
	h := connect(t, with)
	_, err := h.try("job_list", nil)
	assert.ErrorContains(t, err, "job_list")
}

func TestJobsThatAnEarlierServerHasLeftCanBeLookedAt(t *testing.T) {
	state := testenv.TempDir(t)
	var id string
	t.Run("before", func(t *testing.T) {
		h := connect(t, setup{sessions: session.Options{StateDir: state}})
		id = h.background("default", "echo here; sleep 1000", nil)
		h.printed(id, "here")
	})
	h := connect(t, setup{sessions: session.Options{StateDir: state}})
	out, _ := h.call("job_log", object{"job": id})
	assert.Equal(t, "here\n", out["text"])
	job := out["job"].(object)
	assert.Equal(t, "exited", job["state"])
	assert.Equal(t, "stop", job["stopped_by"], "it ended with its session")
}
