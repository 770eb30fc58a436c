package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/limpet-sh/limpet/internal/testenv/container"
)

// engines run containers. For a smoke one will do: a container takes seconds to start.
func (b *bench) engines() []string {
	if b.smoke {
		return []string{"docker"}
	}
	return []string{"docker", "podman"}
}

// container starts a container in which directories of this machine are mounted. If the engine is not here, container notes that in the report and
// returns nil.
func (b *bench) container(engine, program string, sees ...string) (e *container.Engine, name string, err error) {
	e, err = container.Open(engine, program)
	if errors.Is(err, container.ErrNone) {
		b.report.note("`%s exec` was not measured: %.100s", engine, err)
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	for _, entry := range e.Env { // For limpet, which executes the client.
		key, value, _ := strings.Cut(entry, "=")
		err = errors.Join(err, os.Setenv(key, value))
	}
	b.env = append(b.env[:len(b.env):len(b.env)], e.Env...)
	const one = "limpet-bench"
	if err = errors.Join(err, e.Run(one, sees...)); err != nil {
		return nil, "", errors.Join(err, e.Close())
	}
	return e, one, nil
}

// containerTrue measures a command in a container, or in a pod: in a session that is kept there, and by an exec for each.
func (b *bench) containerTrue() error {
	program, err := b.limpet()
	if err != nil {
		return err
	}
	for _, engine := range b.engines() {
		if err := b.trueByEngine(engine, program); err != nil {
			return err
		}
	}
	target := os.Getenv(kube)
	if target == "" {
		b.report.note("`kubectl exec` was not measured: %s names no pod", kube)
		return nil
	}
	return b.trueIn(program, target, kubectlExec(target)...)
}

// kube names a pod, by testdata/kubernetes/run.
const kube = "LIMPET_TEST_KUBE"

func kubectlExec(target string) []string {
	namespace, pod, _ := strings.Cut(strings.TrimPrefix(target, "kube://"), "/")
	return []string{"kubectl", "exec", "-n", namespace, pod, "--", "bash", "-c"}
}

// execSide runs a script there by a program that is started for it.
func (b *bench) execSide(argv []string) *programSide {
	return &programSide{as: argv[0] + " exec", argv: argv, env: append(b.env[:len(b.env):len(b.env)], "KUBECONFIG="+os.Getenv("KUBECONFIG"))}
}

func (b *bench) trueByEngine(engine, program string) (err error) {
	before := b.env
	e, name, err := b.container(engine, program)
	if e == nil {
		return err
	}
	defer func() {
		err = errors.Join(err, e.Remove(name), e.Close())
		b.env = before
	}()
	return b.trueIn(program, engine+"://"+name, engine, "exec", name, "bash", "-c")
}

// trueIn measures it at a target, beside an argv that runs a script there.
func (b *bench) trueIn(program, target string, argv ...string) error {
	oneshot := b.execSide(argv)
	all, err := b.contestOf("`true` by "+argv[0], "true", b.usual(20), &remoteSide{target: target, executable: program}, oneshot)
	if err != nil {
		return err
	}
	b.report.compare(all, atLeastFaster(oneshot.as, 20))
	dir, err := os.MkdirTemp(b.files, "container-")
	if err != nil {
		return err
	}
	env := append(oneshot.env[:len(oneshot.env):len(oneshot.env)], "XDG_STATE_HOME="+filepath.Join(dir, "near"))
	end := []string{"sh", "-c", program + ` session close --on "$1" program; ` + program + " hosts close --all", "sh", target}
	all, err = b.contestOf("`true` by a program of its own, by "+argv[0], "true", b.usual(20),
		&programSide{as: limpetName, argv: []string{program, "run", "-s", "program", "--on", target}, env: env, end: end}, oneshot)
	if err != nil {
		return err
	}
	b.report.compare(all)
	return nil
}
