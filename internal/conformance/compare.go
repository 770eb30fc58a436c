package conformance

import (
	"fmt"
	"strings"
)

// Aspects are the parts of an answer that can differ.
type Aspects uint8

// The aspects.
const (
	Stdout   Aspects = 1 << iota
	Stderr           // after Normalise
	Status           // the exit code
	NoStatus         // there is an error in the place of a status
)

var aspectNames = []string{"stdout", "stderr", "status", "no status"}

func (a Aspects) String() string {
	var names []string
	for i, name := range aspectNames {
		if a&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// parseAspects reads what String writes.
func parseAspects(s string) (Aspects, error) {
	var all Aspects
next:
	for _, word := range strings.Split(s, ", ") {
		for i, name := range aspectNames {
			if word == name {
				all |= 1 << i
				continue next
			}
		}
		return 0, fmt.Errorf("no aspect %q: they are %s", word, strings.Join(aspectNames, ", "))
	}
	return all, nil
}

// Compare returns in which aspects got differs from want.
func Compare(want, got Answer) Aspects {
	var differ Aspects
	if got.Stdout != want.Stdout {
		differ |= Stdout
	}
	if Normalise(got.Stderr) != Normalise(want.Stderr) {
		differ |= Stderr
	}
	switch {
	case got.Err != nil:
		differ |= NoStatus
	case got.Status != want.Status:
		differ |= Status
	}
	return differ
}
