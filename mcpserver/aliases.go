package mcpserver

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// alias is another name for an argument, which models know from other tools. It is
// understood, and not shown.
type alias struct {
	name string
	to   []string // the argument that it is: of these, the first that the tool has

	// unless names an argument: a tool that has it does not understand the alias.
	unless string

	// as is the number that is meant. Nil: the one that is given. A foreground call can
	// have a timeout of longest seconds; of a background call that is infinite.
	as func(n, longest float64) float64

	// also are arguments that the alias means besides, where they are not given.
	also map[string]any
}

// subject is what names the thing that a tool works on.
var subject = []string{"job", "jobs", "terminal", "result_id"}

// aliases are all other names. In a tool that has an argument of such a name it is that.
var aliases = []alias{
	{name: "cmd", to: []string{"command"}},
	{name: "script", to: []string{"command"}},
	{name: "workdir", to: []string{"dir"}},
	{name: "cwd", to: []string{"dir"}},
	{name: "directory", to: []string{"dir"}},
	{name: "working_directory", to: []string{"dir"}},
	{name: "working_dir", to: []string{"dir"}},
	{name: "run_in_background", to: []string{"background"}},
	{name: "is_background", to: []string{"background"}},
	{name: "timeout_seconds", to: []string{"timeout_seconds"}, as: secondsUnlessAbsurd},
	{name: "timeout", to: []string{"timeout_seconds"}, as: secondsUnlessInThousands},
	{name: "timeout_ms", to: []string{"timeout_seconds"}, as: milliseconds},
	{name: "timeout_secs", to: []string{"timeout_seconds"}},
	{name: "timeout_sec", to: []string{"timeout_seconds"}},
	{name: "yield_time_ms", to: []string{"settle_seconds", "timeout_seconds"}, as: milliseconds, also: map[string]any{"on_timeout": onTimeoutBackground}},
	{name: "idle_timeout", to: []string{"idle_timeout_seconds"}},
	{name: "max_output_bytes", to: []string{"max_output_bytes"}, as: atMostOutput},
	{name: "max_output_tokens", to: []string{"max_output_bytes"}, as: bytesOfTokens},
	{name: "bytes", to: []string{"bytes"}, as: atMostOutput},
	{name: "job", to: []string{"jobs"}},
	{name: "id", to: subject},
	{name: "job_id", to: subject},
	{name: "task_id", to: subject},
	{name: "bash_id", to: subject},
	{name: "shell_id", to: subject},
	{name: "process_id", to: subject},
	{name: "terminal_id", to: subject},
	// Where commands are run it may be a process that is meant, or a shell.
	{name: "session_id", to: append(slices.Clone(subject), "session"), unless: "command"},
	{name: "session_name", to: []string{"session"}},
	{name: "name", to: []string{"checkpoint"}},
	{name: "chars", to: []string{"text"}},
	{name: "input", to: []string{"text"}},
	{name: "filter", to: []string{"pattern"}},
	{name: "cols", to: []string{"columns"}},
	{name: "width", to: []string{"columns"}},
	{name: "height", to: []string{"rows"}},
}

func milliseconds(n, _ float64) float64 { return n / 1000 }

// inThousands takes a number of seconds for milliseconds, unless it is too long as those, too: then the error has the number that was given.
func inThousands(n, longest float64) float64 {
	if n/1000 > min(longest, maxSeconds) {
		return n
	}
	return n / 1000
}

// secondsUnlessAbsurd takes a number that can be no seconds for milliseconds. One that is
// up to ten times too long may be either, and is refused as seconds: some hours were meant,
// and a command that is stopped after as many seconds fails without a reason.
func secondsUnlessAbsurd(n, longest float64) float64 {
	if n > 10*longest {
		return inThousands(n, longest)
	}
	return n
}

// secondsUnlessInThousands does so where the name says no unit. Whole thousands above what is
// allowed are milliseconds, as Claude Code writes them. A background call can have any
// number of seconds: there they are from a minute on.
func secondsUnlessInThousands(n, longest float64) float64 {
	const minute = 60_000
	thousands := math.Mod(n, 1000) == 0
	if math.IsInf(longest, 1) {
		if thousands && n >= minute {
			return inThousands(n, longest)
		}
		return n
	}
	if thousands && n > longest {
		return inThousands(n, longest)
	}
	return secondsUnlessAbsurd(n, longest)
}

// bytesOfTokens is what so many tokens are of text, some 4 bytes each, within what can be
// asked for.
func bytesOfTokens(n, _ float64) float64 {
	if n <= 0 {
		return n
	}
	return atMostOutput(math.Round(max(4*n, 256)), 0)
}

// atMostOutput is how much can be asked for: no host gives its model more of one answer, and most
// cut what is longer themselves, without a word on how to get the rest.
func atMostOutput(n, _ float64) float64 { return min(n, mostOutput) }

const mostOutput = 32 << 10

// meansNothing reports whether an argument that a tool has not asks for nothing that would
// not be so anyway: a description is for people who look on.
func (s schemas) meansNothing(name string, value any) bool {
	switch name {
	case "description", "explanation", "justification":
		return true
	case "wait_for_previous": // Gemini CLI adds it to every schema, and passes it on.
		return true
	case "tty":
		terminal := s.property("argv") != nil
		return coerced(&jsonschema.Schema{Type: "boolean"}, value) == terminal
	case "yield_time_ms", "max_output_tokens": // Codex sends them with whatever it types.
		return s.property("text") != nil
	}
	return value == nil
}

// elsewhere says of arguments of other tools how what they mean is had here.
var elsewhere = map[string]string{
	"tty":        "a program gets a terminal by terminal_create",
	"session_id": `"session" is the name of a shell; what runs as a job or on a terminal is reached by the tools of those`,
}

// spell finds out which names the arguments of a tool have.
func (s schemas) spell() {
	for _, name := range s.names() {
		s.spellings[name] = []alias{{name: name}}
	}
	for _, a := range aliases {
		i := slices.IndexFunc(a.to, func(name string) bool { return s.property(name) != nil })
		switch {
		case i < 0 || a.unless != "" && s.property(a.unless) != nil:
		case a.name == a.to[i]:
			s.spellings[a.name][0] = a
		case s.property(a.name) == nil:
			s.spellings[a.to[i]] = append(s.spellings[a.to[i]], a)
		}
	}
}

// instead says what may be meant by an argument that there is not.
func (s schemas) instead(name string) string {
	if len(s.in.PropertyOrder) == 0 {
		return ": this tool has none"
	}
	if hint := elsewhere[name]; hint != "" {
		return ": " + hint
	}
	like, least := "", unlike
	for _, argument := range s.in.PropertyOrder {
		for _, as := range s.spellings[argument] {
			if n := unlikeness(as.name, name); n < least {
				like, least = argument, n
			}
		}
	}
	if like == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", like)
}

const unlike = 3

// unlikeness is how little a name is like the one that was given: from 0, where that is its
// beginning, over an abbreviation and a few typing errors, to unlike.
func unlikeness(name, given string) int {
	switch {
	case strings.HasPrefix(name, given):
		return 0
	case abbreviates(given, name), distance(name, given) <= 2:
		return 1
	case strings.Contains(name, given), strings.Contains(given, name):
		return 2
	}
	return unlike
}

// abbreviates reports whether short has some of the characters of a name, in their order,
// with the first of them.
func abbreviates(short, name string) bool {
	if short == "" || name == "" || short[0] != name[0] {
		return false
	}
	for i := range len(name) {
		if short != "" && short[0] == name[i] {
			short = short[1:]
		}
	}
	return short == ""
}

// distance is how many characters are to be changed, added or removed to make one of the
// other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0]++
		for j := range len(b) {
			next := min(row[j+1]+1, row[j]+1, diagonal+1)
			if a[i] == b[j] {
				next = min(next, diagonal)
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
