package mcpserver_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func remarshal(t testing.TB, from, to any) {
	t.Helper()
	b, err := json.Marshal(from)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, to))
}

func num(out object, name string) int64 {
	n, _ := out[name].(float64)
	return int64(n)
}

func TestJobPollReturnsWhatIsNewOnce(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "cat", object{"keep_stdin_open": true})
	poll := func(more object) object {
		arguments := object{"job": id}
		for name, value := range more {
			arguments[name] = value
		}
		out, text := h.call("job_poll", arguments)
		assert.Contains(t, text, out["output"])
		return out
	}
	assert.Empty(t, poll(nil)["output"])
	h.call("job_submit", object{"job": id, "text": "one"})
	h.printed(id, "one")
	out := poll(nil)
	assert.Equal(t, "one\n", out["output"])
	assert.EqualValues(t, 0, out["offset"])
	assert.EqualValues(t, 4, out["next_offset"])
	assert.Equal(t, "running", out["job"].(object)["state"])
	assert.NotZero(t, out["job"].(object)["pid"])
	assert.Empty(t, poll(nil)["output"])
	h.call("job_submit", object{"job": id, "text": "two"})
	h.printed(id, "two")
	assert.Equal(t, "one\ntwo\n", poll(object{"since": 0})["output"])
	assert.Equal(t, "wo\n", poll(object{"since": 5})["output"])
	assert.Empty(t, poll(object{"since": 8})["output"])
	out = poll(nil)
	assert.Equal(t, "two\n", out["output"], "nothing is remembered of a poll with since")
	assert.EqualValues(t, 4, out["offset"])
	_, text := h.call("job_poll", object{"job": id})
	assert.Contains(t, text, "[nothing new behind byte 8]")
}

func TestPiecesOfAJobsOutputCutNoEscapeSequence(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", `for ((i = 0; i < 400; i++)); do printf '\033[38;5;%dmé%d\033[0m\033]8;;http://x/%d\033\\ \033]8;;\033\\' $((i % 256)) $i $i; done; echo`, nil)
	h.ended(id)
	var want strings.Builder
	for i := range 400 {
		fmt.Fprintf(&want, "é%d ", i)
	}
	want.WriteByte('\n')
	ways := map[string]func(next int64) object{
		"poll": func(int64) object {
			out, _ := h.call("job_poll", object{"job": id, "max_output_bytes": 257})
			return out
		},
		"poll since": func(next int64) object {
			out, _ := h.call("job_poll", object{"job": id, "since": next, "max_output_bytes": 261})
			return out
		},
		"log": func(next int64) object {
			out, _ := h.call("job_log", object{"job": id, "offset": next, "bytes": 263})
			out["output"] = out["text"]
			return out
		},
	}
	for name, read := range ways {
		var got strings.Builder
		next := int64(0)
		for {
			out := read(next)
			assert.Equal(t, next, num(out, "offset"), name)
			assert.LessOrEqual(t, len(out["output"].(string)), 263, name)
			if num(out, "next_offset") == next {
				assert.Equal(t, num(out["job"].(object), "output_bytes"), next, name)
				break
			}
			got.WriteString(out["output"].(string))
			next = num(out, "next_offset")
		}
		// A piece is shown as lines are: without the blanks at its end.
		assert.Equal(t, strings.ReplaceAll(want.String(), " ", ""), strings.ReplaceAll(got.String(), " ", ""), name)
	}
}

func TestProgressOfAJobIsCollapsedUnlessRaw(t *testing.T) {
	h := connect(t, setup{})
	printed := "10%\r20% of it\r\x1b[K\x1b[32mdone\x1b[0m\nlong line\rshort\n\xff\n"
	id := h.background("default", `printf '10%%\r20%% of it\r\033[K\033[32mdone\033[0m\nlong line\rshort\n\377\n'`, nil)
	out, _ := h.call("job_wait", object{"jobs": []string{id}})
	const plain, raw = "done\nshortline\n�\n", "10%\r20% of it\r\x1b[K\x1b[32mdone\x1b[0m\nlong line\rshort\n�\n"
	assert.Equal(t, plain, out["output"])
	for _, row := range []struct {
		tool, field string
		arguments   object
	}{
		{"job_poll", "output", object{"since": 0}},
		{"job_log", "text", object{}},
		{"job_log", "text", object{"head_lines": 5}},
		{"job_log", "text", object{"line": 1}},
		{"job_log", "text", object{"offset": 0}},
	} {
		row.arguments["job"] = id
		out, _ := h.call(row.tool, row.arguments)
		assert.Equal(t, plain, out[row.field], "%v", row)
		assert.EqualValues(t, len(printed), out["next_offset"], "offsets count what was printed")
		assert.Equal(t, true, out["binary"])
		row.arguments["raw"] = true
		out, _ = h.call(row.tool, row.arguments)
		assert.Equal(t, raw, out[row.field], "%v", row)
		assert.EqualValues(t, len(printed), out["next_offset"])
	}
	out, _ = h.call("job_log", object{"job": id, "pattern": "^done$"})
	assert.Equal(t, []any{object{"line": 1.0, "offset": 0.0, "text": "done"}}, out["matches"])
}

func TestWaysToReadAJobsLog(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "seq 1 1000", nil)
	total := num(h.ended(id), "output_bytes")
	require.EqualValues(t, 3893, total)
	seq := func(from, to int) string {
		var text strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintln(&text, i)
		}
		return text.String()
	}
	for _, row := range []struct {
		arguments          object
		text               string
		offset, next, line int
		more               bool
	}{
		{object{}, seq(901, 1000), 3492, 3893, 901, false},
		{object{"tail_lines": 2}, seq(999, 1000), 3884, 3893, 999, false},
		{object{"tail_lines": 5000}, seq(1, 1000), 0, 3893, 1, false},
		{object{"head_lines": 3}, seq(1, 3), 0, 6, 1, true},
		{object{"line": 500, "lines": 2}, seq(500, 501), 1888, 1896, 500, true},
		{object{"line": 999}, seq(999, 1000), 3884, 3893, 999, false},
		{object{"lines": 2}, seq(1, 2), 0, 4, 1, true},
		{object{"line": 2000}, "", 3893, 3893, 1001, false},
		{object{"offset": 4, "bytes": 5}, "3\n4\n", 4, 8, 3, true},
		{object{"offset": -9}, seq(999, 1000), 3884, 3893, 999, false},
		{object{"offset": 3893}, "", 3893, 3893, 1001, false},
		{object{"bytes": 4}, seq(1, 2), 0, 4, 1, true},
	} {
		row.arguments["job"] = id
		out, text := h.call("job_log", row.arguments)
		assert.Equal(t, row.text, out["text"], "%v", row.arguments)
		assert.Equal(t, []int64{int64(row.offset), int64(row.next), int64(row.line)}, []int64{num(out, "offset"), num(out, "next_offset"), num(out, "line")}, "%v", row.arguments)
		more, _ := out["more"].(bool)
		assert.Equal(t, row.more, more, "%v", row.arguments)
		assert.NotContains(t, out, "dropped_bytes")
		assert.Contains(t, text, row.text)
		if row.more {
			assert.Contains(t, text, fmt.Sprintf("the rest: offset %d", row.next))
		}
	}
}

func TestAJobsLogIsSearched(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "seq 1 1000", nil)
	h.ended(id)
	out, text := h.call("job_log", object{"job": id, "pattern": "^[0-9]00$", "max_matches": 4})
	var found []string
	for _, m := range out["matches"].([]any) {
		found = append(found, m.(object)["text"].(string))
	}
	assert.Equal(t, []string{"100", "200", "300", "400"}, found)
	assert.Equal(t, true, out["more"])
	assert.Contains(t, text, "line 400, offset 1488: 400")
	assert.Contains(t, text, fmt.Sprintf("4 lines found; more: from_offset %d", num(out, "next_offset")))
	out, _ = h.call("job_log", object{"job": id, "pattern": "^[0-9]00$", "from_offset": num(out, "next_offset")})
	assert.Equal(t, object{"line": 500.0, "offset": 1888.0, "text": "500"}, out["matches"].([]any)[0])
	assert.Len(t, out["matches"], 5)
	assert.NotContains(t, out, "more")
	out, text = h.call("job_log", object{"job": id, "pattern": "nothing"})
	assert.NotContains(t, out, "matches")
	assert.Contains(t, text, "[0 lines found]")
	out, _ = h.call("job_log", object{"job": id, "pattern": "^[0-9]{3}$", "max_matches": 1000, "max_output_bytes": 256})
	assert.Len(t, out["matches"], 85, "85 matches of three bytes are what there is room for")
	assert.Equal(t, true, out["more"])
}

func TestAnswersOfAJobThatPrintsMuchAreBounded(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "seq -f 'line %07.0f' 1 400000", nil) // 13 bytes each, 5.2 MB
	job := h.ended(id)
	require.EqualValues(t, 13*400000, job["output_bytes"])
	const limit = 16 << 10

	out, text := h.call("job_poll", object{"job": id})
	assert.Len(t, out["output"], int(num(out, "next_offset")-num(out, "offset")))
	assert.LessOrEqual(t, len(out["output"].(string)), limit)
	assert.Positive(t, num(out, "dropped_bytes"))
	assert.Equal(t, num(out, "dropped_bytes"), num(out, "offset"))
	assert.EqualValues(t, 13*400000, num(out, "next_offset")+num(out, "more_bytes"))
	assert.Contains(t, text, "are not kept]")
	assert.Contains(t, text, "more: job_poll again")
	again, _ := h.call("job_poll", object{"job": id, "max_output_bytes": 1000})
	assert.Equal(t, out["next_offset"], again["offset"], "nothing is left out, or told twice")
	assert.Len(t, again["output"], 1000)

	out, text = h.call("job_log", object{"job": id, "tail_lines": 10000})
	assert.LessOrEqual(t, len(out["text"].(string)), limit)
	assert.Greater(t, len(out["text"].(string)), limit-13)
	assert.True(t, strings.HasSuffix(out["text"].(string), "line 0400000\n"))
	assert.Equal(t, fmt.Sprintf("line %07d\n", num(out, "line")), out["text"].(string)[:13], "line numbers count what was dropped")
	assert.Equal(t, (num(out, "line")-1)*13, num(out, "offset"))
	assert.Positive(t, num(out, "omitted_bytes"))
	assert.Contains(t, text, "of these lines are left out")
	before, _ := h.call("job_log", object{"job": id, "offset": num(out, "offset") - num(out, "omitted_bytes"), "bytes": 13})
	assert.Contains(t, before["text"], fmt.Sprintf("line %07d", num(before, "line")), "what was left out can be had")

	out, _ = h.call("job_log", object{"job": id, "head_lines": 10000})
	assert.LessOrEqual(t, len(out["text"].(string)), limit)
	assert.Equal(t, true, out["more"])
	assert.Positive(t, num(out, "dropped_bytes"))
	rest, _ := h.call("job_log", object{"job": id, "offset": num(out, "next_offset"), "bytes": 13})
	assert.Equal(t, fmt.Sprintf("line %07d\n", num(rest, "line")), rest["text"])

	out, _ = h.call("job_log", object{"job": id, "offset": 0})
	assert.Equal(t, num(out, "dropped_bytes"), num(out, "offset"))
	assert.LessOrEqual(t, len(out["text"].(string)), limit)
	out, _ = h.call("job_log", object{"job": id, "line": 1, "lines": 1})
	assert.Positive(t, num(out, "dropped_bytes"))
	out, _ = h.call("job_log", object{"job": id, "pattern": "line", "max_matches": 1000})
	assert.LessOrEqual(t, len(out["matches"].([]any)), limit/12)
	assert.Positive(t, num(out, "dropped_bytes"))

	out, _ = h.call("job_wait", object{"jobs": []string{id}})
	assert.Len(t, out["output"], 130, "the last ten lines")
}

func TestALineWithoutEndIsBounded(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "head -c 5000000 /dev/zero | tr '\\0' x", nil)
	out, _ := h.call("job_wait", object{"jobs": []string{id}})
	assert.Len(t, out["output"], 4096)
	for _, arguments := range []object{{}, {"tail_lines": 1}, {"head_lines": 1}, {"line": 1}, {"offset": -100000}, {"pattern": "x"}} {
		arguments["job"] = id
		_, text := h.call("job_log", arguments)
		assert.Less(t, len(text), 20<<10, "%v", arguments)
	}
}

func TestTheOutputOfAJobWaitBeginsWithAWholeLine(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "printf 'begin %01000d end\\n' {1..9}", nil)
	out, _ := h.call("job_wait", object{"jobs": []string{id}})
	assert.Equal(t, 4, strings.Count(out["output"].(string), "\n"))
	assert.True(t, strings.HasPrefix(out["output"].(string), "begin 000"))
}

func TestBytesThatCannotBeShownCountInOffsets(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", `printf 'a\0b\r\nc\033[31md\n'`, nil)
	h.ended(id)
	out, _ := h.call("job_log", object{"job": id, "offset": 0})
	assert.Equal(t, "ab\ncd\n", out["text"])
	assert.EqualValues(t, 13, out["next_offset"])
}
