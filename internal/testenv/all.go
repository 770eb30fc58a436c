package testenv

import (
	"os"
	"testing"
)

// AllVar is the variable that ./test all sets: every test runs, and each in full.
const AllVar = "LIMPET_TEST_ALL"

// All reports whether tests leave nothing out, as in ./test all: what takes minutes and
// says little that shorter tests do not.
func All() bool { return os.Getenv(AllVar) != "" && !testing.Short() }

// Repeats returns how often a test repeats what finds more the longer it runs: quick with
// -short, all in ./test all, and usual otherwise.
func Repeats(quick, usual, all int) int {
	switch {
	case testing.Short():
		return quick
	case All():
		return all
	}
	return usual
}

// Slow skips a test with -short, that is in ./test quick: one that takes a third of a second or more, or much of a processor.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow: left out by -short")
	}
}

// OnlyAll skips a test that takes long, and that seldom finds what others do not, but in
// ./test all.
func OnlyAll(t testing.TB) {
	t.Helper()
	if !All() {
		t.Skip("left to ./test all")
	}
}
