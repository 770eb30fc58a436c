package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// containerHour goes through the hour in a container of each engine, and in a pod.
func (b *bench) containerHour() error {
	program, err := b.limpet()
	if err != nil {
		return err
	}
	for _, engine := range b.engines() {
		if err := b.hourByEngine(engine, program); err != nil {
			return err
		}
	}
	target := os.Getenv(kube)
	if target == "" {
		b.report.note("the hour by `kubectl exec` was not run: %s names no pod", kube)
		return nil
	}
	return b.hourByKubectl(target, program)
}

// toolsDir is where the hour's programs are, and most of their libraries. The containers have no others.
const toolsDir = "/usr"

func (b *bench) hourByEngine(engine, program string) error {
	return withClones(func(dir string) (err error) {
		before := b.env
		e, name, err := b.container(engine, program, dir, toolsDir)
		if e == nil {
			return err
		}
		defer func() {
			err = errors.Join(err, e.Remove(name), e.Close())
			b.env = before
		}()
		return b.hourThere(dir, program, engine+"://"+name, engine, "exec", name, "bash", "-c")
	})
}

// hourByKubectl does so in a pod like that of target, which sees what the containers of the engines see.
func (b *bench) hourByKubectl(target, program string) error {
	return withClones(func(dir string) (err error) {
		namespace, _, _ := strings.Cut(strings.TrimPrefix(target, "kube://"), "/")
		const name = "limpet-bench"
		kubectl := func(stdin string, args ...string) error {
			cmd := exec.CommandContext(b.ctx, "kubectl", append([]string{"-n", namespace}, args...)...)
			cmd.Stdin = strings.NewReader(stdin)
			if said, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("kubectl %s: %w: %s", args[0], err, said)
			}
			return nil
		}
		const manifest = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": %q}, "spec": {
			"automountServiceAccountToken": false, "enableServiceLinks": false, "terminationGracePeriodSeconds": 1,
			"volumes": [{"name": "tools", "hostPath": {"path": %[2]q}}, {"name": "clones", "hostPath": {"path": %[3]q}}],
			"containers": [{"name": "shell", "image": "limpet.test/shell:1", "imagePullPolicy": "Never",
				"env": [{"name": "PATH", "value": "/usr/bin:/bin"}],
				"volumeMounts": [{"name": "tools", "mountPath": %[2]q, "readOnly": true}, {"name": "clones", "mountPath": %[3]q}]}]}}`
		if err := kubectl(fmt.Sprintf(manifest, name, toolsDir, dir), "apply", "-f", "-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, kubectl("", "delete", "--wait=false", "pod/"+name)) }()
		if err := kubectl("", "wait", "--for=condition=Ready", "--timeout=1m", "pod/"+name); err != nil {
			return err
		}
		there := "kube://" + namespace + "/" + name
		return b.hourThere(dir, program, there, kubectlExec(there)...)
	})
}

// hourThere goes through the hour at a target, beside an argv that runs a script there.
func (b *bench) hourThere(dir, program, target string, argv ...string) error {
	// Without what takes long by itself, and what is not below toolsDir.
	stages, _ := without(programmersHour, func(tool string) bool {
		_, err := os.Stat(filepath.Join(toolsDir, "bin", tool))
		return tool == "go" || slices.Contains(tools, tool) && err != nil
	})
	oneshot := b.execSide(argv)
	limpet := &visitor{side: &remoteSide{target: target, executable: program}}
	return b.hourIn(dir, stages, limpet, &visitor{side: oneshot, forgets: true}, ", by "+oneshot.as, atLeastFaster(oneshot.as, 20))
}
