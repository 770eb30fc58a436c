package terminal_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

// painter paints its screen for each new size. Bash could not: a signal that comes right
// before its read waits for the end of that.
const painter = `
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})
print("ready", flush=True)
while True:
    signal.sigwait({signal.SIGWINCH})
    size = os.get_terminal_size()
    os.write(1, b"\033[H\033[2J\033[%d;1H%d by %d" % (size.lines, size.columns, size.lines))
`

// A program hears of a new size, and paints its screen anew, before Resize has returned.
func TestWhatIsPaintedForANewSizeIsShownAtThatSize(t *testing.T) {
	testenv.Slow(t)
	python := installed(t, "python3")
	term := start(t, open(t, nil), python, "-c", painter)
	see(t, term, "ready")
	for i := range 100 {
		size := terminal.Size{Cols: 80, Rows: 44 - i%2*20}
		require.NoError(t, term.Resize(size))
		text := fmt.Sprintf("%d by %d", size.Cols, size.Rows)
		until(t, term, text+" in the last line", func(s terminal.Snapshot) bool { return s.Size == size && lastLine(s) == text })
	}
}
