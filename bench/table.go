package main

import (
	"fmt"
	"strings"
	"time"
)

// report is all that a run found.
type report struct {
	Date    time.Time
	Quick   bool
	Machine machine
	Rows    []row    // comparisons
	Facts   []fact   // what is counted rather than compared
	Notes   []string // what was left out, and why
	Series  []series // raw
}

// series are the samples of one side in one workload.
type series struct {
	Workload, Script, Side string
	Samples                []time.Duration // nanoseconds
}

// row is one comparison of limpet with another side.
type row struct {
	Workload, Limpet, Against, Other, Ratio, Target, Met string
}

// fact is something that was counted.
type fact struct{ Workload, Measured, Target, Met string }

// target is what limpet should reach against a side.
type target struct {
	against string
	text    string
	met     func(limpet, other time.Duration) bool
}

// atLeastFaster wants limpet to take at most 1/times of the other's time.
func atLeastFaster(against string, times float64) target {
	return target{against, fmt.Sprintf("at least %gx faster", times), func(limpet, other time.Duration) bool {
		return float64(limpet)*times <= float64(other)
	}}
}

// within wants limpet to take at most so many times the other's time.
func within(against string, times float64) target {
	return target{against, fmt.Sprintf("within %gx", times), func(limpet, other time.Duration) bool {
		return float64(limpet) <= float64(other)*times
	}}
}

// under wants limpet to take less than so long, whatever the others take.
func under(most time.Duration) target {
	return target{bashName, fmt.Sprintf("below %v, beside it", most), func(limpet, _ time.Duration) bool { return limpet < most }}
}

// notSlower wants limpet to take at most the other's time.
func notSlower(against string) target {
	return target{against, "not slower", func(limpet, other time.Duration) bool { return limpet <= other }}
}

// atMostMore wants limpet to take at most so much longer than the other.
func atMostMore(against string, by time.Duration) target {
	return target{against, fmt.Sprintf("at most %v more", by), func(limpet, other time.Duration) bool {
		return limpet-other <= by
	}}
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// compare adds a row for each other side.
func (r *report) compare(all []series, targets ...target) {
	var limpet time.Duration
	for _, s := range all {
		if s.Side == limpetName {
			limpet = median(s.Samples)
		}
	}
	for _, s := range all {
		if s.Side == limpetName {
			continue
		}
		other := median(s.Samples)
		row := row{Workload: all[0].Workload, Limpet: show(limpet), Against: s.Side, Other: show(other), Ratio: ratio(limpet, other)}
		for _, t := range targets {
			if t.against == s.Side {
				row.Target, row.Met = t.text, yes(t.met(limpet, other))
			}
		}
		r.Rows = append(r.Rows, row)
	}
}

func ratio(limpet, other time.Duration) string {
	if limpet <= other {
		return digits(float64(other)/float64(max(limpet, 1))) + "x faster"
	}
	return digits(float64(limpet)/float64(max(other, 1))) + "x the time"
}

// fact adds a line to the second table. Without a target met is not shown.
func (r *report) fact(workload, measured, target string, met bool) {
	f := fact{Workload: workload, Measured: measured, Target: target}
	if target != "" {
		f.Met = yes(met)
	}
	r.Facts = append(r.Facts, f)
}

func (r *report) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// markdown is the page for people.
func (r *report) markdown() string {
	var b strings.Builder
	b.WriteString(r.Machine.String())
	fmt.Fprintf(&b, "- %s", r.Date.Format("2006-01-02"))
	if r.Quick {
		b.WriteString(", a quick run: a tenth of the work, so take its numbers as rough")
	}
	b.WriteString("\n\n")
	if len(r.Rows) > 0 {
		line(&b, "workload", "limpet", "against", "which takes", "so limpet is/takes", "target", "met")
		line(&b, "---", "--:", "---", "--:", "---", "---", "---")
		for _, row := range r.Rows {
			line(&b, row.Workload, row.Limpet, row.Against, row.Other, row.Ratio, row.Target, row.Met)
		}
		b.WriteString("\nTimes are medians of interleaved batches.\n\n")
	}
	if len(r.Facts) > 0 {
		line(&b, "workload", "measured", "target", "met")
		line(&b, "---", "---", "---", "---")
		for _, f := range r.Facts {
			line(&b, f.Workload, f.Measured, f.Target, f.Met)
		}
		b.WriteString("\n")
	}
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "- %s\n", note)
	}
	return b.String()
}

func line(b *strings.Builder, cells ...string) {
	b.WriteString("|")
	for _, cell := range cells {
		b.WriteString(" " + strings.ReplaceAll(cell, "|", `\|`) + " |")
	}
	b.WriteString("\n")
}
