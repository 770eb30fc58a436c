package host

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// A piece of a program takes longer than nothing may be heard, where the way is slow.
func TestAPieceMayTakeLongerThanASignOfLife(t *testing.T) {
	testenv.Slow(t)
	const patience, slow = 50 * time.Millisecond, 300 * time.Millisecond
	stdin, to, err := os.Pipe()
	require.NoError(t, err)
	defer to.Close()
	out, stdout, err := os.Pipe()
	require.NoError(t, err)
	defer out.Close()
	f := newFarShell(to, out, patience)
	piece := bytes.Repeat([]byte("x"), 1<<20)
	go func() {
		defer stdin.Close()
		defer stdout.Close()
		in := bufio.NewReader(stdin)
		for {
			if line, err := in.ReadString('\n'); err != nil || strings.HasPrefix(line, "limpet_receive;") {
				break
			}
		}
		fmt.Fprintln(stdout, f.mark, "ready 0")
		_, _ = io.CopyN(io.Discard, in, int64(len(piece))) // The test fails below.
		time.Sleep(slow)
		fmt.Fprintln(stdout, f.mark, "end 0")
	}()
	_, err = f.call("limpet_receive", nil, func() error { return f.sendPiece(piece) })
	require.NoError(t, err)
}
