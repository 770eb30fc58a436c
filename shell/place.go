package shell

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/saved"
	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/ipc"
)

// A script runs in the session's bash, or in a fork of it. The fork is for scripts that may
// end the shell that runs them, or bend it so that it would end later: exit, errexit,
// nounset, ${x?}, traps, a sourced file. Such a script ends the fork, as it would end "bash -c",
// and what it changed comes back as a difference of two states. Jobs and descriptors cannot
// come back: see [command.Receipt.NotKept].

// place says where and how a script runs.
type place struct {
	script *script.Script
	traits script.Traits
	fork   *ipc.Fork // nil: in bash itself
	inner  bool      // see ipc.Call.Inner
}

// strict are the options that end with the script that switches them on. By the first three
// bash would end, or skip what follows; the others change what every later script prints
// or returns.
var strict = []string{"errexit", "nounset", "noexec", "pipefail", "verbose", "xtrace"}

// place decides where the script runs.
func (b *bash) place(req command.Request) place {
	p := place{script: script.Read(req.Script)}
	p.traits = p.script.Traits(b.library())
	t := &p.traits
	forks := b.forks(t) || len(req.Unset) > 0                     // Bash itself would not be certain to have the variables back.
	verbose := t.Verbose || slices.Contains(b.options, "verbose") // Bash would print limpet's own text.
	p.inner = !t.Unreadable && !t.Aliases && !t.Enable && !verbose && (t.Pipeline || forks)
	if forks {
		p.fork = &ipc.Fork{
			Options: b.options,
			Save:    !verbose && (t.Unreadable || t.Changes || t.Options || t.Demands || slices.Contains(b.options, "nounset")),
			Trapped: t.ExitTrap || t.ListsTraps, Disables: t.Enable || t.Unknown || t.Unreadable,
		}
	}
	return p
}

// forks reports whether a script of these traits runs in a fork. One that deals with jobs
// of the session can only do so in the session's bash.
func (b *bash) forks(t *script.Traits) bool {
	if b.inPlace || t.Jobs && !t.Background {
		return false
	}
	return len(b.options) > 0 ||
		t.Unreadable || t.Exits || t.Options || t.Modal || t.Demands || t.Returns || t.Traps || t.Unknown || t.Enable || t.Tty
}

// putsAside reports whether bash must keep its own streams out of the script's way: see
// [ipc.Call.Aside]. A fork puts nothing aside.
func (b *bash) putsAside(p *place) bool {
	return p.fork == nil && (p.traits.High || p.traits.Descriptors) && proc.MostDescriptors(b.id.PID) >= ipc.AsideEnd
}

// fresh reports whether a script that runs in a fork wants a bash of its own there.
func fresh(t *script.Traits) bool {
	return t.Unreadable || t.PID || t.Tty || t.Modal || t.Verbose || t.Shopt || t.Aliases || t.Returns || t.Traps || t.Sources ||
		t.Arithmetic || t.Lines && t.Readonly
}

// library is the functions of bash as they were when the state was saved.
func (b *bash) library() *script.Library {
	if b.saved.functions == nil {
		state := &b.saved.state
		b.saved.functions = script.NewLibrary(state.Functions()).WithReadonly(state.Readonly).WithAliases(state.Aliases()).WithLastpipe(state.Shopt("lastpipe"))
	}
	return b.saved.functions
}

// since is what commands did in bash since its state was saved, as far as the next one must
// know.
type since struct {
	names  bool // functions, or what else a [script.Library] has, may have come or gone
	traps  bool // traps may have
	opened bool // descriptors may be open that a command has opened
}

func (s *since) add(p *place) {
	t := &p.traits
	unknown := t.Unknown || t.Unreadable
	s.opened = s.opened || p.fork == nil && (t.Descriptors || unknown)
	s.names = s.names || t.Functions || t.Aliases || t.Readonly || t.Lastpipe || unknown
	s.traps = s.traps || t.Traps || unknown
}

// whereToRun places the script. It saves the state before that if the place depends on what
// the last commands did, or if the script may end bash, or if the state was not saved for long.
func (b *bash) whereToRun(ctx context.Context, req command.Request) place {
	if b.saved.since.names || b.overdue() {
		b.save(ctx)
	}
	p := b.place(req)
	// Under job control a bash that is interrupted runs no exit trap.
	needs := func(f *ipc.Fork) bool { return f.Save || b.saved.since.traps || fresh(&p.traits) }
	if p.fork == nil && (p.traits.Exits || p.traits.Limits || p.traits.Options || b.monitor) || p.fork != nil && needs(p.fork) {
		b.save(ctx)
	}
	if p.fork != nil {
		if fresh(&p.traits) {
			p.fork.Fresh, p.fork.Bash, p.fork.New = &b.saved.state, b.opts.Bash, b.shell.pristine
		}
		p.fork.Traps = b.saved.state.UserTraps()
	}
	return p
}

// switchOff takes strict options from a bash in which a script could switch them on. Those
// that stay, see [Options.KeepOptions], are given to each script by itself: under
// errexit bash would end at limpet's own commands.
func (b *bash) switchOff(ctx context.Context, rec ipc.Record) {
	var off []string
	for _, option := range strict {
		if rec.Has(option) {
			off = append(off, option)
		}
	}
	if len(off) == 0 {
		return
	}
	if b.inPlace || b.opts.KeepOptions {
		b.options = append(b.options, off...)
	}
	if err := b.exchange.SwitchOff(ctx, off); err != nil {
		b.opts.Logger.Warn("limpet: options of a script stay on in the session", "options", off, "err", err)
	}
}

// takeOver has bash take over what the script in the fork changed, and corrects the status
// of one that a fatal expansion has ended. It returns what bash cannot have of it.
func (b *bash) takeOver(r *running, leftover bool) (lost []string) {
	fork, traits := r.place.fork, &r.place.traits
	if traits.Background && leftover {
		lost = append(lost, "jobs: what it left running is no job of the shell")
	}
	if traits.Descriptors {
		lost = append(lost, "descriptors that it opened or closed")
	}
	if !fork.Save {
		if traits.Verbose && traits.Changes {
			lost = append(lost, "what it changed in the shell: set -v would print what asks for it")
		}
		return lost
	}
	end := r.forkEnd
	full, isDisk := errors.AsType[*ipc.DiskError](r.forkErr)
	if r.forkErr != nil || b.dead() || b.saved.commands != b.commands-1 {
		switch {
		case !traits.Changes && !traits.Unreadable:
		case isDisk:
			lost = append(lost, "what it changed in the shell: "+full.Error())
		default:
			lost = append(lost, "what it changed in the shell, for it was killed, became another program, or exited with a trap for EXIT")
		}
		return lost
	}
	if r.end.pipeline == nil && r.end.record.Status == 1 && fork.Fresh == nil && !ipc.HasOption(end.Options, "errexit") && script.Fatal(end.Command, end.Options, end.State.Variable) {
		r.end.record.Status = fatalExpansion
		b.status = fatalExpansion
	}
	b.keepOptions(end.Options)
	before := b.saved.state
	if end.State.InFunction {
		end.State = end.State.Leave(before) // It exited there, and saw what is local as its own.
	}
	stays := r.call.Dir != "" && b.sameDir(end.State.Dir, r.call.Dir)
	if stays {
		end.State.Dir = before.Dir // The request's directory was for this script alone.
	}
	pieces := slices.DeleteFunc(saved.Without(end.State.Since(before), end.Lacks), func(p saved.Piece) bool {
		return ofRequest(r, p) || p.OfScript() || stays && p.Kind == "variable" && (p.Name == "PWD" || p.Name == "OLDPWD")
	})
	pieces = slices.DeleteFunc(pieces, func(p saved.Piece) bool {
		starves := b.starves(p)
		if starves {
			lost = append(lost, p.String()+", under which bash could run no other script")
		}
		return starves
	})
	if len(pieces) == 0 {
		b.saved.commands = b.commands // The state is what it was.
		return lost
	}
	b.saved.since.names, b.saved.since.traps = true, true
	refused, err := b.apply(context.Background(), pieces)
	if err != nil {
		return append(lost, "what it changed in the shell: "+err.Error())
	}
	if b.back != "" && !b.sameDir(b.pwd, r.call.Dir) {
		b.back = "" // The script went elsewhere.
	}
	for _, p := range refused {
		lost = append(lost, p.String())
	}
	for _, name := range end.State.Unsaved {
		if !slices.Contains(before.Unsaved, name) {
			lost = append(lost, name)
		}
	}
	return lost
}

// keepOptions notes which strict options each script begins with, after one that ended with
// these.
func (b *bash) keepOptions(options string) {
	var on []string
	for _, option := range strict {
		if ipc.HasOption(options, option) && (b.opts.KeepOptions || slices.Contains(b.options, option)) {
			on = append(on, option)
		}
	}
	b.options = on
}

// ofRequest reports whether a piece is a variable that the request itself has set, or unset.
func ofRequest(r *running, p saved.Piece) bool {
	return p.Kind == "variable" && (slices.Contains(r.req.Unset, p.Name) || slices.ContainsFunc(r.req.Env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return name == p.Name
	}))
}

// fatalExpansion is the status with which ${x?}, or a missing variable under nounset, ends
// "bash -c" without errexit.
const fatalExpansion = 127
