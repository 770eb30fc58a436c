package main

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/testenv/container"
	"github.com/limpet-sh/limpet/remote"
)

// manyRemote has sessions in many containers at once, and looks what this program has of them.
func (b *bench) manyRemote() error {
	const (
		most    = 20
		perHost = 10
	)
	program, err := b.limpet()
	if err != nil {
		return err
	}
	before := b.env
	var e *container.Engine
	var names []string
	for _, engine := range b.engines() {
		one, name, err := b.container(engine, program)
		if err != nil {
			return err
		}
		if one != nil {
			e, names = one, []string{name}
			break
		}
	}
	if e == nil {
		return nil // That is noted.
	}
	n := b.some(most)
	hosts := make([]*remote.Host, n)
	defer func() {
		for _, h := range hosts {
			if h != nil {
				_ = h.Close() // The containers go.
			}
		}
		for _, name := range names {
			_ = e.Remove(name) // As above.
		}
		_ = e.Close()
		b.env = before
	}()
	for len(names) < n {
		name := names[0] + "-" + strconv.Itoa(len(names))
		if err := e.Run(name); err != nil {
			return err
		}
		names = append(names, name)
	}

	debug.FreeOSMemory()
	rss, files := statusField("VmRSS:"), len(descriptors())
	began := time.Now()
	errs := together(n, func(i int) (err error) {
		hosts[i], err = (&remote.Dialer{Executable: program}).Dial(b.ctx, e.Name+"://"+names[i])
		return err
	})
	reached := time.Since(began)
	if errs != nil {
		return errs
	}
	sessions := make([]*remote.Session, n*perHost)
	began = time.Now()
	errs = together(len(sessions), func(i int) (err error) {
		if sessions[i], err = hosts[i%n].Open(b.ctx, "s"+strconv.Itoa(i/n), nil); err == nil {
			_, err = sessions[i].Run(b.ctx, "x="+strconv.Itoa(i))
		}
		return err
	})
	opened := time.Since(began)
	if errs != nil {
		return errs
	}
	began = time.Now()
	errs = together(len(sessions), func(i int) error {
		res, err := sessions[i].Run(b.ctx, "echo $x")
		if want := strconv.Itoa(i) + "\n"; err == nil && res.Stdout.String() != want {
			err = fmt.Errorf("session %d says %q", i, res.Stdout.String())
		}
		return err
	})
	ran := time.Since(began)
	if errs != nil {
		return errs
	}
	debug.FreeOSMemory()
	rss, files = statusField("VmRSS:")-rss, len(descriptors())-files
	what := fmt.Sprintf("%d sessions in %d containers of %s, of one program", len(sessions), n, e.Name)
	b.report.fact(what, fmt.Sprintf("reached and limpet brought in %s, opened in %s, a command in each at once in %s", show(reached), show(opened), show(ran)), "", true)
	b.report.fact(what, fmt.Sprintf("%.0f KB of the program's memory and %.1f descriptors a container; each has an exec of the engine's client besides", float64(rss)/1e3/float64(n), float64(files)/float64(n)), "", true)
	return nil
}

// together does it for all numbers below n, all at once.
func together(n int, do func(i int) error) error {
	errs := make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { errs[i] = do(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}
