package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	module = "github.com/limpet-sh/limpet"

	// A run in which more tests than this are flaky has failed: they are no accidents.
	mostFlaky = 3
	// A test may be flaky once more after so many lines in the table of them.
	mostSeen = 2

	// What is printed of a failed test's output: enough for a screen with some of them.
	headLines, tailLines = 12, 28
)

// row is a line of a table in testdata, whose columns have tabs between them.
type row []string

// readTable reads a table: lines that are empty or begin with # are passed over. A table
// without a name is empty.
func readTable(name string) (rows []row, err error) {
	if name == "" {
		return nil, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if line := lines.Text(); line != "" && line[0] != '#' {
			rows = append(rows, strings.Split(line, "\t"))
		}
	}
	return rows, lines.Err()
}

type report struct {
	out     io.Writer
	free    bool  // Every test may be skipped, and those that were are not listed.
	may     []row // testdata/skips: a pattern of tests or reasons, and when.
	seen    []row // testdata/flaky: a date, a test, and what is known of the cause.
	sandbox bool
}

// print prints all of it, and reports whether all of it is allowed.
func (r *report) print(rs *results) (ok bool) {
	ok = r.skipped(rs)
	var flaky, failed []*result
	ran := 0
	for _, one := range rs.order {
		if one.test != "" {
			ran++
		}
		switch {
		case one.test == "" && one.bad() > 0 && !brokeByTests(one):
			failed = append(failed, one) // No test is to blame: a rerun of tests proves nothing.
		case one.test == "" || one.firstBad() == nil:
		// What a parent says of a subtest that failed is that it did.
		case one.last().bad():
			if !rs.below(one, func(sub *result) bool { return sub.last().bad() }) {
				failed = append(failed, one)
			}
		case !rs.below(one, func(sub *result) bool { return sub.firstBad() != nil }):
			flaky = append(flaky, one)
		}
	}
	if !r.flaky(flaky) {
		ok = false
	}
	if len(failed) > 0 {
		fmt.Fprintln(r.out, "\nfailed:")
		for _, one := range failed {
			r.tell(one)
		}
		ok = false
	}
	if ran == 0 {
		fmt.Fprintln(r.out, "\nno test ran")
		ok = false
	}
	return ok
}

// brokeByTests reports whether whenever the package failed, one of its tests had.
func brokeByTests(pkg *result) bool {
	for _, a := range pkg.attempts {
		if a.bad() && !a.failed {
			return false
		}
	}
	return true
}

// said is how a test says why it is skipped: file, line, reason.
var said = regexp.MustCompile(`^\s+[^ ]+\.go:\d+: (.*)`)

func (r *report) skipped(rs *results) (ok bool) {
	if r.free {
		return true
	}
	ok = true
	var objections []string
	heading := "\nskipped:"
	for _, one := range rs.order {
		if one.test == "" || one.last().outcome != "skip" {
			continue
		}
		why := ""
		for _, line := range one.last().output {
			if m := said.FindStringSubmatch(line); m != nil {
				why = m[1]
			}
		}
		if heading != "" {
			fmt.Fprintln(r.out, heading)
			heading = ""
		}
		fmt.Fprintf(r.out, "    %s: %s\n", one.test, why)
		if r.sandbox && strings.HasPrefix(why, "no sandbox is to be had here: ") {
			objections = append(objections, one.test+" was skipped for want of a sandbox, but bwrap works here")
		}
		if !slices.ContainsFunc(r.may, func(row row) bool { return like(row[0], one.test) || like(row[0], why) }) {
			objections = append(objections, one.test+" was skipped, and is not in testdata/skips")
		}
	}
	for _, objection := range objections {
		fmt.Fprintln(r.out, "test:", objection)
		ok = false
	}
	return ok
}

// like reports whether the text is as the pattern, in which a * stands for anything.
func like(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.MustCompile(`(?s)^` + strings.Join(parts, ".*") + `$`).MatchString(text)
}

func (r *report) flaky(flaky []*result) (ok bool) {
	ok = true
	if len(flaky) == 0 {
		return ok
	}
	fmt.Fprintln(r.out, "\nflaky: failed, and passed when run again alone. Mend these next; until then each time has a line in testdata/flaky.")
	for _, one := range flaky {
		r.tell(one)
		times := 0
		for _, row := range r.seen {
			if len(row) > 1 && row[1] == one.name() {
				times++
			}
		}
		if times >= mostSeen {
			fmt.Fprintf(r.out, "test: %s has %d lines in testdata/flaky, and failed once more: mend it\n", one.name(), times)
			ok = false
		}
	}
	if len(flaky) > mostFlaky {
		fmt.Fprintf(r.out, "test: %d tests are flaky, more than %d: something disturbs them, or this change broke them\n", len(flaky), mostFlaky)
		ok = false
	}
	return ok
}

// dir is the directory of the package, as test takes it.
func (one *result) dir() string {
	dir := strings.TrimPrefix(strings.TrimPrefix(one.pkg, module), "/")
	if dir == "" {
		return "."
	}
	return "./" + dir
}

// name is that of the test in tables and for people: the package's directory, and the test.
func (one *result) name() string { return path.Clean(one.dir()) + " " + one.test }

// tell prints what a test said when it failed first, and how to repeat that.
func (r *report) tell(one *result) {
	again := "./test " + one.dir()
	name := one.name()
	if one.test == "" {
		name = path.Clean(one.dir()) + ", outside its tests"
	} else {
		again += " -run " + quote(pattern(one.test))
	}
	fmt.Fprintf(r.out, "  %s (failed in %d of %d)\n", name, one.bad(), len(one.attempts))
	lines := slices.DeleteFunc(slices.Clone(one.firstBad().output), framing)
	for i, line := range lines {
		if left := len(lines) - headLines - tailLines; left > 0 && i >= headLines && i < headLines+left {
			if i == headLines {
				fmt.Fprintf(r.out, "      ... %d lines ...\n", left)
			}
			continue
		}
		fmt.Fprintln(r.out, "      "+line)
	}
	if one.firstBad().outcome == "" {
		fmt.Fprintln(r.out, "      (it did not end)")
	}
	fmt.Fprintln(r.out, "    again: "+again)
}

// framing reports whether the line is go test's own, and says nothing that is not said
// already.
func framing(line string) bool {
	for _, prefix := range []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME"} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

// pattern is what go test's -run takes for this test alone.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// quote quotes a text for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
