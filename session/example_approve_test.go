package session_test

import (
	"context"
	"fmt"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/session"
)

// gated decides about a session by a gate of package approval.
type gated struct{ *approval.Gate }

func (g gated) Approve(ctx context.Context, a session.Action) (func(dir string) bool, error) {
	pass, err := g.Pass(ctx, approval.Question{Script: a.Script, Dir: a.Dir, Input: a.Input, Look: a.Live})
	if err != nil || a.Input != "" {
		return nil, err
	}
	return pass.Holds, nil
}

func (g gated) Fork() session.Approver { return gated{g.Gate.Fork()} }

// Sessions ask a person, here one who always says no, before they run what is not known to change nothing.
func ExampleOptions_approve() {
	no := func(context.Context, approval.Question) (approval.Reply, error) {
		return approval.Reply{Reason: "not today"}, nil
	}
	r, err := session.New(&session.Options{Approve: func(of session.Approved) session.Approver {
		g := approval.NewGate(no, nil)
		if of.Used { // It may have functions and aliases.
			g.Changed()
		}
		return gated{g}
	}})
	if err != nil {
		panic(err)
	}
	defer r.Close()
	ctx := context.Background()
	s, err := r.Open(ctx, "default", nil)
	if err != nil {
		panic(err)
	}
	res, err := s.Run(ctx, "echo hello | wc -w")
	fmt.Printf("%s%v\n", res.Stdout.Bytes(), err)
	_, err = s.Run(ctx, "rm -r build")
	fmt.Println(err)
	// Output:
	// 1
	// <nil>
	// refused: not approved: rm -r build: it deletes files; the answer was no: not today
}
