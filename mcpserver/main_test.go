package mcpserver_test

import (
	"os"
	"testing"

	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // It cannot fail. Else a supervisor sleeps for a second when it exits.
	os.Exit(testenv.Main(m))
}
