package main

import (
	"context"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/shell"
)

// builtin measures what the way to bash and back costs: the command is free.
func (b *bench) builtin() error {
	all, err := b.contestOf("`true`", "true", b.usual(60),
		&limpetSide{}, &bashSide{flag: "-c"}, &bashSide{flag: "-lc"}, &oneshotSide{},
		&limpetSide{poll: 10 * time.Millisecond}, &interpSide{}, &bareSide{}, &bareSide{session: true})
	if err != nil {
		return err
	}
	b.report.compare(all, atLeastFaster(bashName, 10), within(bareName, 7))
	return nil
}

// binary measures a command that forks: every side pays for that.
func (b *bench) binary() error {
	all, err := b.contestOf("`/bin/true`", "/bin/true", b.usual(100),
		&limpetSide{}, &bashSide{flag: "-c"}, &oneshotSide{}, &interpSide{}, &bareSide{}, &bareSide{session: true})
	if err != nil {
		return err
	}
	b.report.compare(all, within(bareName, 1.2))
	return nil
}

// strict measures a script that begins as careful ones do. It may end the bash that runs
// it, which a shell that stays has to provide for. The pipe is no side: its bash would end.
func (b *bench) strict() error {
	const script = "set -euo pipefail; true"
	all, err := b.contestOf("`"+script+"`", script, b.usual(60), &limpetSide{}, &bashSide{flag: "-c"}, &oneshotSide{})
	if err != nil {
		return err
	}
	b.report.compare(all, notSlower(bashName))
	return nil
}

// rested measures both after a pause: nothing is warm, and a processor may have to be
// woken.
func (b *bench) rested() error {
	const where = "after a pause"
	if err := b.oneByOne(where, "true", atLeastFaster(bashName, 4), within(bareName, 3)); err != nil {
		return err
	}
	return b.oneByOne(where, "/bin/true", within(bareName, 1.2))
}

// busy is how many processes the loaded workload runs beside.
const busy = 8

// loaded measures the same, and the context switches, beside processes that want all the
// time there is, each in a session of its own, as the builds are that an agent has left
// running.
func (b *bench) loaded() error {
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	for range busy {
		cmd := exec.CommandContext(ctx, b.bash, "-c", "while :; do :; done")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := cmd.Start(); err != nil {
			return err
		}
		defer cmd.Wait() // It was killed by stop, which runs before.
		defer stop()
	}
	where := fmt.Sprintf("beside %d busy processes", busy)
	if err := b.oneByOne(where, "true", notSlower(bashName), within(sessionName, 7)); err != nil {
		return err
	}
	if err := b.oneByOne(where, "/bin/true", notSlower(bashName), within(sessionName, 1.3)); err != nil {
		return err
	}
	return b.countSwitches(where)
}

// oneByOne compares what matters from rest: the sides take turns one by one, each after a
// pause of 20 ms.
func (b *bench) oneByOne(where, script string, targets ...target) error {
	all, err := b.contestOf("`"+script+"`, "+where, script, rules{rounds: b.some(200), batch: 1, pause: 20 * time.Millisecond},
		&limpetSide{}, &bashSide{flag: "-c"}, &bareSide{}, &bareSide{session: true})
	if err != nil {
		return err
	}
	b.report.compare(all, targets...)
	return nil
}

// start measures the time until a shell is ready. The first session of a
// program also makes the program's directory, the inotify instance and the
// guard process; the others find them there.
func (b *bench) start() error {
	all, err := b.contest("start", "", b.usual(80), []entrant{
		{limpetName, b.startLimpet},
		{"limpet, 2nd session", b.startSecond},
		{bareName, b.startBare},
	})
	if err != nil {
		return err
	}
	first, second, bare := all[0], all[1], all[2]
	b.report.compare([]series{first, bare}, within(bareName, 1.6))
	second.Workload, second.Side = "start, 2nd session", limpetName
	b.report.compare([]series{second, bare}, within(bareName, 1.6))
	return nil
}

func (b *bench) startLimpet(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	sh, err := shell.Start(ctx, b.shellOptions())
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	return took, sh.Close()
}

// startSecond starts a shell beside another one.
func (b *bench) startSecond(ctx context.Context) (time.Duration, error) {
	first, err := shell.Start(ctx, b.shellOptions())
	if err != nil {
		return 0, err
	}
	defer first.Close()               // Always nil.
	time.Sleep(10 * time.Millisecond) // The guard starts beside the shell.
	return b.startLimpet(ctx)
}

// startBare starts a bare bash until it has answered once.
func (b *bench) startBare(ctx context.Context) (time.Duration, error) {
	s := &bareSide{}
	began := time.Now()
	if err := s.open(b, b.files); err != nil {
		return 0, err
	}
	_, err := s.run(ctx, ":")
	took := time.Since(began)
	if err != nil {
		return 0, err
	}
	return took, s.close()
}
