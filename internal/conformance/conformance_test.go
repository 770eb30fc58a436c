package conformance_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/conformance"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// base is where the rows run, each in a directory of its own that has the same
// path on every side, so that no answer need be corrected for it.
var base string

func TestMain(m *testing.M) {
	testenv.Reap()
	testenv.CloseInherited()
	os.Exit(func() int {
		var err error
		if base, err = os.MkdirTemp("", "conformance-"); err == nil {
			base, err = filepath.EvalSymlinks(base) // macOS: /tmp is a link.
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(base) // Best effort: a row may have left a process in it.
		return m.Run()
	}())
}

// rows returns the rows that the bash at hand can run.
func rows(t *testing.T) []conformance.Row {
	t.Helper()
	all, err := conformance.Rows()
	require.NoError(t, err)
	var able []conformance.Row
	for _, row := range all {
		if row.Needs == "" || !older(bashVersion(), row.Needs) {
			able = append(able, row)
		}
	}
	return able
}

// freshDir makes the row's directory, empty.
func freshDir(t *testing.T, row conformance.Row) string {
	t.Helper()
	dir := filepath.Join(base, row.Name)
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.Mkdir(dir, 0o755))
	return dir
}

// longest bounds a row. None takes a second on an idle machine.
const longest = 60 * time.Second

// runner is what all shells have.
type runner interface {
	Do(context.Context, command.Request) (command.Result, error)
}

// answer runs a row in a shell.
func answer(t *testing.T, sh runner, row conformance.Row, dir string) conformance.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	res, err := sh.Do(ctx, command.Request{Script: row.Script, Dir: dir})
	require.NoError(t, ctx.Err(), "the row does not end")
	require.Zero(t, res.Stdout.Omitted()+res.Stderr.Omitted(), "the output limit is too low for the row")
	return conformance.Answer{
		Stdout: res.Stdout.String(), Stderr: res.Stderr.String(), Status: res.ExitCode, Err: err,
	}
}

// judge compares an answer with the oracle's, by what the row says of itself.
func judge(t *testing.T, side conformance.Side, row conformance.Row, want, got conformance.Answer) {
	t.Helper()
	in := conformance.Compare(want, got)
	marked, ok := row.Differs[side]
	switch {
	case in == marked.In:
	case ok && in == 0 && !annotatedFor(bashVersion()):
	case ok && in == 0:
		t.Errorf("%s:%d: marked as differing by %q, but it does not differ: take the mark out", row.File, row.Line, marked.Reason)
	default:
		t.Errorf("%s:%d: differs from bash -c in %s; marked are [%s] for %q\n%s\nbash -c: %s\n%s: %s",
			row.File, row.Line, in, marked.In, marked.Reason, row.Script, show(want), side, show(got))
	}
}

func show(a conformance.Answer) string {
	text := fmt.Sprintf("status %d\n\tstdout %s\n\tstderr %s", a.Status, clip(a.Stdout), clip(a.Stderr))
	if a.Err != nil {
		text += fmt.Sprintf("\n\terror %v", a.Err)
	}
	return text
}

// clip quotes s, the middle left out if it is long.
func clip(s string) string {
	const half = 600
	if len(s) <= 2*half {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:half]) + " ... " + strconv.Quote(s[len(s)-half:]) + fmt.Sprintf(" (%d bytes)", len(s))
}

// The rows were annotated with this bash. Others may agree where it differs.
const annotated = "5.2"

func annotatedFor(version string) bool { return strings.HasPrefix(version, annotated+".") }

// older reports whether bash version a, as "5.2.15", is older than b.
func older(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range bs {
		x, y := 0, 0
		if i < len(as) {
			x, _ = strconv.Atoi(as[i]) // What is no number is as old as can be.
		}
		y, _ = strconv.Atoi(bs[i]) // As above.
		if x != y {
			return x < y
		}
	}
	return false
}
