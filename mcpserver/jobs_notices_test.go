package mcpserver_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// told are the notices that come with an answer.
func told(out object) string { return fmt.Sprint(out["notices"]) }

// later runs commands until one has a notice of a session, and returns it.
func (h *host) later(session string) string {
	h.t.Helper()
	var notices string
	testenv.Await(h.t, "a notice", func() bool {
		out := h.run(session, "true")
		notices = told(out)
		return out["notices"] != nil
	})
	return notices
}

func TestTheEndOfAJobIsToldOnce(t *testing.T) {
	h := connect(t, setup{})
	script, open := gated(t, "exit 3")
	id := h.background("one", script, nil)
	other := h.background("one", "sleep 1000", nil)
	open()
	h.unseen(id)
	h.run("two", "true")
	testenv.Await(t, "the end to be told with the answer of another job", func() bool {
		out, text := h.call("job_poll", object{"job": other})
		if out["notices"] == nil {
			return false
		}
		assert.Contains(t, told(out), "job "+id+" (until [ -e ")
		assert.Contains(t, text, " has ended: exit 3]")
		return true
	})
	assert.Nil(t, h.run("one", "true")["notices"])
	assert.Nil(t, h.run("two", "true")["notices"], "other sessions have nothing to do with it")
}

func TestAnEndThatAnAnswerHasShownIsNoNotice(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{})
	for name, look := range map[string]func(id string) object{
		"poll":       func(id string) object { out, _ := h.call("job_poll", object{"job": id}); return out },
		"poll since": func(id string) object { out, _ := h.call("job_poll", object{"job": id, "since": 0}); return out },
		"log":        func(id string) object { out, _ := h.call("job_log", object{"job": id, "head_lines": 1}); return out },
		"search":     func(id string) object { out, _ := h.call("job_log", object{"job": id, "pattern": "x"}); return out },
		"wait":       func(id string) object { out, _ := h.call("job_wait", object{"jobs": []string{id}}); return out },
		"kill":       func(id string) object { out, _ := h.call("job_kill", object{"job": id}); return out },
		"list":       func(string) object { out, _ := h.call("job_list", object{"session": "default"}); return out },
		"write":      func(id string) object { h.refuse("job_write", object{"job": id, "text": "x"}); return nil },
	} {
		id := h.background("default", "echo one; echo two", object{"keep_stdin_open": true})
		h.unseen(id)
		h.run("other", "true") // By that it has become a notice.
		assert.Nil(t, look(id)["notices"], name)
		assert.Nil(t, h.run("default", "true")["notices"], name)
		// What comes next is told: nothing of the first was behind it.
		script, open := gated(t, "exit 4")
		next := h.background("default", script, nil)
		open()
		notices := h.later("default")
		assert.Contains(t, notices, next, name)
		assert.NotContains(t, notices, id, name)
	}
}

func TestALineThatIsWatchedForIsToldOnce(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "cat", object{"keep_stdin_open": true, "watch": []string{"^ERROR", "ready"}})
	h.call("job_submit", object{"job": id, "text": "fine"})
	out, _ := h.call("job_submit", object{"job": id, "text": "now ready"}) // Whose answer may tell it already.
	testenv.Await(t, "the line to be told", func() bool {
		if out["notices"] == nil {
			out, _ = h.call("job_poll", object{"job": id})
		}
		return out["notices"] != nil
	})
	notices := told(out)
	assert.Contains(t, notices, `printed line 2, which matches "ready": now ready`)
	out, _ = h.call("job_list", object{"session": "default"})
	assert.Nil(t, out["notices"])
	assert.Nil(t, h.run("default", "true")["notices"])
}

func TestAJobThatRunsIsNotTakenForSeen(t *testing.T) {
	h := connect(t, setup{})
	script, open := gated(t, "exit 5")
	id := h.background("default", script, object{"keep_stdin_open": true})
	h.call("job_list", nil)
	h.call("job_poll", object{"job": id})
	h.call("job_log", object{"job": id})
	h.call("job_wait", object{"jobs": []string{id}, "timeout_seconds": 0.001})
	h.call("job_submit", object{"job": id, "text": "x"})
	h.call("job_close", object{"job": id})
	open()
	h.unseen(id)
	assert.Contains(t, h.later("default"), "has ended: exit 5")
}

// Another agent may list them than the one that waits for the end.
func TestAListOfAllJobsLeavesTheirEndsToTheirSessions(t *testing.T) {
	h := connect(t, setup{})
	script, open := gated(t, "exit 3") // Else the answer that starts it may tell its end.
	id := h.background("default", script, nil)
	open()
	h.unseen(id)
	h.call("job_list", nil)
	assert.Contains(t, h.later("default"), "exit 3")
}
