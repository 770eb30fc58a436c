package jobs_test

import (
	"os"
	"testing"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// programVar names the program that the test binary plays: see programs.
const programVar = "LIMPET_TEST_PROGRAM"

// programs are what the test binary can be, besides a supervisor.
var programs = map[string]func(){
	"crash": crashingProgram,
	"hold":  holdingProgram,
	"reap":  reapedProgram,
}

func TestMain(m *testing.M) {
	// Supervisors run this program, too. A race detector sleeps for a second when it exits.
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // It cannot fail.
	if play := programs[os.Getenv(programVar)]; play != nil {
		play()
		os.Exit(0)
	}
	os.Exit(testenv.Main(m))
}
