package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// events are those of package p of the module: each line is an action, a test or - for the
// package, and output.
func events(t *testing.T, text string) *results {
	t.Helper()
	var log strings.Builder
	for line := range strings.Lines(strings.TrimSpace(text)) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 3)
		e := event{Action: words[0], Package: module + "/p", Test: strings.TrimPrefix(words[1], "-")}
		if len(words) == 3 {
			e.Output = words[2] + "\n"
		}
		b, err := json.Marshal(e)
		require.NoError(t, err)
		fmt.Fprintf(&log, "%s\n", b)
	}
	rs, err := read(strings.NewReader(log.String()))
	require.NoError(t, err)
	return rs
}

func TestTheReportAllowsWhatMayBe(t *testing.T) {
	const flakyA = `
		start -
		run TestA
		output TestA     a_test.go:1: lost a race
		fail TestA
		fail -
		start -
		run TestA
		pass TestA
		pass -`
	tests := map[string]struct {
		events  string
		r       report
		allowed bool
		says    []string
		not     []string
	}{
		"all passed": {
			events:  "start -\nrun TestA\npass TestA\npass -",
			allowed: true,
			not:     []string{"failed", "flaky", "skipped"},
		},
		"nothing ran": {
			events: "start -\nskip -",
			says:   []string{"no test ran"},
		},
		"a failure, after reruns": {
			events: `
				start -
				run TestA
				run TestA/sub_x
				output TestA/sub_x     a_test.go:3: one is not two
				fail TestA/sub_x
				fail TestA
				fail -
				start -
				run TestA
				run TestA/sub_x
				fail TestA/sub_x
				fail TestA
				fail -`,
			says: []string{"failed:", "p TestA/sub_x (failed in 2 of 2)", "one is not two", "again: ./test ./p -run '^TestA$/^sub_x$'"},
			not:  []string{"TestA (", "flaky:"},
		},
		"a parent that fails by itself, behind a subtest that did once": {
			events: `
				start -
				run TestA
				run TestA/sub
				fail TestA/sub
				fail TestA
				fail -
				start -
				run TestA
				run TestA/sub
				pass TestA/sub
				fail TestA
				fail -`,
			says: []string{"failed:", "p TestA (failed in 2 of 2)", "flaky:", "p TestA/sub (failed in 1 of 2)"},
		},
		"a flaky test": {
			events:  flakyA,
			allowed: true,
			says:    []string{"flaky:", "p TestA (failed in 1 of 2)", "lost a race"},
			not:     []string{"failed:"},
		},
		"a flaky test, for the second time": {
			events:  flakyA,
			r:       report{seen: []row{{"2026-11-20", "p TestA", "?"}}},
			allowed: true,
		},
		"a flaky test, for the third time": {
			events: flakyA,
			r:      report{seen: []row{{"2026-11-20", "p TestA", "?"}, {"2026-11-21", "p TestA", "?"}}},
			says:   []string{"p TestA has 2 lines in testdata/flaky"},
		},
		"too many flaky tests": {
			events: flakyA + strings.ReplaceAll(flakyA, "TestA", "TestB") + strings.ReplaceAll(flakyA, "TestA", "TestC") + strings.ReplaceAll(flakyA, "TestA", "TestD"),
			says:   []string{"4 tests are flaky, more than 3"},
		},
		"a leak that the package found, with and without a flaky test": {
			events: "start -\nrun TestB\npass TestB\noutput - a goroutine is left\nfail -" + flakyA,
			says:   []string{"failed:", "p, outside its tests", "a goroutine is left", "again: ./test ./p\n", "flaky:"},
		},
		"a test that never ended": {
			events: "start -\nrun TestA\noutput TestA panic: test timed out\nfail -",
			says:   []string{"failed:", "p TestA (failed in 1 of 1)", "(it did not end)", "panic: test timed out"},
		},
		"a skip that may be, by its name": {
			events:  "start -\nrun TestA\noutput TestA     a_test.go:3: no loop devices here\nskip TestA\npass -",
			r:       report{may: []row{{"TestA", "no root"}}},
			allowed: true,
			says:    []string{"skipped:", "TestA: no loop devices here"},
		},
		"a skip that may be, by its reason": {
			events:  "start -\nrun TestA\noutput TestA     a_test.go:3: no loop devices here\nskip TestA\npass -",
			r:       report{may: []row{{"no * here", "no root"}}},
			allowed: true,
		},
		"a skip, where every test may be skipped": {
			events:  "start -\nrun TestA\noutput TestA     a_test.go:3: not today\nskip TestA\npass -",
			r:       report{free: true},
			allowed: true,
			not:     []string{"skipped"},
		},
		"a skip that may not be": {
			events: "start -\nrun TestA\noutput TestA     a_test.go:3: not today\nskip TestA\npass -",
			r:      report{may: []row{{"TestB", "no root"}}},
			says:   []string{"TestA was skipped, and is not in testdata/skips"},
		},
		"no sandbox, where one is to be had": {
			events: "start -\nrun TestA\noutput TestA     a_test.go:3: no sandbox is to be had here: \"x\"\nskip TestA\npass -",
			r:      report{may: []row{{"no sandbox*", "no root"}}, sandbox: true},
			says:   []string{"TestA was skipped for want of a sandbox, but bwrap works here"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			test.r.out = &out
			assert.Equal(t, test.allowed, test.r.print(events(t, test.events)), out.String())
			for _, text := range test.says {
				assert.Contains(t, out.String(), text)
			}
			for _, text := range test.not {
				assert.NotContains(t, out.String(), text)
			}
		})
	}
}

func TestTheEndOfLongOutputIsShown(t *testing.T) {
	var text strings.Builder
	text.WriteString("start -\nrun TestA\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "output TestA line %d.\n", i)
	}
	text.WriteString("fail TestA\nfail -")
	var out strings.Builder
	r := report{out: &out}
	assert.False(t, r.print(events(t, text.String())))
	assert.Contains(t, out.String(), "line 0.")
	assert.Contains(t, out.String(), "line 999.")
	assert.Contains(t, out.String(), "... 960 lines ...")
	assert.Less(t, strings.Count(out.String(), "\n"), 50)
}

// The tables are the project's own: a line that is read wrongly would allow nothing.
func TestTheTablesAreRead(t *testing.T) {
	testdata := filepath.Join("..", "..", "..", "testdata")
	skips, err := readTable(filepath.Join(testdata, "skips"))
	require.NoError(t, err)
	assert.NotEmpty(t, skips)
	for _, row := range skips {
		assert.Len(t, row, 2, "testdata/skips: %q", row)
	}
	flaky, err := readTable(filepath.Join(testdata, "flaky"))
	require.NoError(t, err)
	for _, row := range flaky {
		assert.Len(t, row, 3, "testdata/flaky: %q", row)
		assert.Regexp(t, `^\d{4}-\d\d-\d\d$`, row[0])
	}
	_, err = readTable(filepath.Join(testdata, "no such table"))
	assert.ErrorIs(t, err, os.ErrNotExist)
}
