package testenv

import (
	"os"
	"testing"
)

// AllVar is the variable that ./test all sets: every test runs, and each in full.
const AllVar = "LIMPET_TEST_ALL"

// All reports whether tests shall leave nothing out: what takes minutes, and says little
// that shorter tests do not.
func All() bool { return os.Getenv(AllVar) != "" && !testing.Short() }

// Repeats is how often a test repeats what finds more the longer it runs: quick with
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

// Slow skips a test with -short. It is for tests that take seconds: ./test quick is for the
// time between two changes, and takes a minute at most.
func Slow(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("slow: left out by -short")
	}
}
