package terminal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

// What these are compared with is in package bench, but for what is called plain here: the
// loop that a program would have that wants nothing but to read.

const (
	loudSize = 16 << 20 // without the carriage returns
	loudLine = "yes 'one line of output, as programs print them' | head -c %d"
)

func BenchmarkLoud(b *testing.B) {
	for _, test := range []struct {
		name    string
		viewers int
		look    time.Duration
	}{
		{"unseen", 0, 0}, {"one viewer", 1, 0}, {"100 viewers", 100, 0}, {"looked at", 0, 50 * time.Millisecond},
	} {
		b.Run(test.name, func(b *testing.B) { loud(b, test.viewers, test.look) })
	}
	b.Run("plain", func(b *testing.B) { plainLoud(b, 0) })
	// What 100 viewers may cost: the processor's time.
	b.Run("plain beside 100 busy goroutines", func(b *testing.B) { plainLoud(b, 100) })
}

func loud(b *testing.B, viewers int, look time.Duration) {
	r := open(b, &terminal.Options{KeepEnded: 1})
	b.SetBytes(loudSize)
	var seen, missed, looks atomic.Int64
	for b.Loop() {
		term := startSpec(b, r, terminal.Spec{Line: "read -r; " + fmt.Sprintf(loudLine, loudSize)})
		var all sync.WaitGroup
		for range viewers {
			v, err := term.Attach(0)
			require.NoError(b, err)
			all.Go(func() {
				for {
					c, err := v.Next(context.Background())
					if err != nil {
						return // It has ended.
					}
					seen.Add(int64(len(c.Data)))
					missed.Add(c.Missed)
				}
			})
		}
		if look > 0 {
			all.Go(func() {
				tick := time.NewTicker(look)
				defer tick.Stop()
				for {
					select {
					case <-tick.C:
						_, _ = term.Screen() // It may have left memory.
						looks.Add(1)
					case <-term.Done():
						return
					}
				}
			})
		}
		_, err := term.Write([]byte("\r"))
		require.NoError(b, err)
		<-term.Done()
		all.Wait()
		terminal.Retire(term)
	}
	if viewers > 0 {
		b.ReportMetric(100*float64(missed.Load())/float64(seen.Load()+missed.Load()), "%missed")
	}
	if look > 0 {
		b.ReportMetric(float64(looks.Load())/float64(b.N), "looks/op")
	}
}

func plainLoud(b *testing.B, busy int) {
	b.SetBytes(loudSize)
	done := make(chan struct{})
	var all sync.WaitGroup
	for range busy {
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				if n%100 == 0 {
					runtime.Gosched() // As who waits for the next output.
				}
			}
		})
	}
	buf := make([]byte, 64<<10)
	for b.Loop() {
		cmd := exec.Command("bash", "--noprofile", "--norc", "-c", "read -r; "+fmt.Sprintf(loudLine, loudSize))
		master, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 80, Rows: 24})
		require.NoError(b, err)
		_, err = master.Write([]byte("\r"))
		require.NoError(b, err)
		for err == nil {
			_, err = master.Read(buf) // In the end it is EIO.
		}
		require.NoError(b, errors.Join(cmd.Wait(), master.Close()))
	}
	close(done)
	all.Wait()
}

// echoing is a program that prints each byte that it gets, and its terminal none.
const echoing = "stty raw -echo; echo ready; exec cat"

func BenchmarkKeyToEcho(b *testing.B) {
	b.Run("to a viewer", func(b *testing.B) {
		term := startSpec(b, open(b, nil), terminal.Spec{Line: echoing})
		see(b, term, "ready")
		v, err := term.Attach(terminal.Now)
		require.NoError(b, err)
		b.ReportAllocs()
		for b.Loop() {
			_, err := term.Write([]byte("x"))
			require.NoError(b, err)
			_, err = v.Next(context.Background())
			require.NoError(b, err)
		}
	})
	b.Run("plain", func(b *testing.B) {
		cmd := exec.Command("bash", "--noprofile", "--norc", "-c", echoing)
		master, err := pty.Start(cmd)
		require.NoError(b, err)
		buf := make([]byte, len("ready\n")) // A raw terminal adds no carriage return.
		_, err = io.ReadFull(master, buf)
		require.NoError(b, err)
		for b.Loop() {
			_, err := master.Write([]byte("x"))
			require.NoError(b, err)
			_, err = master.Read(buf)
			require.NoError(b, err)
		}
		require.NoError(b, master.Close())
		_ = cmd.Wait() // It was hung up on.
	})
}

func BenchmarkKeyToWait(b *testing.B) {
	term := startSpec(b, open(b, nil), terminal.Spec{Line: echoing})
	see(b, term, "ready")
	for n := 0; b.Loop(); n++ {
		text := fmt.Sprintf("<%d>", n)
		from := term.Info().Bytes
		_, err := term.Write([]byte("\r" + text))
		require.NoError(b, err)
		w := wait(b, term, terminal.WaitOptions{Text: text, From: from})
		require.Equal(b, terminal.WaitMatched, w.Reason)
	}
}

func BenchmarkStartAndEnd(b *testing.B) {
	r := open(b, &terminal.Options{Grace: 1, KeepEnded: 1})
	b.ReportAllocs()
	for b.Loop() {
		<-start(b, r, "true").Done()
	}
}

func BenchmarkStartAndClose(b *testing.B) {
	r := open(b, &terminal.Options{Grace: 1, KeepEnded: 1})
	b.ReportAllocs()
	for b.Loop() {
		require.NoError(b, start(b, r, "cat").Close())
	}
}

// All of a registry are closed at the same time.
func BenchmarkCloseOfAHundred(b *testing.B) {
	const count = 100
	for b.Loop() {
		b.StopTimer()
		r, err := terminal.Open(filepath.Join(b.TempDir(), "terminals"), nil)
		require.NoError(b, err)
		for range count {
			start(b, r, "sleep", "1000")
		}
		b.StartTimer()
		require.NoError(b, r.Close())
	}
}

func BenchmarkScreen(b *testing.B) {
	term := startSpec(b, open(b, nil), terminal.Spec{Line: "seq 1000; read -r"})
	see(b, term, "(?m)^1000$")
	b.ReportAllocs()
	for b.Loop() {
		_, err := term.Screen()
		require.NoError(b, err)
	}
}

func BenchmarkInfo(b *testing.B) {
	term := startSpec(b, open(b, nil), terminal.Spec{Line: "seq 1000; read -r"})
	testenv.Await(b, "the output", func() bool { return term.Info().LastLine == "1000" })
	b.ReportAllocs()
	for b.Loop() {
		term.Info()
	}
}

// A look at who reads the terminal, as the first Info after something new has one.
func BenchmarkInfoThatLooks(b *testing.B) {
	testenv.NeedProc(b)
	term := startSpec(b, open(b, nil), terminal.Spec{Line: "read -r"})
	testenv.Await(b, "the reader", func() bool { return term.Info().Waits != nil })
	b.ReportAllocs()
	for b.Loop() {
		terminal.LookAnew(term)
		require.NotNil(b, term.Info().Waits)
	}
}
