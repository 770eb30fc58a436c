package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/script"
)

// hour runs the commands of a programmer's hour in a persistent shell and in a
// fresh bash each, one command here, the same one there. Each side has a clone
// of its own, and both must print the same.
func (b *bench) hour() error {
	stages, out := without(programmersHour, absent)
	if len(out) > 0 {
		b.report.note("left out of the hour, for want of a tool: `%s`", strings.Join(out, "`, `"))
	}
	if b.quick {
		// They are a tenth of the commands and nine tenths of the time.
		stages, out = without(stages, func(tool string) bool { return tool == "go" })
		b.report.note("left out of the hour, because this is a quick run: `%s`", strings.Join(out, "`, `"))
	}
	return b.hourOf(stages, &visitor{side: &limpetSide{}}, &visitor{side: &bashSide{flag: "-c"}, forgets: true}, "")
}

// hourOf is hourIn in a directory of its own.
func (b *bench) hourOf(stages []stage, limpet, bash *visitor, where string, targets ...target) error {
	return withClones(func(dir string) error { return b.hourIn(dir, stages, limpet, bash, where, targets...) })
}

// withClones calls do with a directory for clones.
func withClones(do func(dir string) error) error {
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // Best effort: it is a temporary directory.
	return do(dir)
}

// hourIn runs the commands on two sides, in clones of their own in dir, for some rounds.
func (b *bench) hourIn(dir string, stages []stage, limpet, bash *visitor, where string, targets ...target) error {
	limpet.clone, bash.clone = filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, v := range []*visitor{limpet, bash} {
		if err := b.cloneTo(v.clone); err != nil {
			// Nothing broke: a fresh checkout has no history yet.
			b.report.note("the hour%s was not run: %v", where, err)
			b.progress("hour%s: %v", where, err)
			return nil
		}
	}
	rounds := 3 + 1 // The first one warms the caches.
	if b.smoke {
		rounds, stages = 1, stages[:min(2, len(stages))]
	} else if b.quick {
		rounds = 1 + 1
	}
	for round := range rounds {
		limpet.measured = round > 0 || b.smoke
		bash.measured = limpet.measured
		if err := b.visit(stages, limpet, bash, round); err != nil {
			return err
		}
	}
	b.reportHour(limpet, bash, where, targets)
	return nil
}

// cloneTo clones the repository.
func (b *bench) cloneTo(dir string) error {
	if _, err := exec.LookPath("git"); err != nil {
		return err
	}
	if err := exec.CommandContext(b.ctx, "git", "-C", b.repo, "rev-parse", "--verify", "-q", "HEAD").Run(); err != nil {
		return fmt.Errorf("there is nothing to clone: no git repository with a commit at %s; name one with -repo", b.repo)
	}
	said, err := exec.CommandContext(b.ctx, "git", "clone", "-q", b.repo, dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("git clone: %w: %s", err, said)
	}
	return nil
}

// visitor is a side that goes through the hour.
type visitor struct {
	side
	clone    string
	forgets  bool // it must be told again with each command
	measured bool

	total  time.Duration   // of this round
	totals []time.Duration // of all rounds
	each   []time.Duration // of all commands
}

// visit goes through the stages once. The start of the shell is part of the
// total.
func (b *bench) visit(stages []stage, limpet, bash *visitor, round int) error {
	both := []*visitor{limpet, bash}
	for _, v := range both {
		v.total = 0
		began := time.Now()
		if err := v.open(b, v.clone); err != nil {
			return err
		}
		defer v.close() // What it says afterwards changes nothing.
		v.total += time.Since(began)
	}
	for _, s := range stages {
		if _, err := limpet.do(b, limpet.tell(s), false); err != nil {
			return err
		}
		for i, c := range s.commands {
			said := make(map[*visitor]string)
			for turn := range both {
				v := both[(i+round+turn)%2]
				script := c
				if v.forgets {
					script = v.tell(s) + "\n" + c
				}
				out, err := v.do(b, script, true)
				if err != nil {
					return fmt.Errorf("%s: %q: %w", v.name(), c, err)
				}
				said[v] = fmt.Sprintf("exit code %d, %s", out.code, plain(out.stdout, v.clone))
			}
			if said[limpet] != said[bash] {
				return fmt.Errorf("%q: limpet says %q, bash -c %q", c, said[limpet], said[bash])
			}
			if round == 0 && !strings.HasPrefix(said[bash], "exit code 0,") {
				b.report.note("in the hour, on both sides: `%s`: %.11s", c, said[bash])
			}
		}
	}
	for _, v := range both {
		if v.measured {
			v.totals = append(v.totals, v.total)
		}
	}
	return nil
}

// tell is the command that brings a shell to where the stage's commands run.
func (v *visitor) tell(s stage) string {
	text := "cd " + script.Quote(filepath.Join(v.clone, s.dir)) + " || exit"
	if s.given != "" {
		text += "; " + s.given
	}
	return text
}

// do runs a script; its time counts, in the list of commands only if it is one
// that both sides run.
func (v *visitor) do(b *bench, script string, command bool) (output, error) {
	began := time.Now()
	out, err := v.run(b.ctx, script)
	took := time.Since(began)
	v.total += took
	if v.measured && command {
		v.each = append(v.each, took)
	}
	return out, err
}

// reportHour adds two comparisons: the whole hour, most of which is the
// programs' own time, and the median command, which the targets are of.
func (b *bench) reportHour(limpet, bash *visitor, where string, targets []target) {
	count := len(bash.each) / len(bash.totals)
	whole, each := fmt.Sprintf("an hour's %d commands%s", count, where), "their median"+where
	totals := []series{{whole, "", limpetName, limpet.totals}, {whole, "", bash.name(), bash.totals}}
	commands := []series{{each, "", limpetName, limpet.each}, {each, "", bash.name(), bash.each}}
	b.report.Series = append(b.report.Series, slices.Concat(totals, commands)...)
	b.report.compare(totals)
	b.report.compare(commands, targets...)
}
