package mcpserver_test

import (
	"os/exec"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// desk is a host for terminals: each result is checked against the schema of its tool.
type desk struct {
	*host
	fits func(tool string, out object)
}

func newDesk(t *testing.T, with setup) *desk {
	t.Helper()
	h := connect(t, with)
	return &desk{h, validator(t, h)}
}

func (d *desk) call(tool string, arguments object) (object, string) {
	d.t.Helper()
	out, text := d.host.call(tool, arguments)
	d.fits(tool, out)
	return out, text
}

// create starts a program on a terminal, and returns that.
func (d *desk) create(arguments object) (id string, out object) {
	d.t.Helper()
	out, _ = d.call("terminal_create", arguments)
	id, _ = of(out)["terminal"].(string)
	require.NotEmpty(d.t, id)
	return id, out
}

// bash is an interactive bash with a prompt that is known, and no history.
var bash = []string{"env", "PS1=> ", "HISTFILE=", "bash", "--noprofile", "--norc"}

func (d *desk) bash(arguments object) string {
	d.t.Helper()
	with := object{"argv": bash}
	for name, value := range arguments {
		with[name] = value
	}
	id, _ := d.create(with)
	d.see(id, `^>$`)
	return id
}

// keys types, and returns the screen.
func (d *desk) keys(id string, keys ...string) (out object) {
	d.t.Helper()
	out, _ = d.call("terminal_send_keys", object{"terminal": id, "keys": keys})
	return out
}

// see waits until a pattern is on the screen, and returns the answer.
func (d *desk) see(id, pattern string) object {
	d.t.Helper()
	return d.waited("matched", object{"terminal": id, "pattern": pattern})
}

// ended waits for the end of the program.
func (d *desk) ended(id string) object {
	d.t.Helper()
	return of(d.waited("exited", object{"terminal": id}))
}

func (d *desk) waited(reason string, arguments object) object {
	d.t.Helper()
	arguments["timeout_seconds"] = testenv.Patience.Seconds()
	out, text := d.call("terminal_wait", arguments)
	require.Equal(d.t, reason, out["reason"], text)
	return out
}

func (d *desk) capture(arguments object) object {
	d.t.Helper()
	out, _ := d.call("terminal_capture", arguments)
	return out
}

// of is the terminal of an answer, shown the text of its screen, and number a number in it.
func of(out object) object { return out["terminal"].(object) }

func shown(out object) string { return out["screen"].(object)["text"].(string) }

func number(out object, name string) int {
	n, _ := out[name].(float64)
	return int(n)
}

// installed returns the first of some programs that there is. Without any the test is
// skipped.
func installed(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no " + names[0])
	return ""
}

// withoutPID takes the number of the process out of a text.
func withoutPID(text string) string {
	return regexp.MustCompile(`, pid \d+`).ReplaceAllString(text, "")
}
