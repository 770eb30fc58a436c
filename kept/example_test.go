package kept_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/limpet-sh/limpet/kept"
)

// A program opens a session, leaves it, and finds it again. So would another one.
func Example() {
	dir, err := os.MkdirTemp("", "limpet-example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	opts := &kept.Options{StateDir: dir} // Nil is fine: then they are those of limpet run -s.
	ctx := context.Background()
	for _, script := range []string{"cd /usr; x=1", "echo $x in $PWD"} {
		s, err := kept.Open(ctx, "build", opts)
		if err != nil {
			log.Fatal(err)
		}
		res, err := s.Run(ctx, script)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Print(res.Stdout)
		s.Disconnect()
	}
	s, err := kept.Open(ctx, "build", opts)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Close())
	// Output:
	// 1 in /usr
	// <nil>
}
