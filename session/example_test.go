package session_test

import (
	"context"
	"fmt"
	"log"

	"github.com/limpet-sh/limpet/session"
)

func Example() {
	ctx := context.Background()
	r, err := session.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()
	s, err := r.Open(ctx, "build", nil)
	if err != nil {
		log.Fatal(err)
	}
	if _, err = s.Run(ctx, "cd /tmp; greet() { echo hello from $PWD; }"); err != nil {
		log.Fatal(err)
	}
	fork, err := s.Fork(ctx, "try")
	if err != nil {
		log.Fatal(err)
	}
	if _, err = s.Run(ctx, "cd /; unset -f greet"); err != nil {
		log.Fatal(err)
	}
	res, err := fork.Run(ctx, "greet")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(res.Stdout)
	// Output: hello from /tmp
}
