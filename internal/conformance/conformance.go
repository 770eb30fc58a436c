// Package conformance holds some 5300 small bash scripts with which limpet's
// shells are measured against bash -c, the rules by which answers are compared,
// and the list of reasons for which an answer may differ.
//
// The rows are in rows/*.txt, one script after the other:
//
//	=== name
//	script lines
//	--- needs 5.1                 the oldest bash that can run it
//	--- stateful                  not to be run twice in one session
//	--- piped                     bash -c writes into pipes, and is done when they are closed
//	--- differs persistent: KEY in stdout, status
//	--- differs oneshot: KEY in stderr
//
// KEY names one of the Reasons, and what follows it is all that differs. Lines
// before the first row are comments. A script has no newline at its end,
// as in bash -c 'script'.
package conformance

import (
	"embed"
	"io/fs"
	"sync"
)

// Side is a way to run a row that is compared with bash -c.
type Side string

// The sides.
const (
	Persistent Side = "persistent" // a fresh shell.PersistentShell
	Oneshot    Side = "oneshot"    // a oneshot.Runner
)

// Sides lists them in the order in which reports name them.
var Sides = []Side{Persistent, Oneshot}

// Row is a script and what is known of it.
type Row struct {
	Name   string
	Script string
	File   string // below rows/
	Line   int    // of the name

	Needs    string // a bash version as "5.1"; empty: any
	Stateful bool   // leaves, or looks at, what others see in the same session
	Piped    bool   // output may come from process substitutions that outlive bash -c
	Differs  map[Side]Difference
}

// Difference says in what an answer differs, and which of Reasons it is for.
type Difference struct {
	Reason string
	In     Aspects
}

// Answer is what came of a row. Err is set where there is no status.
type Answer struct {
	Stdout, Stderr string
	Status         int
	Err            error
}

//go:embed rows/*.txt
var rowFiles embed.FS

// Rows returns all rows, in the order of their files.
var Rows = sync.OnceValues(func() ([]Row, error) {
	rows, err := fs.Sub(rowFiles, "rows")
	if err != nil {
		return nil, err
	}
	return Parse(rows)
})
