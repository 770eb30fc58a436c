// Package terminal runs interactive programs, such as ssh, psql, vim, a REPL or another
// agent, each on a pseudo-terminal of its own, for agents that type keys and read the
// screen, and for people who watch. A program outlives its viewers: they come and go, and
// it waits for none of them.
//
// A [Registry] is a directory with what is known of terminals, which any number of
// programs may share. [Registry.Start] starts a program:
//
//	t, err := registry.Start(ctx, terminal.Spec{Argv: []string{"psql", "orders"}})
//	...
//	_, err = t.Wait(ctx, terminal.WaitOptions{Prompt: true, Timeout: 10 * time.Second})
//	_, err = t.Write([]byte("\\dt\r"))
//	s, err := t.Screen()
//	fmt.Println(s.Text())
//
// What a program prints is kept raw in a ring, by its offset in all of it ([Terminal.Attach],
// [Terminal.Output]), and shown by an emulator when somebody looks ([Terminal.Screen],
// package screen). A terminal goes from Starting to Running to Succeeded, Failed or
// Cancelled. Its state is written down at each step, and what it has shown at its end: it
// can be looked at when it has left memory, and by other programs. If the program that has
// it is killed, what runs on the terminal is ended, and the terminal is Lost.
//
// The main path is in start.go (Start), program.go (the process and its terminal, from its
// start to its end), output.go (what is printed), input.go (what is typed), display.go (what
// is seen). waiting.go says who waits for input. ring.go, history.go and store.go are what they keep.
package terminal
