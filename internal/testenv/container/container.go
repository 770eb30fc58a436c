// Package container runs containers for the tests and the benchmark. They are made of programs of this machine, so that
// nothing is fetched, and have no network.
package container

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrNone means that there is no such engine here, or none that runs.
var ErrNone = errors.New("runs no containers here")

// Engine runs containers: docker, or podman. Close it.
type Engine struct {
	// Name is that of its client.
	Name string

	// Env is what the client needs in its environment, as NAME=VALUE; empty for an engine that ran before.
	Env []string

	image  string    // of the containers: no other program has it, and Close removes it
	daemon *exec.Cmd // of docker, if it was started for this one
	dir    string    // of the daemon
}

// Open returns an engine with an image that has a busybox, a bash and the libraries that program needs besides, if that
// is not empty. A daemon of docker is started if none runs, and root asks. The error is ErrNone if there is no engine.
func Open(name, program string) (*Engine, error) {
	e := &Engine{Name: name, image: "limpet-test-" + strings.ToLower(rand.Text())}
	if _, err := exec.LookPath(name); err != nil {
		return nil, fmt.Errorf("%s %w: %w", name, ErrNone, err)
	}
	said, err := e.Command("info").CombinedOutput()
	if err != nil && name == "docker" {
		said, err = nil, e.start()
	}
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w: %.200s", name, ErrNone, err, said)
	}
	root, err := rootFS(program)
	if err == nil {
		load := e.Command("import", "-", e.image)
		load.Stdin = bytes.NewReader(root)
		err = run(load)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// Command is one of the engine's client.
func (e *Engine) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(e.Name, args...)
	cmd.Env = append(os.Environ(), e.Env...)
	return cmd
}

// start starts a daemon that nobody else has. It changes nothing of the network.
func (e *Engine) start() (err error) {
	if os.Getuid() != 0 {
		return errors.New("only root starts its daemon")
	}
	if e.dir, err = os.MkdirTemp("", "dockerd"); err != nil {
		return err
	}
	in := func(name string) string { return filepath.Join(e.dir, name) }
	e.Env = []string{"DOCKER_HOST=unix://" + in("sock")}
	e.daemon = exec.Command("dockerd", "--data-root", in("data"), "--exec-root", in("exec"), "-H", "unix://"+in("sock"), "-p", in("pid"),
		"--bridge", "none", "--iptables=false", "--ip-forward=false", "--ip-masq=false")
	var said bytes.Buffer
	e.daemon.Stdout, e.daemon.Stderr, e.daemon.WaitDelay = &said, &said, time.Second
	if err = e.daemon.Start(); err != nil {
		e.daemon = nil
		return errors.Join(err, e.Close())
	}
	for began := time.Now(); e.Command("info").Run() != nil; time.Sleep(100 * time.Millisecond) {
		const patience = 30 * time.Second
		if time.Since(began) > patience {
			err = e.Close()
			return errors.Join(fmt.Errorf("its daemon did not answer in %v: %s", patience, said.String()), err)
		}
	}
	return nil
}

// Run starts a container with a name, which sleeps, and sees directories of this machine. Remove it.
func (e *Engine) Run(name string, sees ...string) error {
	args := []string{"run", "-d", "--network", "none", "--name", name}
	for _, dir := range sees {
		args = append(args, "-v", dir+":"+dir)
	}
	if e.Name == "podman" { // For one that runs in a container itself.
		args = append([]string{"--runtime", "runc", "--cgroup-manager", "cgroupfs"}, append(args, "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024")...)
	}
	return run(e.Command(append(args, e.image, "sleep", "1000000")...))
}

// Remove ends a container.
func (e *Engine) Remove(name string) error {
	if e.Name == "podman" {
		return run(e.Command("rm", "-f", "-t", "0", name))
	}
	return run(e.Command("rm", "-f", name))
}

// Close removes the image, and ends the daemon that Open has started. Remove the containers before.
func (e *Engine) Close() (err error) {
	if e.Command("image", "inspect", e.image).Run() == nil {
		err = run(e.Command("rmi", e.image))
	}
	if e.daemon != nil {
		_ = e.daemon.Process.Signal(syscall.SIGTERM) // It may have ended.
		const patience = 20 * time.Second
		late := time.AfterFunc(patience, func() { _ = e.daemon.Process.Kill() }) // It may have ended.
		_ = e.daemon.Wait()                                                      // As above: with which status means nothing.
		late.Stop()
	}
	if e.dir != "" {
		err = errors.Join(err, os.RemoveAll(e.dir))
	}
	return err
}

func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// rootFS is a tar of the file system.
func rootFS(program string) ([]byte, error) {
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		return nil, err
	}
	list, err := exec.Command(busybox, "--list").Output()
	if err != nil {
		return nil, err
	}
	libraries, err := exec.Command("ldd", bash).Output()
	if err != nil {
		return nil, err
	}
	if program != "" {
		if more, err := exec.Command("ldd", program).Output(); err == nil { // Else it needs none.
			libraries = append(libraries, more...)
		}
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	var all []error
	for _, dir := range []string{"bin/", "tmp/", "root/", "etc/", "proc/", "dev/", "sys/", "usr/", "var/tmp/"} {
		all = append(all, w.WriteHeader(&tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o755}))
	}
	all = append(all, file(w, "bin/busybox", busybox), file(w, "bin/bash", bash))
	for name := range strings.FieldsSeq(string(list)) {
		if name != "busybox" && name != "bash" {
			all = append(all, w.WriteHeader(&tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox"}))
		}
	}
	added := map[string]bool{}
	for field := range strings.FieldsSeq(string(libraries)) {
		if filepath.IsAbs(field) && !added[field] {
			added[field] = true
			all = append(all, file(w, field[1:], field))
		}
	}
	return out.Bytes(), errors.Join(append(all, w.Close())...)
}

// file adds one of this machine.
func file(w *tar.Writer, name, from string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err = io.Copy(w, bytes.NewReader(content))
	return err
}
