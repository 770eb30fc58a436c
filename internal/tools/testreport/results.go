package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// event is a line of go test -json: see go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string // Empty: the event is one of the package.
	Output  string
}

// attempt is one run of a test, or of a package.
type attempt struct {
	outcome string // pass, fail or skip; empty if it did not end, as after a panic.
	output  []string
	failed  bool // Of a package: one of its tests failed in this attempt.
}

func (a *attempt) bad() bool { return a.outcome != "pass" && a.outcome != "skip" }

// result is all that is known of a test, or of a package if test is empty.
type result struct {
	pkg, test string
	attempts  []*attempt // In the order in which they began: the first is no rerun.
}

func (r *result) last() *attempt { return r.attempts[len(r.attempts)-1] }

// firstBad returns the first attempt that failed, or nil.
func (r *result) firstBad() *attempt {
	for _, a := range r.attempts {
		if a.bad() {
			return a
		}
	}
	return nil
}

// bad counts the attempts that failed.
func (r *result) bad() (n int) {
	for _, a := range r.attempts {
		if a.bad() {
			n++
		}
	}
	return n
}

// results are those of the packages and tests, in the order in which they began.
type results struct {
	order []*result
	by    map[[2]string]*result
}

func (rs *results) of(pkg, test string) *result {
	key := [2]string{pkg, test}
	r := rs.by[key]
	if r == nil {
		r = &result{pkg: pkg, test: test}
		rs.by[key] = r
		rs.order = append(rs.order, r)
	}
	return r
}

// read reads events until the end of in. Lines that are none, as programs print them that
// write past the test's own output, are passed over.
func read(in io.Reader) (*results, error) {
	rs := &results{by: make(map[[2]string]*result)}
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		var e event
		if json.Unmarshal(line, &e) == nil && e.Package != "" {
			rs.add(e)
		}
		if errors.Is(err, io.EOF) {
			return rs, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func (rs *results) add(e event) {
	r := rs.of(e.Package, e.Test)
	if begins := e.Action == "run" || e.Action == "start"; begins || len(r.attempts) == 0 {
		r.attempts = append(r.attempts, new(attempt))
	}
	a := r.last()
	switch e.Action {
	case "output":
		a.output = append(a.output, strings.TrimSuffix(e.Output, "\n"))
	case "pass", "fail", "skip":
		a.outcome = e.Action
		if a.bad() && e.Test != "" {
			if p := rs.of(e.Package, ""); len(p.attempts) > 0 {
				p.last().failed = true
			}
		}
	}
}

// below reports whether there is a subtest of r, at any depth, for which is holds.
func (rs *results) below(r *result, is func(*result) bool) bool {
	for _, other := range rs.order {
		if other.pkg == r.pkg && strings.HasPrefix(other.test, r.test+"/") && is(other) {
			return true
		}
	}
	return false
}
