package main

import (
	"context"
	"fmt"
	"time"
)

// The sides that the others are compared with.
const (
	limpetName  = "limpet"
	bashName    = "bash -c"
	bareName    = "bare pipe (the floor)"
	sessionName = "bare pipe, bash in a session of its own"
)

// entrant is a side in a contest: once does the thing once and says how long
// the part that counts took.
type entrant struct {
	name string
	once func(context.Context) (time.Duration, error)
}

// rules say how a contest is held.
type rules struct {
	rounds int
	batch  int           // how often an entrant may go in a round
	slice  time.Duration // when it must stop before that
	pause  time.Duration // before each batch
}

// The usual rules. A batch is short, so that whatever else happens on the
// machine happens to all sides. The pause lets a side finish what it does
// after a command, such as limpet's saving of the state, at its own cost.
func (b *bench) usual(rounds int) rules {
	return rules{rounds: b.some(rounds), batch: 25, slice: 12 * time.Millisecond, pause: 4 * time.Millisecond}
}

// contest lets the entrants go in turn, in small batches, and returns the
// samples of each. The order rotates, and the first go of each batch does not
// count: it finds the caches as another side left them.
func (b *bench) contest(workload, script string, r rules, entrants []entrant) ([]series, error) {
	all := make([]series, len(entrants))
	for i, e := range entrants {
		all[i] = series{Workload: workload, Script: script, Side: e.name}
	}
	for round := range r.rounds {
		for i := range entrants {
			i = (i + round) % len(entrants)
			time.Sleep(r.pause)
			if err := b.batch(r, entrants[i], &all[i]); err != nil {
				return nil, fmt.Errorf("%s: %w", entrants[i].name, err)
			}
		}
	}
	b.report.Series = append(b.report.Series, all...)
	return all, nil
}

func (b *bench) batch(r rules, e entrant, s *series) error {
	began := time.Now()
	warm := r.batch > 1
	for n := 0; n < r.batch && (n == 0 || time.Since(began) < r.slice); {
		if b.ctx.Err() != nil {
			return context.Cause(b.ctx)
		}
		took, err := e.once(b.ctx)
		if err != nil {
			return err
		}
		if warm {
			warm = false
			if took < r.slice { // Else caches are not what it is about.
				continue
			}
		}
		s.Samples = append(s.Samples, took)
		n++
	}
	return nil
}

// contestOf opens the sides and has each of them run the script.
func (b *bench) contestOf(workload, script string, r rules, sides ...side) ([]series, error) {
	return b.contestIn(b.files, workload, script, r, sides...)
}

// contestIn is contestOf in the directory dir.
func (b *bench) contestIn(dir, workload, script string, r rules, sides ...side) ([]series, error) {
	var entrants []entrant
	for _, s := range sides {
		if err := s.open(b, dir); err != nil {
			return nil, fmt.Errorf("%s: %w", s.name(), err)
		}
		defer s.close() // What it says afterwards changes no sample.
		entrants = append(entrants, entrant{s.name(), timed(s, script, 0)})
	}
	return b.contest(workload, script, r, entrants)
}

// timed runs the script on the side. It must succeed, with as much output as
// is wanted: a side that is fast because it fails would win.
func timed(s side, script string, want int64) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		began := time.Now()
		out, err := s.run(ctx, script)
		took := time.Since(began)
		if err == nil && (out.code != 0 || out.total != want) {
			err = fmt.Errorf("%q: exit code %d, %d bytes of output, not %d", script, out.code, out.total, want)
		}
		return took, err
	}
}
