// Limpet-connect is what limpet brings to another machine that has no limpet: the part that serves connections and keeps sessions there, with their jobs,
// terminals and files. It has no command line for people, no page and no MCP server, and so is half as large as limpet. The script build
// beside this file makes it for other systems; docs/remote.md says where limpet looks for it.
//
// Package connect, which it imports, has it be a keeper, a supervisor of a job, the host of a terminal or an askpass helper when it is executed as one.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/limpet-sh/limpet/internal/connect"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/wire"
)

const usage = `limpet-connect is what limpet brings to another machine, and is started by limpet --on:

  limpet-connect connect --stdio       serve a connection on standard input and output
  limpet-connect connect --protocol    print the oldest and the newest version of the protocol
  limpet-connect version               print the version
`

const badUsage = 2 // as that of limpet

func main() { os.Exit(run(os.Args[1:])) }

// run runs the program and returns its exit code. Its commands are those of limpet that a limpet on another machine executes: so the program can be the
// limpet in the PATH of a machine, or be offered at a socket.
func run(args []string) int {
	var err error
	switch {
	case slices.Equal(args, []string{"connect", "--protocol"}):
		_, err = fmt.Println(wire.Version, wire.Version)
	case slices.Equal(args, []string{"connect", "--stdio"}):
		err = connect.Serve(connect.NoNonce, connect.OfPart())
	case len(args) == 3 && slices.Equal(args[:2], []string{"connect", "--stdio"}):
		err = connect.Serve(args[2], connect.OfPart())
	case slices.Equal(args, []string{"version"}), slices.Equal(args, []string{"--version"}):
		_, err = fmt.Println("limpet-connect " + keeper.Version())
	default:
		fmt.Fprint(os.Stderr, usage)
		return badUsage
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "limpet-connect: "+err.Error())
		if errors.Is(err, connect.ErrNotForPeople) {
			return badUsage
		}
		return 1
	}
	return 0
}
