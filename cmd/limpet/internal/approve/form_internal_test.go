package approve

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/internal/questions"
)

// asClaudeCode returns what Claude Code 2.1.332 shows of a form's text, on a terminal of 80 columns.
func asClaudeCode(text string) string {
	rows := strings.Split(text, "\n")
	if len(rows) > 4 {
		rows = append(rows[:3], "… (+ more lines)")
	}
	for i, row := range rows {
		rows[i] = ansi.Truncate(row, 74, "…")
	}
	return strings.Join(rows, "\n")
}

// A host may show a part of a question, and not say that there is more. A form takes no yes to that.
func TestAFormThatDoesNotShowTheWholeQuestionTakesNoYes(t *testing.T) {
	long := strings.Repeat("x", 200)
	for name, c := range map[string]struct {
		script, dir, stdin, input string
		whole                     bool
	}{
		"a command":                     {script: "rm -rf build", whole: true},
		"two lines":                     {script: "cd src\nrm -rf build\n", whole: true},
		"two reasons":                   {script: "rm a && mv b c", whole: true},
		"a line of two rows":            {script: "rm a " + strings.Repeat("文", 60), whole: true},
		"a directory with a long name":  {script: "rm a", dir: "/home/" + strings.Repeat("d", 60), whole: true},
		"what is typed":                 {script: "rm a", input: "terminal t1", whole: true},
		"standard input":                {script: "cat >a", stdin: "x"},
		"a script of many lines":        {script: "true\n" + strings.Repeat("echo\n", 40) + "rm -rf build"},
		"a comment before it":           {script: "# tidies\n\n\n\nrm -rf build"},
		"a long line":                   {script: "echo " + long + "; rm -rf build"},
		"a wide line":                   {script: "rm " + strings.Repeat("文", 100)},
		"characters that are escaped":   {script: "rm '" + strings.Repeat("\x1b", 40) + "'"},
		"a directory that is too long":  {script: "rm a", dir: "/" + long},
		"standard input of many lines":  {script: "cat >a", stdin: strings.Repeat("x\n", 10)},
		"a long line of standard input": {script: "cat >a", stdin: long},
		"a long text that is typed":     {script: long, input: "terminal t1"},
		"what it is typed to":           {script: "rm a", input: long},
		"a very long text":              {script: strings.Repeat("x", 65536), input: "terminal t1"},
	} {
		t.Run(name, func(t *testing.T) {
			q := approval.Question{Script: c.script, Dir: "/home/me/src/x", Input: c.input}
			if c.input == "" { // Text that is typed to a program is not judged as a script.
				q.Judgement = approval.Judge(c.script, nil)
			}
			if c.dir != "" {
				q.Dir = c.dir
			}
			text, choices := form(questions.Open{Session: "default", Question: q, Stdin: c.stdin})
			assert.Equal(t, asClaudeCode(text), text, "a host cuts it")
			assert.Equal(t, "no", choices[0])
			if !c.whole {
				assert.Equal(t, []string{"no", "I answer at a terminal"}, choices)
				assert.Contains(t, text, "limpet approvals answer, at a terminal")
				assert.NotContains(t, text, "|", "a part of a script looks like the whole")
				return
			}
			assert.Contains(t, choices, "yes, this time")
			for line := range strings.Lines(c.script) {
				assert.Contains(t, strings.ReplaceAll(text, "\n  ↪ ", ""), "  | "+strings.TrimSuffix(line, "\n"))
			}
			for _, f := range q.Judgement.Findings {
				if f.Verdict == approval.Ask {
					assert.Contains(t, text, f.Reason)
				}
			}
			assert.Contains(t, text, c.input)
			assert.Contains(t, text, c.dir)
		})
	}
}

func TestAFormIsShort(t *testing.T) {
	q := approval.Question{Script: "rm -rf build", Dir: "/home/me/src/x", Judgement: approval.Judge("rm -rf build", nil)}
	text, choices := form(questions.Open{Session: "default", Question: q})
	assert.Equal(t, "limpet: may this run in /home/me/src/x?\n  | rm -rf build\nit deletes files", text)
	assert.Equal(t, []string{"no", "yes, this time", "yes, and whenever it comes again"}, choices)
	q.Script = "go test ./approval -run 'Rule|Always' -count=1 -timeout 120s 2>&1 | tail -n 20"
	q.Judgement = approval.Judge(q.Script, nil)
	text, _ = form(questions.Open{Question: q})
	assert.Equal(t, "limpet: may this run in /home/me/src/x?\n  | go test ./approval -run 'Rule|Always' -count=1 -timeout 120s 2>&1 | ta\n  ↪ il -n 20\n"+
		"it runs code of the workspace: build files, tests, plugins", text)
	q = approval.Question{Script: "ls", Dir: "/", Changed: true, Judgement: approval.Judge("ls", nil)}
	text, choices = form(questions.Open{Question: q})
	assert.Equal(t, "limpet: may this run in /?\n  | ls\nnames may mean something else in this shell than in a new one", text)
	assert.Equal(t, []string{"no", "yes, this time"}, choices)
	q.Script = strings.Repeat("echo\n", 40)
	text, _ = form(questions.Open{Question: q})
	assert.Equal(t, "limpet: a question is too long for this form (a script, 40 lines).\nTo read it, and to answer: limpet approvals answer, at a terminal.", text)
}
