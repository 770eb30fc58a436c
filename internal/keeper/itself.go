package keeper

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"

	"github.com/limpet-sh/limpet/internal/proc"
)

// argv0 is what a program is called that keeps a session, and does nothing else. Its argument is the directory.
const argv0 = "limpet-keeper"

// A program that has started a keeper by Itself is executed again, and is entered here. A directory that is none
// of a keeper's leaves it as it is.
func init() {
	const args = 2
	if len(os.Args) != args || os.Args[0] != argv0 {
		return
	}
	err := Serve(os.Args[1], Program{Version: Version(), Execute: Itself})
	if errors.Is(err, ErrNotForPeople) {
		return // Somebody else has named himself so.
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Itself is for [Registry.Execute]: it executes this program again, whatever it is.
func Itself(dir string) *exec.Cmd {
	cmd := exec.Command(proc.Self())
	cmd.Args = []string{argv0, dir}
	return cmd
}

// Module is the path of limpet's module.
const Module = "github.com/limpet-sh/limpet"

// Version is that of limpet in this program, and of the Go and the system that it was built for: v0.1.0 go1.26.8 linux/amd64.
func Version() string {
	return fmt.Sprintf("%s %s %s/%s", Number(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Number is the version of limpet in this program: v0.1.0.
func Number() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Unversioned
	}
	return cmp.Or(NumberIn(info), Unversioned)
}

// Unversioned is the Number of a program that was built where the Go toolchain knows no version.
const Unversioned = "(devel)"

// NumberIn is the version of limpet in a program that was built so; empty if there is no limpet in it.
func NumberIn(info *debug.BuildInfo) string {
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == Module {
			return cmp.Or(m.Version, Unversioned)
		}
	}
	return ""
}
