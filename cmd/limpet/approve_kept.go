package main

import (
	"context"
	"errors"
	"slices"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/askpass"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/session"
)

// mostLooks is how often limpet looks at a session before one script, if others change it each time. Then limpet judges the script as if it
// knew nothing of the session.
const mostLooks = 3

// run runs a script that check has let pass. If others have used the session since it was looked at, nothing ran, and the script is checked
// again.
func (g *gate) run(ctx context.Context, sh runsIn, console *console, file, text string, req command.Request) (command.Result, error) {
	for looks := 1; ; looks++ {
		res, err := sh.Do(ctx, req)
		if g == nil || req.Stdin != nil || !errors.Is(err, session.ErrStateChanged) { // Of Stdin some may be read.
			return res, err
		}
		if err := g.checkLooking(ctx, sh, console, file, text, looks < mostLooks); err != nil {
			return command.Result{ExitCode: command.CodeUnknown, Dir: sh.Dir()}, err
		}
	}
}

// checkKept is check for a session that others can use, too. What is decided by its state holds for a command that runs in that state alone.
func (g *gate) checkKept(ctx context.Context, k *keptShell, text string, looks bool) error {
	g.Changed() // Others may have used it since the last look.
	k.mark = ""
	for {
		q, mark := approval.Question{Script: text, Dir: k.Dir()}, ""
		if looked, ok := k.looked(ctx, looks); ok {
			k.dir, q.Dir, mark = looked.Dir, looked.Dir, looked.Mark
			q.Look = func(context.Context) (*command.LiveState, error) { return &looked.State, nil }
		}
		g.waited = false
		p, err := g.Pass(ctx, q)
		if err != nil {
			return err
		}
		if !g.waited || p.Holds(q.Dir) { // While a person thought, a name may have come to lead elsewhere.
			k.mark = mark
			return nil
		}
	}
}

// looked returns what the session has. It reports false where that cannot be known, or does not count: on another machine, with an older keeper,
// and with a directory or variables that the script alone gets.
func (k *keptShell) looked(ctx context.Context, looks bool) (session.Looked, bool) {
	if _, here := k.place.(*keeper.Registry); !here || k.host != nil || !looks || k.enter != "" || len(k.flags.env) > 0 {
		return session.Looked{}, false
	}
	if k.noWait {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, atOnce)
		defer cancel()
	}
	told := k.tellsWait(ctx, command.Request{})
	looked, err := k.Look(ctx)
	told()
	if err != nil {
		return session.Looked{}, false
	}
	looked.State.Env = beganWith(looked.State.Env, slices.Concat(askpass.Names, keeper.CallerVars))
	return looked, true
}
