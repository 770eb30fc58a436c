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
		&limpetSide{poll: 10 * time.Millisecond}, &interpSide{}, &bareSide{})
	if err != nil {
		return err
	}
	b.report.compare(all, atLeastFaster(bashName, 10), within(bareName, 7))
	return nil
}

// binary measures a command that forks: every side pays for that.
func (b *bench) binary() error {
	all, err := b.contestOf("`/bin/true`", "/bin/true", b.usual(100),
		&limpetSide{}, &bashSide{flag: "-c"}, &oneshotSide{}, &interpSide{}, &bareSide{})
	if err != nil {
		return err
	}
	b.report.compare(all, within(bareName, 1.15))
	return nil
}

// rested measures both after a pause: nothing is warm, and a processor may have to be
// woken. The sides take turns one by one.
func (b *bench) rested() error {
	return b.oneByOne("after a pause", rules{rounds: b.some(200), batch: 1, pause: 20 * time.Millisecond})
}

// busy is how many processes the loaded workload runs beside.
const busy = 8

// loaded measures both beside processes that want all the time there is, each in a
// session of its own, as the builds are that an agent has left running.
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
	return b.oneByOne(fmt.Sprintf("beside %d busy processes", busy), rules{rounds: b.some(200), batch: 5, slice: 50 * time.Millisecond, pause: 4 * time.Millisecond})
}

// oneByOne compares what matters in both workloads.
func (b *bench) oneByOne(where string, r rules) error {
	for _, script := range []string{"true", "/bin/true"} {
		all, err := b.contestOf("`"+script+"`, "+where, script, r, &limpetSide{}, &bashSide{flag: "-c"}, &bareSide{})
		if err != nil {
			return err
		}
		b.report.compare(all)
	}
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
