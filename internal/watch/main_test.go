package watch_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// helperVar names the part that the test binary plays instead of running tests.
const helperVar = "LIMPET_TEST_HELPER"

func TestMain(m *testing.M) {
	switch role := os.Getenv(helperVar); role {
	case "":
		os.Exit(testenv.Main(m))
	case "exhaust":
		if err := exhaust(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	default:
		fmt.Printf("no helper %q\n", role)
		os.Exit(2)
	}
}
