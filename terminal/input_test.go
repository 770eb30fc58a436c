package terminal_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/keys"
)

func TestCtrlCInterruptsTheForegroundProgramAndNotTheShell(t *testing.T) {
	term := bash(t, open(t, nil))
	send(t, term, "sleep 1000; echo after $?", "Enter")
	foreground(t, term, "sleep")
	send(t, term, "Ctrl-C")
	see(t, term, `\^C\n> $`)
	send(t, term, "echo $?", "Enter")
	see(t, term, `(?m)^130$`)
	assert.Equal(t, terminal.Running, term.Info().State)
}

// foreground waits until a program of that name has the terminal.
func foreground(t testing.TB, term *terminal.Terminal, name string) {
	t.Helper()
	testenv.Await(t, name+" in the foreground", func() bool { return terminal.Foreground(term) == name })
}

func TestAWriteIsWholeAndThoseOfManyAreNotMixed(t *testing.T) {
	const writers, size = 8, 300 << 10
	term := startSpec(t, open(t, nil), terminal.Spec{
		Line:        fmt.Sprintf("stty raw -echo; echo ready; head -c %d; echo end", writers*size),
		BufferLimit: 4 << 20,
	})
	see(t, term, "ready")
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			n, err := term.Write(bytes.Repeat([]byte{byte('a' + i)}, size))
			assert.NoError(t, err)
			assert.Equal(t, size, n)
		})
	}
	all.Wait()
	ended(t, term)
	_, got, _ := strings.Cut(output(t, term), "ready\n")
	got = strings.TrimSuffix(got, "end\n")
	require.Len(t, got, writers*size)
	runs := 1
	for i := range len(got) - 1 {
		if got[i] != got[i+1] {
			runs++
		}
	}
	assert.Equal(t, writers, runs, "they were mixed")
}

func TestAProgramThatDoesNotReadIsAnErrorWithTheCount(t *testing.T) {
	r := open(t, &terminal.Options{WritePatience: 50 * time.Millisecond})
	term := startSpec(t, r, terminal.Spec{Line: "stty raw -echo; echo ready; read -rsN1 -d '' x <&0; sleep 1000"})
	see(t, term, "ready")
	n, err := term.Write(make([]byte, 1<<20))
	require.ErrorIs(t, err, terminal.ErrNotRead)
	assert.Positive(t, n)
	assert.Less(t, n, 1<<20)
	require.ErrorContains(t, err, fmt.Sprintf("it took %d of %d bytes in 50ms", n, 1<<20))
	require.NoError(t, term.Close(), "it is full, and can be closed")
	_, err = term.Write([]byte("x"))
	require.ErrorIs(t, err, terminal.ErrEnded)
	require.ErrorContains(t, err, "it is cancelled")
}

func TestALineThatTheKernelWouldCutIsRefused(t *testing.T) {
	term := startSpec(t, open(t, nil), terminal.Spec{Line: "stty -echo; echo ready; while read -r line; do echo ${#line}; done"})
	see(t, term, "ready")
	n, err := term.Write([]byte("short\n" + strings.Repeat("x", 4096) + "\n"))
	require.ErrorIs(t, err, terminal.ErrLineTooLong)
	require.ErrorContains(t, err, "4096 bytes, where it takes 4095")
	assert.Zero(t, n)
	n, err = term.Write([]byte(strings.Repeat("x", 4095) + "\n" + strings.Repeat("y", 4094) + "\r"))
	require.NoError(t, err)
	assert.Equal(t, 4096+4095, n)
	see(t, term, "4095\n4094")
	assert.NotContains(t, output(t, term), "\n5\r\n", "something of what was refused was typed")
}

func TestAResizeIsSeenByTheProgramAndByTheScreen(t *testing.T) {
	r := open(t, nil)
	// A signal that comes just before the read is trapped only behind it.
	term := startSpec(t, r, terminal.Spec{Line: `trap 'stty size' WINCH; echo ready; while :; do read -r -t 0.1 x; done`})
	see(t, term, "ready")
	require.NoError(t, term.Resize(terminal.Size{Cols: 132, Rows: 50}))
	s := see(t, term, "50 132")
	assert.Equal(t, terminal.Size{Cols: 132, Rows: 50}, s.Size)
	assert.Equal(t, s.Size, term.Info().Size)
	for _, size := range []terminal.Size{{}, {Cols: -1, Rows: 1}, {Cols: 1, Rows: 0}, {Cols: 1001, Rows: 1}, {Cols: 1 << 16, Rows: 1 << 16}} {
		require.ErrorIs(t, term.Resize(size), terminal.ErrSize)
	}
	require.NoError(t, term.Close())
	require.ErrorIs(t, term.Resize(terminal.DefaultSize), terminal.ErrEnded)
	assert.Equal(t, s.Size, term.Info().Size, "the size at the end")
}

func TestASignalGoesToTheForegroundAlone(t *testing.T) {
	term := bash(t, open(t, nil))
	send(t, term, "sleep 1000 & bash -c 'trap \"echo got it\" USR1; echo ready; while :; do sleep 0.01; done'", "Enter")
	see(t, term, `(?m)^ready$`)
	require.NoError(t, term.Signal(syscall.SIGUSR1))
	// The shell in front of it would die of it, and the job, too.
	see(t, term, `(?m)got it$`)
	require.NoError(t, term.Signal(syscall.SIGKILL))
	see(t, term, `Killed`)
	send(t, term, "jobs; kill %1", "Enter")
	see(t, term, `\[1\].*Running +sleep 1000`)
	require.NoError(t, term.Close())
	require.ErrorIs(t, term.Signal(syscall.SIGTERM), terminal.ErrEnded)
}

func TestAPasteIsMarkedWhereTheProgramAsksForIt(t *testing.T) {
	r := open(t, nil)
	for _, marked := range []bool{false, true} {
		on := ""
		if marked {
			on = `printf '\033[?2004h'; `
		}
		term := startSpec(t, r, terminal.Spec{Line: "stty raw -echo; " + on + "echo ready; head -c 3 | cat -v; head -c 12 | cat -v; echo end"})
		see(t, term, "ready")
		require.NoError(t, term.Send(keys.Paste("a\nb"), keys.Text("............")))
		ended(t, term)
		assert.Equal(t, marked, strings.Contains(output(t, term), "^[[200~a^Mb^[[20"), output(t, term))
	}
}

func TestWhatProgramsAskTheirTerminalIsAnswered(t *testing.T) {
	term := startSpec(t, open(t, nil), terminal.Spec{
		Line: `stty raw -echo; printf 'ab\r\ncd\033[6n'; IFS= read -rsd R a; printf '\033[c'; IFS= read -rsd c b; printf '\033[18t'; IFS= read -rsd t c; printf '%q %q %q end' "$a" "$b" "$c"`,
	})
	ended(t, term)
	assert.Contains(t, output(t, term), `$'\E[2;3' $'\E[?62;22' $'\E[8;24;80' end`)
}

// Vim asks so, to see how wide a character is, and goes on printing: with another answer it is wrong, or takes that for F3.
func TestTheCursorIsWhereItStoodWhenItWasAskedFor(t *testing.T) {
	term := startSpec(t, open(t, nil), terminal.Spec{
		Line: `stty raw -echo; printf 'ab\033[6ncd\r\n\033[5n\033[6n\033[10;7H\033[?6n\033[H\033[c'; IFS= read -rsd c a; printf '%q end' "$a"`,
	})
	ended(t, term)
	assert.Contains(t, output(t, term), `$'\E[1;3R\E[0n\E[2;1R\E[?10;7R\E[?62;22' end`)
}

// Who asks and does not read must not hold up what it prints.
func TestAFloodOfQuestionsHoldsNothingUp(t *testing.T) {
	term := startSpec(t, open(t, nil), terminal.Spec{Line: `stty raw -echo; for ((i = 0; i < 20000; i++)); do printf '\033[6n\033[c\033[18t'; done; echo end`})
	info := ended(t, term)
	assert.Equal(t, terminal.Succeeded, info.State)
	assert.Equal(t, "end", info.LastLine)
}

func TestAnErrorNamesTheTerminal(t *testing.T) {
	r := open(t, nil)
	term := startSpec(t, r, terminal.Spec{Line: "exit 3"})
	ended(t, term)
	_, err := term.Write([]byte("x"))
	require.EqualError(t, err, fmt.Sprintf(`terminal: write %q: the program has ended; it is failed: exit 3`, term.ID()))
	failure, ok := errors.AsType[*terminal.Error](err)
	require.True(t, ok)
	assert.Equal(t, term.ID(), failure.ID)
}
