package remote_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// The parts that this program plays for its tests, by its arguments.
var parts = map[string]func(args []string) error{
	"peer":  playPeer,
	"owner": playOwner,
	"slow":  playSlow,
}

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if play, ok := parts[os.Args[1]]; ok {
			if err := play(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(testenv.Main(m))
}

// playPeer prints what the server says to it.
func playPeer(args []string) error {
	c, err := net.Dial("unix", args[0])
	if err != nil {
		return err
	}
	if _, err := io.WriteString(c, "GET /v1 HTTP/1.0\r\n\r\n"); err != nil {
		return err
	}
	b, err := io.ReadAll(c)
	fmt.Println(strings.ReplaceAll(string(b), "\r", ""))
	return err
}

// playSlow attaches, reads one chunk, and then no more.
func playSlow(args []string) error {
	client, err := remote.Dial(context.Background(), args[0], args[1])
	if err != nil {
		return err
	}
	v, err := client.Terminal(args[2]).Attach(0)
	if err != nil {
		return err
	}
	if _, err := v.Next(context.Background()); err != nil {
		return err
	}
	fmt.Println("attached")
	select {}
}
