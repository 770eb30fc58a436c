package connect

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/limpet-sh/limpet/internal/keeper"
)

// Argv0 is what a program is called that serves a connection, and does nothing else. Its argument is the nonce.
const Argv0 = "limpet-connect"

// A program that was brought to another machine is executed there under this name, and is entered here. Limpet, which its tests play, goes on to its
// main: it is more to the sessions that it keeps.
func init() {
	const args = 2
	if len(os.Args) != args || filepath.Base(os.Args[0]) != Argv0 {
		return
	}
	if info, ok := debug.ReadBuildInfo(); ok && strings.TrimSuffix(info.Path, ".test") == keeper.Module+"/cmd/limpet" {
		os.Args = []string{"limpet", "connect", "--stdio", os.Args[1]}
		return
	}
	if err := Serve(os.Args[1], OfPart()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
