package mcpserver_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestWhatIsWrittenToAJobIsRead(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "cat; echo end; exit 3", object{"keep_stdin_open": true})
	out, text := h.call("job_write", object{"job": id, "text": "hal"})
	assert.EqualValues(t, 3, out["written"])
	assert.Contains(t, text, "[3 bytes were written]")
	out, _ = h.call("job_write", object{"job": id, "text": ""})
	assert.EqualValues(t, 0, out["written"])
	out, text = h.call("job_submit", object{"job": id, "text": "f ü"})
	assert.Equal(t, id, out["job"].(object)["job"])
	assert.Contains(t, text, "[the line was written]")
	h.printed(id, "^half ü$")
	out, text = h.call("job_close", object{"job": id})
	assert.Equal(t, id, out["job"].(object)["job"])
	assert.Contains(t, text, "[its input is at its end]")
	job := h.ended(id)
	assert.EqualValues(t, 3, job["exit_code"])
	log, _ := h.call("job_log", object{"job": id})
	assert.Equal(t, "half ü\nend\n", log["text"])
}

func TestStdinOfABackgroundCommandComesFirst(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "cat", object{"stdin": "first\n", "keep_stdin_open": true})
	h.call("job_submit", object{"job": id, "text": "second"})
	h.printed(id, "second")
	h.call("job_close", object{"job": id})
	h.ended(id)
	log, _ := h.call("job_log", object{"job": id})
	assert.Equal(t, "first\nsecond\n", log["text"])
	h.ended(h.background("default", "cat", object{"stdin": "alone"}))
}

func TestWhyAJobCannotBeWrittenToIsToldWithTheRemedy(t *testing.T) {
	h := connect(t, setup{})
	tools := map[string]object{"job_write": {"text": "x"}, "job_submit": {"text": "x"}, "job_close": {}}
	refused := func(id, want string) {
		for tool, arguments := range tools {
			arguments["job"] = id
			assert.Contains(t, h.refuse(tool, arguments), want, tool)
		}
	}
	refused(h.background("default", "sleep 1000", nil), "background: true and keep_stdin_open: true, or on a terminal by terminal_create")

	closed := h.background("default", "cat; sleep 1000", object{"keep_stdin_open": true})
	h.call("job_close", object{"job": closed})
	refused(closed, "is closed: by an earlier job_close")

	over := h.background("default", "exit 6", object{"keep_stdin_open": true})
	h.ended(over)
	refused(over, "exit code 6")
	refused(over, "job_log has what it printed")
}

func TestAJobThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{})
	id := h.background("default", "sleep 1000", object{"keep_stdin_open": true})
	text := h.refuse("job_write", object{"job": id, "text": strings.Repeat("x", 1<<20)})
	assert.Contains(t, text, "does not read its input: ")
	assert.Contains(t, text, " of 1048576 bytes were taken")
	assert.Contains(t, h.refuse("job_submit", object{"job": id, "text": strings.Repeat("x", 1<<20)}), "see by job_poll what it is at")
}
