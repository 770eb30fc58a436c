package mcpserver_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/session"
)

// Hosts cut what is long: some keep the beginning alone, some leave the middle out. However they
// cut, a model reads how the command ended, and how to get the rest.
func TestTheExitCodeSurvivesTheCutsOfHosts(t *testing.T) {
	h := connect(t, setup{plain: true})
	h.call("run_command", object{"command": "true"})
	for _, row := range []struct {
		command string
		long    bool
	}{
		{"seq 1 500; exit 3", false}, {"seq 1 1200; exit 3", true}, {"seq 1 30000; exit 3", true}, {"seq 1 30000 >&2; exit 3", true},
		{"printf 'x%.0s' {1..60000}; exit 3", true}, {"yes | head -n 4000; exit 3", true},
	} {
		_, text := h.call("run_command", object{"command": row.command})
		assert.LessOrEqual(t, strings.Count(text, "\n"), 1520, row.command)
		if !row.long {
			assert.True(t, strings.HasSuffix(text, "\n[exit 3]"), row.command)
			assert.False(t, strings.HasPrefix(text, "[exit 3"), row.command)
			continue
		}
		cut := text[:500] + "...cut..."                           // As Copilot and Qwen do.
		ends := text[:1000] + "...cut..." + text[len(text)-1000:] // As Codex and Cline do.
		for _, seen := range []string{cut, ends, text[len(text)-500:]} {
			assert.Contains(t, seen, "[exit 3", row.command)
			if strings.Contains(text, "left out") {
				assert.Regexp(t, `\[exit 3, \d+ bytes are left out: read_output has them, result r\d+-\w+`, seen, row.command)
			}
		}
	}
}

// An answer with too many lines says from which offset on the lines that it lacks can be read.
func TestAnAnswerHasSoManyLinesAtMost(t *testing.T) {
	h := connect(t, setup{plain: true})
	_, text := h.call("run_command", object{"command": "seq 1 5000", "max_output_bytes": 32768})
	found := regexp.MustCompile(`\[(\d+) bytes are left out here: read_output with result_id "(\S+)", stream "stdout" and offset (\d+)\]`).FindStringSubmatch(text)
	require.NotNil(t, found, text[:200])
	_, rest := h.call("read_output", object{"result_id": found[2], "offset": atoi(t, found[3]), "bytes": 100})
	next, _, _ := strings.Cut(rest, "\n")
	assert.Contains(t, text, "\n"+strconv.Itoa(atoi(t, next)-1)+"\n\n[", "it goes on where the answer stops")
	_, part := h.call("read_output", object{"result_id": found[2], "offset": 0, "bytes": 32768})
	assert.Equal(t, 1500, strings.Count(part, "\n"))
	assert.Contains(t, part, "\n1500\n[bytes 0 to 6393 of 23893 of stdout; the rest: offset 6393]")
	_, part = h.call("read_output", object{"result_id": found[2], "tail_lines": 4000})
	assert.Contains(t, part, "\n3501\n")
	assert.NotContains(t, part, "\n3500\n")
	assert.Contains(t, part, "bytes of these lines are left out")
}

// What a job prints comes in pieces that a host passes on whole, and each goes on where the
// last one ended.
func TestWhatIsNewOfAJobHasSoManyLinesAtMost(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "seq 1 4000", nil)
	h.ended(id)
	var got []string
	for range 3 {
		out, text := h.call("job_poll", object{"job": id, "max_output_bytes": 32768})
		got = append(got, strings.Fields(out["output"].(string))...)
		assert.LessOrEqual(t, strings.Count(text, "\n"), 1510)
		assert.EqualValues(t, 18893, num(out, "next_offset")+num(out, "more_bytes"))
	}
	require.Len(t, got, 4000)
	assert.Equal(t, []string{"1", "1501", "3001", "4000"}, []string{got[0], got[1500], got[3000], got[3999]})
	out, _ := h.call("job_poll", object{"job": id, "since": 6393, "max_output_bytes": 32768})
	assert.Regexp(t, `(?s)^1501\n.*\n3000\n$`, out["output"])
}

// Programs in which a model calls tools find there what they ask for first.
func TestFieldsForProgramsAreInMeta(t *testing.T) {
	h := connect(t, setup{plain: true})
	res, err := h.try("run_command", object{"command": "exit 3"})
	require.NoError(t, err)
	assert.EqualValues(t, 3, res.Meta["limpet/exit_code"])
	assert.NotContains(t, res.Meta, "limpet/status", "it has exited")
	assert.Regexp(t, `^r\d+-`, res.Meta["limpet/result_id"])
	assert.Nil(t, res.StructuredContent)
	res, err = h.try("run_command", object{"command": "sleep 1000", "background": true})
	require.NoError(t, err)
	assert.Regexp(t, `^job-`, res.Meta["limpet/job"])
	assert.Equal(t, "background", res.Meta["limpet/status"])
}

// With --keep a session may have been used by a host before.
func TestASessionThatWasUsedBeforeTheServerIsNotCalledNew(t *testing.T) {
	h := connect(t, setup{plain: true, before: func(sessions *session.Registry) {
		for _, name := range []string{"used", "idle", "closed"} {
			sess, err := sessions.Open(t.Context(), name, nil)
			require.NoError(t, err)
			if name != "idle" {
				_, err = sess.Do(t.Context(), command.Request{Script: "cd /usr"})
				require.NoError(t, err)
			}
		}
	}})
	_, text := h.call("run_command", object{"command": "true", "session": "used"})
	assert.Equal(t, "[exit 0, session used, in /usr]", text)
	_, text = h.call("run_command", object{"command": "true", "session": "used"})
	assert.Equal(t, "[exit 0]", text)
	_, text = h.call("run_command", object{"command": "cd /", "session": "idle"})
	assert.Equal(t, "[exit 0, new session idle, in /]", text, "nothing was ever run there")
	h.call("session_close", object{"session": "closed"})
	_, text = h.call("run_command", object{"command": "cd /", "session": "closed"})
	assert.Equal(t, "[exit 0, new session closed, in /]", text)
}

func TestASessionSaysOnceThatItIsNew(t *testing.T) {
	h := connect(t, setup{plain: true})
	for _, name := range []string{"default", "other"} {
		_, text := h.call("run_command", object{"command": "true", "session": name})
		assert.Regexp(t, `^\[exit 0, new session `+name+`, in /.*\]$`, text)
		_, text = h.call("run_command", object{"command": "true", "session": name})
		assert.Equal(t, "[exit 0]", text)
	}
	h.call("session_close", object{"session": "other"})
	_, text := h.call("run_command", object{"command": "true", "session": "other"})
	assert.Contains(t, text, "new session other")
	_, text = h.call("run_command", object{"command": "sleep 1000", "session": "third", "background": true})
	assert.Contains(t, text, "new session third")
}
