package terminal_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

// ownerVar makes this program one that has terminals, and waits to be killed.
const ownerVar = "LIMPET_TEST_TERMINALS_OWNER"

// foreignVar makes it one that has a terminal with another user's process.
const foreignVar = "LIMPET_TEST_TERMINALS_FOREIGN"

func TestMain(m *testing.M) {
	if os.Getenv(ownerVar) != "" {
		own(os.Args[1])
	}
	if os.Getenv(foreignVar) != "" {
		if err := closeForeign(os.Args[1]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(testenv.Main(m))
}

func own(dir string) {
	fail := func(err error) {
		fmt.Println(err)
		os.Exit(1)
	}
	r, err := terminal.Open(dir, nil)
	if err != nil {
		fail(err)
	}
	for _, line := range []string{
		"sleep 1000", "trap '' HUP TERM; while :; do sleep 1000; done", "trap '' HUP TERM; exec env -i sleep 1000", "exit 3",
	} {
		t, err := r.Start(context.Background(), terminal.Spec{Line: line})
		if err != nil {
			fail(err)
		}
		if line == "exit 3" {
			<-t.Done()
		}
	}
	fmt.Println("ready")
	select {}
}
