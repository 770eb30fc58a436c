package mcpserver_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/mcpserver"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// spooled are sessions that keep little of an output in memory and more in files, of as
// many streams.
func spooled(files int) setup {
	return setup{sessions: session.Options{Shell: &shell.Options{OutputLimit: 16 << 10, SpoolLimit: 256 << 10, SpoolFiles: files}}}
}

// read reads more of the stdout of a result.
func (h *host) read(ran object, arguments object) (object, string) {
	h.t.Helper()
	arguments["result_id"] = ran["result_id"]
	return h.call("read_output", arguments)
}

// found are the texts of matches.
func found(out object) (texts []string) {
	matches, _ := out["matches"].([]any)
	for _, m := range matches {
		texts = append(texts, m.(object)["text"].(string))
	}
	return texts
}

func seq(from, to int) string {
	var text strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintln(&text, i)
	}
	return text.String()
}

func TestLongOutputIsCutAndTheRestCanBeRead(t *testing.T) {
	h := connect(t, setup{})
	out, text := h.call("run_command", object{"command": "seq 1 20000", "max_output_bytes": 2000})
	stdout := out["stdout"].(string)
	assert.Less(t, len(stdout), 2300)
	assert.True(t, strings.HasPrefix(stdout, "1\n2\n"))
	assert.True(t, strings.HasSuffix(stdout, "\n19999\n20000\n"))
	assert.Contains(t, stdout, fmt.Sprintf(`read_output with result_id %q, stream "stdout" and offset `, out["result_id"]))
	assert.Contains(t, text, "read_output")
	total := num(out, "stdout_bytes")
	assert.EqualValues(t, 108894, total)
	shown := len(stdout) - strings.Index(stdout[strings.Index(stdout, "\n["):], "]\n") - 2
	assert.InDelta(t, total-num(out, "stdout_omitted"), shown, 10)

	// The whole, page by page, is what was printed.
	var whole strings.Builder
	for offset := int64(0); ; {
		page, text := h.read(out, object{"offset": offset, "bytes": 30000})
		assert.Equal(t, offset, num(page, "offset"))
		whole.WriteString(page["text"].(string))
		offset = num(page, "next_offset")
		if page["more"] == nil {
			break
		}
		assert.Contains(t, text, fmt.Sprintf("of 108894 of stdout; the rest: offset %d]", offset))
	}
	assert.Equal(t, seq(1, 20000), whole.String())

	page, text := h.read(out, object{"tail_lines": 3})
	assert.Equal(t, "19998\n19999\n20000\n", page["text"])
	assert.Equal(t, "19998\n19999\n20000\n[bytes 108876 to 108894 of 108894 of stdout]", text)
	_, text = h.read(out, object{"offset": total})
	assert.Equal(t, "[nothing there: stdout has 108894 bytes]", text)
	_, text = h.read(out, object{"stream": "stderr", "tail_lines": 1})
	assert.Equal(t, "[nothing there: stderr has 0 bytes]", text)
}

func TestReadsThatCannotBeMeantAreRefused(t *testing.T) {
	h := connect(t, setup{})
	out := h.run("s", "seq 1 20000")
	for _, row := range []struct {
		arguments object
		want      string
	}{
		{object{"pattern": "x", "tail_lines": 1}, "only one of"},
		{object{"pattern": "x", "offset": 1}, `"from_offset" is where to begin`},
		{object{"tail_lines": 1, "bytes": 1}, "only one of"},
		{object{"pattern": "("}, "RE2"},
		{object{"offset": 1e9}, "108894 bytes"},
		{object{"pattern": "x", "from_offset": 1e9}, "108894 bytes"},
		{object{"max_matches": 3}, `go with "pattern"`},
		{object{"tail_lines": 3, "from_offset": 3}, `go with "pattern"`},
		{object{"max_output_bytes": 300}, `"bytes" says how much`},
		{object{"offset": 3, "max_output_bytes": 300}, `"bytes" says how much`},
		{object{"tail_lines": 3, "max_output_bytes": 255}, "256 or more"},
	} {
		row.arguments["result_id"] = out["result_id"]
		assert.Contains(t, h.bad("read_output", row.arguments), row.want, "%v", row.arguments)
	}
}

func TestOutputThatIsNotKeptIsSaid(t *testing.T) {
	h := connect(t, setup{sessions: session.Options{Shell: &shell.Options{OutputLimit: 10000}}})
	out := h.run("s", "seq 1 20000")
	assert.Contains(t, out["stdout"], "bytes are left out here")
	page, text := h.read(out, object{"offset": 50000})
	assert.EqualValues(t, 103894, num(page, "offset"))
	assert.EqualValues(t, 53894, num(page, "omitted"))
	assert.True(t, strings.HasPrefix(text, "[53894 bytes before this are not kept]\n"), text[:50])
}

func TestTheTailOfAnOutputWhoseFileIsGoneIsItsEnd(t *testing.T) {
	h := connect(t, spooled(1))
	out := h.run("s", "seq 1 40000")
	page, _ := h.read(out, object{"tail_lines": 10000})
	assert.NotContains(t, page, "more")
	assert.True(t, strings.HasSuffix(page["text"].(string), "\n39999\n40000\n"))
	before, _ := h.read(out, object{"offset": num(page, "offset") - 6, "bytes": 6})
	assert.Len(t, before["text"], 6, "all is kept")

	h.run("s", "seq 1 40000") // Of one output the file is kept.
	page, text := h.read(out, object{"tail_lines": 1})
	assert.Equal(t, "40000\n", page["text"])
	assert.NotContains(t, page, "omitted")
	assert.Equal(t, "40000\n[bytes 228888 to 228894 of 228894 of stdout]", text)
	page, text = h.read(out, object{"tail_lines": 10000})
	assert.True(t, strings.HasSuffix(page["text"].(string), "\n39999\n40000\n"))
	const head, tail = 8 << 10, 8 << 10
	assert.EqualValues(t, 228894-tail, num(page, "offset"))
	assert.EqualValues(t, 228894-tail-head, num(page, "omitted"))
	assert.Contains(t, text, fmt.Sprintf("[%d bytes before this are not kept]\n", 228894-tail-head))
	page, text = h.read(out, object{"tail_lines": 10000, "max_output_bytes": 600})
	assert.True(t, strings.HasPrefix(page["text"].(string), "39901\n"))
	assert.EqualValues(t, 228894-600-head, num(page, "omitted"), "there was no room for a part of that")
	assert.Contains(t, text, fmt.Sprintf("[%d bytes before this are not kept]\n[%d bytes of these lines are left out: read_output with offset %d,", 228894-tail-head, tail-600, 228894-tail))
}

// holed runs a command that prints lines of 8 bytes, until the middle of them is not kept:
// its file has a hole then.
func (h *host) holed() (ran object) {
	h.t.Helper()
	ran, _ = h.call("run_command", object{"command": `
		SECONDS=0
		seq -f %07.0f 100000
		until (( $(stat -Lc %b /proc/$$/fd/1) < 1200 || SECONDS > 20 )); do :; done
		stat -L /proc/$$/fd/1 >&2
		(( SECONDS <= 20 ))`, "timeout_seconds": 60})
	require.Equal(h.t, "exited", ran["status"])
	require.Zero(h.t, num(ran, "exit_code"), "it has no hole: %v", ran["stderr"])
	require.EqualValues(h.t, 800_000, num(ran, "stdout_bytes"))
	return ran
}

func eights(offset, next int64) string {
	var text strings.Builder
	for i := offset / 8; i < (next+7)/8; i++ {
		fmt.Fprintf(&text, "%07d\n", i+1)
	}
	return text.String()[offset%8:][:next-offset]
}

func TestAllThatIsKeptIsReadOnBothSidesOfAGap(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, spooled(16))
	out := h.holed()
	var kept, omitted, behind int64
	for offset := int64(0); ; {
		page, _ := h.read(out, object{"offset": offset, "bytes": 100_000})
		assert.Equal(t, eights(num(page, "offset"), num(page, "next_offset")), page["text"])
		assert.Equal(t, num(page, "offset")-offset, num(page, "omitted"))
		if num(page, "omitted") > 0 {
			behind = num(page, "offset")
		}
		kept += num(page, "next_offset") - num(page, "offset")
		omitted += num(page, "omitted")
		offset = num(page, "next_offset")
		if page["more"] == nil {
			break
		}
	}
	assert.EqualValues(t, 800_000, kept+omitted)
	assert.GreaterOrEqual(t, kept, int64(256<<10))
	require.NotZero(t, omitted)
	assert.Less(t, behind, int64(800_000-128<<10))

	page, _ := h.read(out, object{"offset": behind - 1, "bytes": 80})
	assert.EqualValues(t, 1, num(page, "omitted"))
	assert.Equal(t, behind, num(page, "offset"))

	first := fmt.Sprintf("%07d", (behind+7)/8+1) // The first whole line behind the gap.
	page, text := h.read(out, object{"pattern": "^" + first + "$"})
	assert.Equal(t, []string{first}, found(page))
	assert.Equal(t, omitted, num(page, "omitted"))
	assert.Contains(t, text, fmt.Sprintf("[%d bytes were not searched: they are not kept]\n", omitted))
	page, _ = h.read(out, object{"pattern": "^" + first + "$", "from_offset": behind - 5})
	assert.Equal(t, []string{first}, found(page))
	assert.EqualValues(t, 5, num(page, "omitted"))
	page, text = h.read(out, object{"pattern": "^0000001$"})
	assert.Equal(t, omitted, num(page, "omitted"), "there may be another")
	assert.Contains(t, text, "not searched")
	page, text = h.read(out, object{"pattern": "^000000[12]$", "max_matches": 1})
	assert.NotContains(t, page, "omitted", "it was not as far as the gap")
	assert.NotContains(t, text, "not searched")
	page, _ = h.read(out, object{"pattern": fmt.Sprintf("^%07d$", (behind-omitted/2)/8)})
	assert.Empty(t, found(page), "it was in the gap")

	page, text = h.read(out, object{"tail_lines": 10000, "max_output_bytes": 32_768})
	assert.Equal(t, eights(788_000, 800_000), page["text"], "the last 1500 lines")
	assert.Contains(t, text, "bytes of these lines are left out")
}

func TestASearchReadsLinesAsTheyAreShown(t *testing.T) {
	h := connect(t, setup{})
	out := h.run("s", `printf '\e[31merror\e[0m: here\n    indented error: there  \n10%%\r\e[Kerror: done\r\n'; printf 'x%.0s' {1..300}; echo 'error: end'`)
	page, text := h.read(out, object{"pattern": "^error"})
	assert.Equal(t, []any{
		object{"offset": 0.0, "text": "error: here"},
		object{"offset": 49.0, "text": "error: done"},
	}, page["matches"])
	assert.Equal(t, "offset 0: error: here\noffset 49: error: done\n[2 lines found in stdout]", text)
	page, _ = h.read(out, object{"pattern": "error: (there|end)"})
	assert.Equal(t, []string{"    indented error: there  ", strings.Repeat("x", 300) + "error: end"}, found(page))
	page, _ = h.read(out, object{"pattern": `\x1b|\r`})
	assert.Empty(t, found(page))
	page, _ = h.read(out, object{"pattern": `^\x1b.*m: here$`, "raw": true})
	assert.Equal(t, []string{"\x1b[31merror\x1b[0m: here"}, found(page))
	_, text = h.read(out, object{"pattern": "nothing"})
	assert.Equal(t, "[0 lines found in stdout]", text)
}

func TestASearchGoesOnWhereItEnded(t *testing.T) {
	h := connect(t, setup{})
	out := h.run("s", "seq 1 20000")
	for name, bound := range map[string]object{
		"matches": {"max_matches": 7},
		"bytes":   {"max_output_bytes": 256, "max_matches": 1000},
	} {
		var all []string
		calls := 0
		for from := int64(0); ; calls++ {
			bound["pattern"], bound["from_offset"] = "77", from
			page, text := h.read(out, bound)
			assert.Equal(t, from, num(page, "offset"))
			size := 0
			for _, line := range found(page) {
				size += len(line)
				all = append(all, line)
			}
			assert.LessOrEqual(t, size, 256, name)
			from = num(page, "next_offset")
			if page["more"] == nil {
				assert.EqualValues(t, 108894, from)
				assert.NotContains(t, text, "more")
				break
			}
			assert.Contains(t, text, fmt.Sprintf("lines found in stdout; more: from_offset %d]", from))
			next, _ := h.read(out, object{"offset": from, "bytes": 6})
			assert.Contains(t, next["text"], "77", "it is the first that was left out")
		}
		want := regexp.MustCompile(`(?m)^.*77.*$`).FindAllString(seq(1, 20000), -1)
		assert.Equal(t, want, all, name)
		assert.Greater(t, calls, 5, name)
	}
}

func TestAMatchInALongLineIsShownWithWhatIsAroundIt(t *testing.T) {
	h := connect(t, setup{})
	out := h.run("s", `echo first; printf 'é%.0s' {1..30000}; printf needle; printf 'é%.0s' {1..30000}; echo; echo needle`)
	page, _ := h.read(out, object{"pattern": "needle", "max_output_bytes": 1004})
	require.Len(t, found(page), 1)
	line, words, _ := strings.Cut(found(page)[0], " [")
	assert.LessOrEqual(t, len(line), 1004)
	assert.Greater(t, len(line), 1000)
	assert.Contains(t, line, "éneedleé")
	assert.NotContains(t, line, "�")
	assert.Equal(t, fmt.Sprintf("%d bytes of this line are left out: read_output with offset 6]", 120006-len(line)), words)
	assert.Equal(t, true, page["more"])
	page, _ = h.read(out, object{"pattern": "needle", "max_output_bytes": 1004, "from_offset": num(page, "next_offset")})
	assert.Equal(t, []string{"needle"}, found(page))

	// At the ends of a line there is more on the other side.
	out = h.run("s", `printf 'begin'; printf 'x%.0s' {1..30000}; echo end`)
	for pattern, want := range map[string]string{"begin": "beginxxx", "end": "xxxend ["} {
		page, _ = h.read(out, object{"pattern": pattern, "max_output_bytes": 1000})
		require.Len(t, found(page), 1)
		assert.Contains(t, found(page)[0], want)
		assert.Contains(t, found(page)[0], " [29008 bytes of this line are left out")
	}
}

func TestTheLastLinesAreBoundedByTheAnswer(t *testing.T) {
	h := connect(t, setup{sessions: session.Options{Shell: &shell.Options{OutputLimit: 16 << 10, SpoolLimit: 8 << 20}}})
	out := h.run("s", "yes $(printf 'x%.0s' {1..2000}) | head -n 1000") // Lines of 2001 bytes.
	for _, row := range []struct {
		bound, lines int
	}{{0, 8}, {2001, 1}, {20_000, 9}, {32_768, 16}, {262_144, 16}} {
		arguments := object{"tail_lines": 500}
		if row.bound > 0 {
			arguments["max_output_bytes"] = row.bound
		}
		page, text := h.read(out, arguments)
		assert.Len(t, page["text"], row.lines*2001, "%v", row)
		assert.EqualValues(t, (500-row.lines)*2001, num(page, "omitted"), "%v", row)
		assert.EqualValues(t, (1000-row.lines)*2001, num(page, "offset"), "%v", row)
		assert.Contains(t, text, fmt.Sprintf("[%d bytes of these lines are left out: read_output with offset %d, or max_output_bytes]\n", (500-row.lines)*2001, 500*2001))
	}
	page, _ := h.read(out, object{"tail_lines": 500, "max_output_bytes": 256})
	assert.Len(t, page["text"], 256, "of a longer line, the end")
	page, text := h.read(out, object{"tail_lines": 8})
	assert.Len(t, page["text"], 8*2001)
	assert.NotContains(t, page, "omitted")
	assert.NotContains(t, text, "left out")

	out = h.run("s", `printf 'a\377%.0s' {1..5000}; echo; echo end`)
	page, _ = h.read(out, object{"tail_lines": 2, "max_output_bytes": 3000})
	assert.LessOrEqual(t, len(page["text"].(string)), 3000, "what is no UTF-8 takes more room")
	assert.True(t, strings.HasSuffix(page["text"].(string), "a�a�\nend\n"))
}

func TestTheLastLinesAreCountedWithAndWithoutANewlineAtTheEnd(t *testing.T) {
	h := connect(t, setup{})
	for _, row := range []struct {
		script string
		lines  int
		want   string
	}{
		{`printf 'a\nb\nc'`, 1, "c"},
		{`printf 'a\nb\nc'`, 2, "b\nc"},
		{`printf 'a\nb\nc\n'`, 2, "b\nc\n"},
		{`printf 'a\nb\nc\n'`, 3, "a\nb\nc\n"},
		{`printf 'a\nb\nc\n'`, 9, "a\nb\nc\n"},
		{`printf 'a\n\n\n'`, 2, "\n\n"},
		{`printf '\n'`, 1, "\n"},
		{`true`, 1, ""},
	} {
		page, _ := h.read(h.run("s", row.script), object{"tail_lines": row.lines})
		assert.Equal(t, row.want, page["text"], "%v", row)
		assert.NotContains(t, page, "omitted", "%v", row)
	}
}

func TestReadsAreBoundedAsTheServerSays(t *testing.T) {
	h := connect(t, setup{server: mcpserver.Options{AnswerLimit: 300}})
	out := h.run("s", "seq -f %04.0f 1000")
	page, _ := h.read(out, object{})
	assert.Len(t, page["text"], 300)
	page, _ = h.read(out, object{"tail_lines": 100})
	assert.Len(t, page["text"], 300)
	page, _ = h.read(out, object{"pattern": ".", "max_matches": 1000})
	assert.Len(t, page["matches"], 75)
	assert.EqualValues(t, 375, num(page, "next_offset"))
	page, _ = h.read(out, object{"bytes": 1000})
	assert.Len(t, page["text"], 1000)
}

func TestEveryReadGetsOn(t *testing.T) {
	h := connect(t, setup{})
	out := h.run("s", `printf 'é€a'`)
	for _, size := range []int{1, 2, 3, 4} {
		var next int64
		for reads := 0; next < 6; reads++ {
			require.Less(t, reads, 6)
			page, _ := h.read(out, object{"offset": next, "bytes": size})
			require.Greater(t, num(page, "next_offset"), next)
			require.NotEmpty(t, page["text"])
			next = num(page, "next_offset")
		}
	}
	page, _ := h.read(out, object{"bytes": 4})
	assert.Equal(t, "é", page["text"], "whole characters, where there is one")
}

func TestResultsOfAnotherServerAreNotTakenForThisOnes(t *testing.T) {
	one, two := connect(t, setup{}), connect(t, setup{})
	id := one.run("s", "echo one")["result_id"]
	assert.Regexp(t, `^r1-[a-z2-7]{4}$`, id)
	refusal := two.refuse("read_output", object{"result_id": id})
	assert.Contains(t, refusal, "no command was run yet")
	assert.Contains(t, refusal, "lost with the server")
	other := two.run("s", "echo two")["result_id"]
	assert.NotEqual(t, id, other)
	for _, unknown := range []any{id, "r1", "r99"} {
		refusal = two.refuse("read_output", object{"result_id": unknown})
		assert.Contains(t, refusal, fmt.Sprintf("there is no result %q", unknown))
		assert.Contains(t, refusal, other)
		assert.Contains(t, refusal, "a server before are lost with it")
	}
}

func TestTheLast64ResultsAreKept(t *testing.T) {
	h := connect(t, setup{})
	first := h.run("s", "echo first")
	second := h.run("s", "echo second")
	for range 63 {
		h.run("s", ":")
	}
	assert.Contains(t, h.refuse("read_output", object{"result_id": first["result_id"]}), fmt.Sprintf("the last 64 are kept, %s to r65-", second["result_id"]))
	page, _ := h.read(second, object{})
	assert.Equal(t, "second\n", page["text"])
}
