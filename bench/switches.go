package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// switches counts how often the kernel switches away from a thread of this program, and
// from bash, for each command. Each is a wait, and a wake-up after it: that is what a
// command costs on a machine that has other things to do.
func (b *bench) switches() error { return b.countSwitches("") }

// mostSwitches are the targets for this program, for one command of an idle machine.
var mostSwitches = map[string]float64{"true": 4, "/bin/true": 6}

// countSwitches compares limpet with bare pipes. The sides take turns, and go through
// their commands without a pause: a sleep of the loop itself would be a switch too.
// Where says what else the machine does; empty means nothing, and that the targets hold.
func (b *bench) countSwitches(where string) error {
	if _, err := switchesOf("self"); err != nil {
		b.report.note("left out: context switches (%v)", err)
		return nil
	}
	for _, script := range []string{"true", "/bin/true"} {
		sides := []*counted{{side: &limpetSide{}}, {side: &bareSide{}}, {side: &bareSide{session: true}}}
		for _, s := range sides {
			if err := s.open(b, b.files); err != nil {
				return fmt.Errorf("%s: %w", s.name(), err)
			}
			defer s.close() // What it says afterwards changes no count.
			if err := s.findBash(b); err != nil {
				return fmt.Errorf("%s: %w", s.name(), err)
			}
		}
		const batch = 25
		for round := range b.some(40) + 1 {
			for _, s := range sides {
				if err := s.count(b, script, batch, round > 0); err != nil {
					return fmt.Errorf("%s: %w", s.name(), err)
				}
			}
		}
		b.reportSwitches(script, where, sides)
	}
	return nil
}

func (b *bench) reportSwitches(script, where string, sides []*counted) {
	what := "context switches for one `" + script + "`"
	if where != "" {
		what += ", " + where
	}
	var each []string
	for _, s := range sides {
		program, bash := s.perCommand()
		each = append(each, fmt.Sprintf("%s: %s of the program, %s of its bash", s.name(), digits(program), digits(bash)))
	}
	target, met := "", true
	if most := mostSwitches[script]; where == "" {
		program, _ := sides[0].perCommand()
		target, met = fmt.Sprintf("at most %g of the program", most), program <= most
	}
	b.report.fact(what, strings.Join(each, "; "), target, met)
}

// counted is a side whose context switches are counted.
type counted struct {
	side
	pid               string // of its bash
	commands          int64
	ofProgram, ofBash int64 // switches, of all commands together
}

func (s *counted) findBash(b *bench) error {
	out, err := s.run(b.ctx, "echo $$")
	s.pid = strings.TrimSpace(string(out.stdout))
	return err
}

// count runs the script so many times. A batch that does not count finds the caches as
// another side left them, and leaves them as this side needs them.
func (s *counted) count(b *bench, script string, times int, counts bool) error {
	time.Sleep(4 * time.Millisecond) // What another side does after its commands is not this one's.
	programBefore, bashBefore, err := s.now()
	if err != nil {
		return err
	}
	once := timed(s, script, 0)
	for range times {
		if _, err := once(b.ctx); err != nil {
			return err
		}
	}
	program, bash, err := s.now()
	if err != nil || !counts {
		return err
	}
	s.commands += int64(times)
	s.ofProgram += program - programBefore
	s.ofBash += bash - bashBefore
	return nil
}

// now returns the switches until now.
func (s *counted) now() (program, bash int64, err error) {
	if program, err = ownSwitches(); err != nil {
		return 0, 0, err
	}
	bash, err = switchesOf(s.pid)
	return program, bash, err
}

func (s *counted) perCommand() (program, bash float64) {
	return float64(s.ofProgram) / float64(s.commands), float64(s.ofBash) / float64(s.commands)
}

// ownSwitches is how often a thread of this program has had to wait, or was preempted;
// threads that have ended are counted too.
func ownSwitches() (int64, error) {
	var usage syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return usage.Nvcsw + usage.Nivcsw, err
}

// switchesOf is the same of a process that has one thread.
func switchesOf(pid string) (int64, error) {
	text, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		return 0, err
	}
	var sum int64
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.HasSuffix(name, "voluntary_ctxt_switches") {
			n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			if err != nil {
				return 0, err
			}
			sum += n
		}
	}
	return sum, nil
}
