package host_test

import (
	"archive/tar"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// engines start a container that has no network. What podman wants besides is for one that runs in a container itself.
var engines = map[string][]string{
	"docker": {"docker", "run", "-d", "--network", "none"},
	"podman": {"podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs", "run", "-d", "--network", "none", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"},
}

// container starts one with a busybox and a bash, by an engine that is there, and returns its target.
func container(t *testing.T, engine string) (target string) {
	t.Helper()
	if out, err := exec.Command(engine, "info").CombinedOutput(); err != nil {
		t.Skipf("no %s: %v: %.200s", engine, err, out)
	}
	const image = "limpet-test"
	importing := exec.Command(engine, "import", "-", image)
	importing.Stdin = bytes.NewReader(rootFS(t))
	out, err := importing.CombinedOutput()
	require.NoError(t, err, string(out))
	b, err := exec.Command(engines[engine][0], append(engines[engine][1:], image, "sleep", "1000000")...).Output()
	require.NoError(t, err)
	id := strings.TrimSpace(string(b))
	t.Cleanup(func() {
		out, err := exec.Command(engine, "rm", "-f", "-t", "0", id).CombinedOutput()
		if err != nil {
			out, err = exec.Command(engine, "rm", "-f", id).CombinedOutput() // Docker has no -t.
		}
		require.NoError(t, err, string(out))
	})
	return engine + "://" + id[:12]
}

// rootFS is a tar of a file system with busybox and bash.
func rootFS(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(h tar.Header, from string) {
		var content []byte
		if from != "" {
			var err error
			content, err = os.ReadFile(from)
			require.NoError(t, err)
		}
		h.Size = int64(len(content))
		require.NoError(t, w.WriteHeader(&h))
		_, err := w.Write(content)
		require.NoError(t, err)
	}
	for _, dir := range []string{"bin/", "tmp/", "root/", "etc/", "proc/", "dev/", "sys/", "var/tmp/"} {
		add(tar.Header{Name: dir, Typeflag: tar.TypeDir, Mode: 0o755}, "")
	}
	path, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("no busybox")
	}
	add(tar.Header{Name: "bin/busybox", Typeflag: tar.TypeReg, Mode: 0o755}, path)
	list, err := exec.Command(path, "--list").Output()
	require.NoError(t, err)
	for name := range strings.FieldsSeq(string(list)) {
		if name != "busybox" && name != "bash" {
			add(tar.Header{Name: "bin/" + name, Typeflag: tar.TypeSymlink, Linkname: "busybox"}, "")
		}
	}
	bash, err := exec.LookPath("bash")
	require.NoError(t, err)
	add(tar.Header{Name: "bin/bash", Typeflag: tar.TypeReg, Mode: 0o755}, bash)
	libraries, err := exec.Command("ldd", bash).Output()
	require.NoError(t, err)
	self, err := exec.Command("ldd", os.Args[0]).CombinedOutput()
	if err == nil { // It was built for the race detector, or with cgo.
		libraries = append(libraries, self...)
	}
	added := map[string]bool{}
	for field := range strings.FieldsSeq(string(libraries)) {
		if filepath.IsAbs(field) && !added[field] {
			added[field] = true
			add(tar.Header{Name: field[1:], Typeflag: tar.TypeReg, Mode: 0o755}, field)
		}
	}
	require.NoError(t, w.Close())
	return out.Bytes()
}

func TestInAContainer(t *testing.T) {
	testenv.Slow(t)
	for engine := range engines {
		t.Run(engine, func(t *testing.T) {
			target := container(t, engine)
			ctx := testenv.Context(t)
			h := dial(t, target, nil)
			place := h.Hello().Place
			s, err := h.Session(ctx, "s", &keeper.Spec{})
			require.NoError(t, err)
			_, err = s.Run(ctx, "cd /tmp; x=1")
			require.NoError(t, err)
			require.NoError(t, h.Disconnect())
			h = dial(t, target, nil)
			assert.Equal(t, place, h.Hello().Place)
			s, err = h.Session(ctx, "s", nil)
			require.NoError(t, err, "it is kept in the container")
			res, err := s.Run(ctx, "echo $PWD $x; ls -d /bin/busybox")
			require.NoError(t, err)
			assert.Equal(t, "/tmp 1\n/bin/busybox\n", res.Stdout.String())
			require.NoError(t, h.Close(ctx, s))

			id := strings.TrimPrefix(target, engine+"://")
			assert.ErrorContains(t, failing(t, engine+"://no-such-container", nil), "is the name right?")
			out, err := exec.Command(engine, "stop", "-t", "0", id).CombinedOutput()
			require.NoError(t, err, string(out))
			assert.ErrorContains(t, failing(t, target, nil), "; start it: ")
		})
	}
}
