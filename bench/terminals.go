package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/creack/pty"

	"github.com/limpet-sh/limpet/terminal"
)

// ptyName is what terminals are compared with: a process of the program's own on a terminal,
// which it reads and writes itself. Nobody else can look at it, there is no screen, and what
// was read is gone.
const ptyName = "os/exec and creack/pty"

// withTerminals has something done with a registry, and closes it: that ends its terminals.
func (b *bench) withTerminals(most int, do func(*terminal.Registry) error) error {
	dir, err := durable()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // Best effort: it is a temporary directory.
	return b.withTerminalsIn(dir, most, do)
}

func (b *bench) withTerminalsIn(dir string, most int, do func(*terminal.Registry) error) error {
	r, err := terminal.Open(filepath.Join(dir, "terminals"), &terminal.Options{Env: b.terminalEnv(), MaxRunning: most})
	if err != nil {
		return err
	}
	return errors.Join(do(r), r.Close())
}

// terminalEnv is what all programs on terminals get.
func (b *bench) terminalEnv() []string {
	return append(b.env[:len(b.env):len(b.env)], "TERM=xterm-256color")
}

// plainTerminal is a process on a terminal.
type plainTerminal struct {
	cmd    *exec.Cmd
	master *os.File
}

func (b *bench) startPlain(argv ...string) (plainTerminal, error) {
	cmd := exec.Command(argv[0], argv[1:]...) // A context would cost it a goroutine.
	cmd.Env = b.terminalEnv()
	master, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: uint16(terminal.DefaultSize.Cols), Rows: uint16(terminal.DefaultSize.Rows)})
	return plainTerminal{cmd, master}, err
}

// close hangs up, which ends those that are used here, and waits.
func (p plainTerminal) close() {
	_ = p.master.Close() // All was read that is wanted.
	_ = p.cmd.Wait()     // It may have been hung up on.
}

// terminalStart measures the time until the first byte that a program on a terminal prints
// is there, and the time that it takes to close a terminal.
func (b *bench) terminalStart() error {
	return b.withTerminals(0, func(r *terminal.Registry) error {
		return b.withTerminalsIn(b.files, 0, func(there *terminal.Registry) error {
			all, err := b.contest("first byte of a terminal", "echo hi", b.usual(80), []entrant{
				{limpetName, firstByteOfTerminal(r)},
				{"limpet, terminals where limpet has its sessions", firstByteOfTerminal(there)},
				{ptyName, b.firstByteOfPlain},
			})
			if err != nil {
				return err
			}
			limpet, other, plain := all[0], all[1], all[2]
			b.report.note("terminals are on %s, as they are by default", fileSystem(r.Dir()))
			b.report.compare([]series{limpet, plain})
			if where := fileSystem(there.Dir()); where != fileSystem(r.Dir()) { // Where a sync costs something else.
				other.Workload, other.Side = "first byte of a terminal, terminals on "+where, limpetName
				b.report.compare([]series{other, plain})
			}
			return b.terminalClose(r)
		})
	})
}

// greeting is what the terminal makes of it. The kernel may give it in parts.
var greeting = []byte("hi\r\n")

func firstByteOfTerminal(r *terminal.Registry) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		t, err := r.Start(ctx, terminal.Spec{Argv: []string{"/bin/echo", "hi"}})
		if err != nil {
			return 0, err
		}
		v, err := t.Attach(0)
		if err != nil {
			return 0, err
		}
		c, err := v.Next(ctx)
		took := time.Since(began)
		<-t.Done()
		if err == nil && !bytes.HasPrefix(greeting, c.Data) {
			err = fmt.Errorf("%q, not %q", c.Data, greeting)
		}
		return took, errors.Join(err, r.Forget(t.ID()))
	}
}

func (b *bench) firstByteOfPlain(context.Context) (time.Duration, error) {
	began := time.Now()
	p, err := b.startPlain("/bin/echo", "hi")
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64)
	n, err := p.master.Read(buf)
	took := time.Since(began)
	p.close()
	if err == nil && !bytes.HasPrefix(greeting, buf[:n]) {
		err = fmt.Errorf("%q, not %q", buf[:n], greeting)
	}
	return took, err
}

// terminalClose measures the end of a program that hangs up, with all that it has started:
// whoever only closes the terminal knows nothing of those.
func (b *bench) terminalClose(r *terminal.Registry) error {
	all, err := b.contest("a terminal, closed", "cat", b.usual(80), []entrant{
		{limpetName, func(ctx context.Context) (time.Duration, error) {
			t, err := r.Start(ctx, terminal.Spec{Argv: []string{"cat"}})
			if err != nil {
				return 0, err
			}
			began := time.Now()
			err = t.Close()
			took := time.Since(began)
			return took, errors.Join(err, r.Forget(t.ID()))
		}},
		{ptyName, func(context.Context) (time.Duration, error) {
			p, err := b.startPlain("cat")
			if err != nil {
				return 0, err
			}
			began := time.Now()
			p.close()
			return time.Since(began), nil
		}},
	})
	if err == nil {
		b.report.compare(all)
	}
	return err
}

// echoing prints each byte that it gets, and its terminal none.
const echoing = "stty raw -echo; printf ready; exec cat"

// terminalEcho measures the time from a key to what the program prints for it.
func (b *bench) terminalEcho() error {
	return b.withTerminals(0, func(r *terminal.Registry) error {
		t, err := r.Start(b.ctx, terminal.Spec{Line: echoing})
		if err != nil {
			return err
		}
		w, err := t.Wait(b.ctx, terminal.WaitOptions{Text: "ready", Timeout: echoPatience})
		if err != nil || w.Reason != terminal.WaitMatched {
			return fmt.Errorf("it does not begin: %v: %w", w.Reason, err)
		}
		v, err := t.Attach(terminal.Now)
		if err != nil {
			return err
		}
		p, err := b.startPlain(b.bash, "--noprofile", "--norc", "-c", echoing)
		if err != nil {
			return err
		}
		defer p.close()
		buf := make([]byte, len("ready"))
		if _, err := io.ReadFull(p.master, buf); err != nil {
			return err
		}
		all, err := b.contest("a key, until its echo is there", echoing, b.usual(80), []entrant{
			{limpetName, func(ctx context.Context) (time.Duration, error) {
				began := time.Now()
				if _, err := t.Write([]byte("x")); err != nil {
					return 0, err
				}
				c, err := v.Next(ctx)
				took := time.Since(began)
				if err == nil && string(c.Data) != "x" {
					err = fmt.Errorf("%q", c.Data)
				}
				return took, err
			}},
			{ptyName, func(context.Context) (time.Duration, error) {
				began := time.Now()
				if _, err := p.master.Write([]byte("x")); err != nil {
					return 0, err
				}
				n, err := p.master.Read(buf)
				took := time.Since(began)
				if err == nil && string(buf[:n]) != "x" {
					err = fmt.Errorf("%q", buf[:n])
				}
				return took, err
			}},
		})
		if err != nil {
			return err
		}
		b.report.compare(all)
		return b.terminalWait(t)
	})
}

// terminalWait measures the time from keys to the end of a wait for what they bring to the
// screen.
func (b *bench) terminalWait(t *terminal.Terminal) error {
	n := 0
	r := b.usual(40)
	r.slice = 100 * time.Millisecond // A wait takes its time, so that a picture can be drawn.
	all, err := b.contest("keys, until a wait has found their text", echoing, r, []entrant{
		{limpetName, func(ctx context.Context) (time.Duration, error) {
			n++
			text := fmt.Sprintf("<%d>", n)
			from := t.Info().Bytes
			began := time.Now()
			if _, err := t.Write([]byte("\r" + text)); err != nil {
				return 0, err
			}
			w, err := t.Wait(ctx, terminal.WaitOptions{Text: text, From: from, Timeout: echoPatience})
			took := time.Since(began)
			if err == nil && w.Reason != terminal.WaitMatched {
				err = fmt.Errorf("%s: %s", text, w.Reason)
			}
			return took, err
		}},
	})
	if err == nil {
		b.report.fact("keys, until a wait has found their text", fmt.Sprintf("%s; the slowest %s: a screen that changes is looked at after 1 ms, and up to every 20 ms",
			show(median(all[0].Samples)), show(slices.Max(all[0].Samples))), "", true)
	}
	return err
}

// loud is a program that prints as fast as its terminal takes it, from its first line of
// input on.
func loud(size int64) string {
	return fmt.Sprintf("read -r; yes 'one line of output, as programs print them' | head -c %d", size)
}

// lookEvery is how often somebody looks at the screen of a loud program.
const lookEvery = 50 * time.Millisecond

// terminalLoud measures how fast a program can print, and what those cost it who watch.
func (b *bench) terminalLoud() error {
	size := int64(b.some(32)) * megabyte
	rounds := rules{rounds: 10, batch: 1, pause: 20 * time.Millisecond}
	if b.quick {
		rounds.rounds = 3
	}
	return b.withTerminals(0, func(r *terminal.Registry) error {
		one, hundred := &watchers{count: 1}, &watchers{count: 100}
		looking := &watchers{look: lookEvery}
		what := fmt.Sprintf("%d MB on a terminal", size/megabyte)
		all, err := b.contest(what, loud(size), rounds, []entrant{
			{limpetName, b.loudTerminal(r, size, &watchers{})},
			{"limpet, a viewer", b.loudTerminal(r, size, one)},
			{"limpet, 100 viewers", b.loudTerminal(r, size, hundred)},
			{"limpet, the screen looked at every 50 ms", b.loudTerminal(r, size, looking)},
			{ptyName, b.loudPlain(size)},
		})
		if err != nil {
			return err
		}
		plain := all[len(all)-1]
		b.report.compare([]series{all[0], plain})
		for _, s := range all[1 : len(all)-1] {
			s.Workload, s.Side = what+s.Side[len(limpetName):], limpetName
			b.report.compare([]series{s, plain})
		}
		rate := func(s series) float64 { return float64(size) / megabyte / median(s.Samples).Seconds() }
		b.report.fact(what, fmt.Sprintf("%.0f MB/s; a read loop %.0f MB/s", rate(all[0]), rate(plain)), "", true)
		b.report.fact(what+": missed", fmt.Sprintf("by one viewer %s, by each of 100 %s; the screen was looked at every %s",
			one.missing(), hundred.missing(), show(lookEvery)), "", true)
		return nil
	})
}

// watchers are who follows a loud program.
type watchers struct {
	count        int
	look         time.Duration // 0 is never
	seen, missed atomic.Int64
}

// missing is what they have not got, as a share.
func (w *watchers) missing() string {
	return digits(100*float64(w.missed.Load())/float64(max(w.seen.Load()+w.missed.Load(), 1))) + "%"
}

// follow begins at once. It ends with the program.
func (w *watchers) follow(ctx context.Context, t *terminal.Terminal, all *sync.WaitGroup) error {
	for range w.count {
		v, err := t.Attach(0)
		if err != nil {
			return err
		}
		all.Go(func() {
			for {
				c, err := v.Next(ctx)
				if err != nil {
					return
				}
				w.seen.Add(int64(len(c.Data)))
				w.missed.Add(c.Missed)
			}
		})
	}
	if w.look > 0 {
		all.Go(func() {
			tick := time.NewTicker(w.look)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					_, _ = t.Screen() // It is there as long as the terminal is.
				case <-t.Done():
					return
				}
			}
		})
	}
	return nil
}

// loudTerminal times a loud program from its first byte to its end.
func (b *bench) loudTerminal(r *terminal.Registry, size int64, w *watchers) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		t, err := r.Start(ctx, terminal.Spec{Line: loud(size)})
		if err != nil {
			return 0, err
		}
		var all sync.WaitGroup
		defer all.Wait()
		if err := w.follow(ctx, t, &all); err != nil {
			return 0, err
		}
		began := time.Now()
		if _, err := t.Write([]byte("\r")); err != nil {
			return 0, err
		}
		<-t.Done()
		took := time.Since(began)
		if info := t.Info(); info.Bytes < size { // There is a carriage return at each newline.
			return 0, fmt.Errorf("%d bytes of output, not %d: %v", info.Bytes, size, info.Exit)
		}
		return took, r.Forget(t.ID())
	}
}

func (b *bench) loudPlain(size int64) func(context.Context) (time.Duration, error) {
	buf := make([]byte, 64<<10)
	return func(context.Context) (time.Duration, error) {
		p, err := b.startPlain(b.bash, "--noprofile", "--norc", "-c", loud(size))
		if err != nil {
			return 0, err
		}
		defer p.master.Close() // It was read to its end.
		began := time.Now()
		if _, err := p.master.Write([]byte("\r")); err != nil {
			return 0, err
		}
		total, lines := int64(0), 0
		for {
			n, err := p.master.Read(buf)
			total += int64(n)
			lines += bytes.Count(buf[:n], []byte{'\n'}) // Limpet knows them, too.
			if err != nil {
				break // EIO: all who had the terminal are gone.
			}
		}
		err = p.cmd.Wait()
		took := time.Since(began)
		if err == nil && (total < size || lines == 0) {
			err = fmt.Errorf("%d bytes of output, not %d", total, size)
		}
		return took, err
	}
}
