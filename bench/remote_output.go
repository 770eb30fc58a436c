package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/limpet-sh/limpet/command"
)

// remoteOutput measures how fast the output of a command comes over ssh, and how long a builtin beside it takes, with and without a
// link that takes time.
func (b *bench) remoteOutput() error {
	program, err := b.limpet()
	if err != nil {
		return err
	}
	ways := []time.Duration{0, b.linkTime()}
	if b.smoke {
		ways = ways[1:]
	}
	for _, way := range ways {
		d, err := b.startSSHD(way)
		if d == nil {
			return err
		}
		where := ", over ssh"
		if way > 0 {
			where += fmt.Sprintf(", %v there and back", way)
		}
		err = b.outputOver(d, program, where)
		d.close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) outputOver(d *sshServer, program, where string) error {
	// Limpet keeps 16 MiB for a reader that is slower than the command. Of more a part would be missed, on a slow link.
	size := int64(b.some(15)) * megabyte
	file := filepath.Join(d.dir, "file")
	if err := writeRandom(file, size); err != nil {
		return err
	}
	script := "cat " + file
	limpet, cat := &streamSide{remoteSide: remoteSide{target: d.target(), executable: program}}, &catSide{d.ssh}
	one := &byteSide{d: d}
	for _, s := range []side{limpet, one} {
		if err := s.open(b, b.files); err != nil {
			return fmt.Errorf("%s: %w", s.name(), err)
		}
		defer s.close() // What it says afterwards changes no sample.
	}
	r := rules{rounds: b.some(40), batch: 1, pause: 20 * time.Millisecond}
	what := fmt.Sprintf("%d MB of output as it comes%s", size/megabyte, where)
	all, err := b.contest(what, script, r, []entrant{{limpetName, streamed(limpet.stream, script, size)}, {catName, streamed(cat.stream, script, size)}})
	if err != nil {
		return err
	}
	b.report.compare(all, within(catName, 1.25))

	// One byte's way without anything beside it is what the link takes.
	idle, err := b.contest("a byte there and back"+where, "", b.usual(20), []entrant{{byteName, timed(one, "", 0)}})
	if err != nil {
		return err
	}
	second, err := limpet.h.Open(b.ctx, "beside", nil)
	if err != nil {
		return err
	}
	defer second.Close() // What was measured holds.
	quiet := &remoteSide{h: limpet.h, s: second}
	beside, err := b.beside(streamed(limpet.stream, script, size), timed(quiet, "true", 0))
	if err != nil {
		return err
	}
	bytes, err := b.beside(streamed(cat.stream, script, size), timed(one, "", 0))
	if err != nil {
		return err
	}
	alone, most := median(idle[0].Samples), median(beside)
	b.report.fact("`true` beside much output"+where,
		fmt.Sprintf("%s, the slowest of %d %s; a byte takes %s there and back, and beside an `ssh cat` %s", show(most), len(beside), show(slices.Max(beside)), show(alone), show(median(bytes))),
		"under two round trips", most < 2*alone)
	return nil
}

// beside has loud go on all the time, and returns how long quiet takes meanwhile.
func (b *bench) beside(loud, quiet func(context.Context) (time.Duration, error)) ([]time.Duration, error) {
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	failed := make(chan error, 1)
	began := make(chan struct{})
	go func() {
		var err error
		close(began)
		for err == nil && ctx.Err() == nil {
			_, err = loud(b.ctx)
		}
		failed <- err
	}()
	<-began
	var took []time.Duration
	for range b.some(100) {
		one, err := quiet(b.ctx)
		if err != nil {
			return nil, err // What is loud ends with its side.
		}
		took = append(took, one)
	}
	stop()
	return took, <-failed
}

// writeRandom writes a file that nothing on its way makes smaller.
func writeRandom(name string, size int64) error {
	random, err := os.Open("/dev/urandom")
	if err != nil {
		return err
	}
	defer random.Close() // It was read from.
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if _, err = io.CopyN(f, random, size); err != nil {
		return err
	}
	return f.Close()
}

// stream runs a script and writes what comes.
type stream func(ctx context.Context, script string, to io.Writer) error

// streamed measures a stream from its first byte to its last: what a fresh ssh takes before that is measured by true. All of it must
// have come.
func streamed(s stream, script string, size int64) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		var c arrived
		if err := s(ctx, script, &c); err != nil {
			return 0, err
		}
		if c.n != size {
			return 0, fmt.Errorf("%q: %d bytes came, not %d", script, c.n, size)
		}
		return c.last.Sub(c.first), nil
	}
}

// arrived is a Writer that counts, and knows when its first and its last bytes came.
type arrived struct {
	n           int64
	first, last time.Time
}

func (c *arrived) Write(p []byte) (int, error) {
	c.last = time.Now()
	if c.n == 0 {
		c.first = c.last
	}
	c.n += int64(len(p))
	return len(p), nil
}

// streamSide is a session on another machine whose output is written as it comes.
type streamSide struct{ remoteSide }

func (s *streamSide) stream(ctx context.Context, script string, to io.Writer) error {
	_, err := s.s.Do(ctx, command.Request{Script: script, Stdout: to})
	return err
}

const catName = "ssh cat, a shared connection"

// catSide is a fresh ssh, over a connection that is shared.
type catSide struct{ ssh string }

func (s *catSide) stream(ctx context.Context, script string, to io.Writer) error {
	cmd := exec.CommandContext(ctx, s.ssh, "there", script)
	cmd.Stdout = to
	return cmd.Run()
}
