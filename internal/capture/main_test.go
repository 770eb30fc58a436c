package capture_test

import (
	"bufio"
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
	case "hold":
		// Holds the file open until its stdin ends.
		f, err := os.OpenFile(os.Getenv("LIMPET_TEST_FILE"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		_, _ = bufio.NewReader(os.Stdin).ReadByte() // The end is what is waited for.
		_ = f.Close()                               // Nothing was written.
	default:
		fmt.Printf("no helper %q\n", role)
		os.Exit(2)
	}
}
