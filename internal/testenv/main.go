package testenv

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// reaperVar says which of the three processes of a test binary this one is: see [Reap].
const reaperVar = "LIMPET_TEST_REAPER"

// StandInVar names a limpet that was built without the race detector, which makes a program start five times as slowly. Tests that are
// built with it execute that limpet, and not themselves, for supervisors, keepers, and what is brought to other machines; others ignore
// the variable. It is a whole limpet there, where a test binary is a part of one. A limpet-OS-ARCH in the directory of the stand-in is what is
// brought to other machines, as with an installed one. ./test sets it, and ./test all does not: there the race detector watches these, too.
const StandInVar = "LIMPET_TEST_STAND_IN"

// OwnReaper is the entry in the environment of a test binary, started by a test, that gives
// it a reaper of its own.
const OwnReaper = reaperVar + "="

// Main runs a package's tests, below a reaper (see [Reap]), and then fails if they left
// goroutines or processes behind:
//
//	func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }
func Main(m *testing.M) (code int) {
	Reap()
	if code = m.Run(); code != 0 {
		return code // What failed may well have left something.
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "leaked goroutines:", err)
		code = 1
	}
	if left := Children(); len(left) > 0 {
		fmt.Fprintln(os.Stderr, "leaked processes:", Describe(left))
		code = 1
	}
	return code
}
