package sandbox_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// helperVar names the part that the test binary plays instead of running tests.
const helperVar = "LIMPET_TEST_HELPER"

func TestMain(m *testing.M) {
	if role := os.Getenv(helperVar); role != "" {
		helper, ok := helpers[role]
		if !ok {
			fmt.Fprintf(os.Stderr, "no helper %q\n", role)
			os.Exit(2)
		}
		if err := helper(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testenv.Main(m))
}
