package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/oneshot"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
)

// withStdin runs a script under the policy, or without a sandbox if that is nil, with
// the file as its stdin.
func withStdin(t *testing.T, workspace string, policy *sandbox.Policy, in *os.File, script string) (command.Result, error) {
	t.Helper()
	opts := &oneshot.Options{Dir: workspace, RuntimeDir: t.TempDir()}
	if policy != nil {
		where, err := sandbox.New(*policy)
		require.NoError(t, err)
		opts.Transport = where
	}
	r := oneshot.New(opts)
	defer func() { require.NoError(t, r.Close()) }()
	return r.Do(testenv.Context(t), command.Request{Script: script, Stdin: in})
}

// A descriptor leads past the mounts of the sandbox to the file that it is of.
func TestAFileThatIsStdinCannotBeWritten(t *testing.T) {
	workspace, policy := usual(t)
	outside := filepath.Join(t.TempDir(), "file")
	const script = `cat; chmod 600 /proc/self/fd/0; echo bites >/proc/self/fd/0`
	for _, where := range []*sandbox.Policy{nil, policy} {
		require.NoError(t, os.WriteFile(outside, []byte("input\n"), 0o644))
		require.NoError(t, os.Chmod(outside, 0o644))
		in, err := os.Open(outside)
		require.NoError(t, err)
		res, err := withStdin(t, workspace, where, in, script)
		require.NoError(t, err)
		require.NoError(t, in.Close())
		assert.Equal(t, "input\n", res.Stdout.String())
		b, err := os.ReadFile(outside)
		require.NoError(t, err)
		info, err := os.Stat(outside)
		require.NoError(t, err)
		if where == nil {
			require.Equal(t, "bites\n", string(b), "the control does not bite")
			continue
		}
		assert.Equal(t, "input\n", string(b))
		assert.EqualValues(t, 0o644, info.Mode().Perm())
	}
}

// More than a pipe holds is copied while the process reads, and a process that does not
// read it holds nobody up.
func TestALongFileIsStdin(t *testing.T) {
	workspace, policy := usual(t)
	outside := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(outside, make([]byte, 1<<20), 0o600))
	for script, want := range map[string]string{"wc -c": "1048576\n", "head -c 1 | wc -c": "1\n", "echo unread": "unread\n"} {
		in, err := os.Open(outside)
		require.NoError(t, err)
		res, err := withStdin(t, workspace, policy, in, script)
		require.NoError(t, err)
		require.NoError(t, in.Close())
		assert.Equal(t, want, res.Stdout.String())
	}
}

func TestADirectoryIsNoStdin(t *testing.T) {
	workspace, policy := usual(t)
	in, err := os.Open(t.TempDir())
	require.NoError(t, err)
	defer func() { require.NoError(t, in.Close()) }()
	_, err = withStdin(t, workspace, policy, in, "ls /proc/self/fd/0/..")
	require.ErrorIs(t, err, sandbox.ErrMount)
	assert.ErrorContains(t, err, "stdin "+in.Name()+" cannot be handed over: is a directory; give a file or a pipe instead")
}

// The stdin of the program is bash's descriptor 10: nobody knows it by that.
func TestTheProgramsOwnStdinIsCalledSo(t *testing.T) {
	workspace, policy := usual(t)
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	fd, err := syscall.Open(workspace, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	require.NoError(t, err)
	in := os.NewFile(uintptr(fd), os.Stdin.Name())
	defer in.Close() // Read only.
	_, err = shell.Start(testenv.Context(t), &shell.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: where, Stdin: in})
	require.ErrorIs(t, err, sandbox.ErrMount)
	assert.ErrorContains(t, err, "standard input cannot be handed over: is a directory; give a file")
}

// Whoever opens a named pipe, a disk or a device again by its descriptor can write it.
func TestANamedPipeThatIsStdinCannotBeWritten(t *testing.T) {
	workspace, policy := usual(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	const script = `chmod 600 /proc/self/fd/0; exec 2>/dev/null; read -r x; echo $x; echo bites 1<>/proc/self/fd/0 >&1`
	for _, where := range []*sandbox.Policy{nil, policy} {
		require.NoError(t, syscall.Mkfifo(fifo, 0o644))
		require.NoError(t, os.Chmod(fifo, 0o644))
		in, err := os.OpenFile(fifo, os.O_RDWR, 0) // It has no end, and nothing to say after the first line.
		require.NoError(t, err)
		_, err = in.WriteString("input\n")
		require.NoError(t, err)
		res, err := withStdin(t, workspace, where, in, script)
		require.NoError(t, err)
		assert.Equal(t, "input\n", res.Stdout.String())
		info, err := os.Stat(fifo)
		require.NoError(t, err)
		left, err := unix.IoctlGetInt(int(in.Fd()), unix.TIOCINQ)
		require.NoError(t, err)
		if where == nil {
			require.EqualValues(t, 0o600, info.Mode().Perm(), "the control does not bite")
			require.Equal(t, len("bites\n"), left, "the control does not bite")
		} else {
			assert.EqualValues(t, 0o644, info.Mode().Perm())
			assert.Zero(t, left)
		}
		require.NoError(t, in.Close())
		require.NoError(t, os.Remove(fifo))
	}
}

func TestADiskThatIsStdinCannotBeWritten(t *testing.T) {
	workspace, policy := usual(t)
	disk := loopDevice(t)
	for _, where := range []*sandbox.Policy{nil, policy} {
		in, err := os.Open(disk)
		require.NoError(t, err)
		res, err := withStdin(t, workspace, where, in, `head -c 5; echo bites 2>/dev/null 1<>/proc/self/fd/0`)
		require.NoError(t, err)
		require.NoError(t, in.Close())
		assert.Equal(t, "input", res.Stdout.String())
		b, err := os.ReadFile(disk)
		require.NoError(t, err)
		if where == nil {
			require.Equal(t, "bites", string(b[:5]), "the control does not bite")
			require.NoError(t, os.WriteFile(disk, []byte("input"), 0o600))
		} else {
			assert.Equal(t, "input", string(b[:5]))
		}
	}
}

// loopDevice is a disk whose content begins with "input", and fits into a pipe.
func loopDevice(t *testing.T) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	require.NoError(t, os.WriteFile(image, append([]byte("input"), make([]byte, 4091)...), 0o600))
	out, err := exec.Command("losetup", "--find", "--show", image).Output()
	if err != nil {
		t.Skip("no loop devices here")
	}
	disk := strings.TrimSpace(string(out))
	t.Cleanup(func() { assert.NoError(t, exec.Command("losetup", "--detach", disk).Run()) })
	return disk
}

func TestADeviceThatNoSandboxHasIsNoStdin(t *testing.T) {
	workspace, policy := usual(t)
	device := filepath.Join(testenv.TempDir(t), "device")
	const kmsg = 1<<8 | 11
	if err := unix.Mknod(device, unix.S_IFCHR|0o600, kmsg); err != nil {
		t.Skip("only root can make a device")
	}
	in, err := os.Open(device)
	if err != nil {
		t.Skip("only root can open a device")
	}
	defer in.Close() // Read only.
	_, err = withStdin(t, workspace, policy, in, "true")
	require.ErrorIs(t, err, sandbox.ErrMount)
	assert.ErrorContains(t, err, "stdin "+device+" cannot be handed over: it is a device that a sandbox does not have")
}

// The pipe is Limpet's own: the user of the sandbox must be able to open it.
func TestAFileIsTheStdinOfAnotherUser(t *testing.T) {
	workspace, policy := asAnother(t)
	outside := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(outside, []byte("input\n"), 0o600))
	in, err := os.Open(outside)
	require.NoError(t, err)
	defer in.Close() // Read only.
	res, err := withStdin(t, workspace, policy, in, "cat /dev/stdin")
	require.NoError(t, err)
	assert.Equal(t, "input\n", res.Stdout.String()+res.Stderr.String())
}

// Bwrap's own descriptors stand behind those of the process, however many it has of them.
func TestAShellInASandboxReadsItsStdin(t *testing.T) {
	need(t)
	for name, policy := range map[string]func(string) sandbox.Policy{
		"workspace-write": sandbox.WorkspaceWrite,
		"allow-domains":   func(w string) sandbox.Policy { return sandbox.AllowDomains(w, "example.com") },
	} {
		t.Run(name, func(t *testing.T) {
			workspace := t.TempDir()
			where, err := sandbox.New(policy(workspace))
			require.NoError(t, err)
			r, w, err := os.Pipe()
			require.NoError(t, err)
			defer r.Close() // Read only.
			_, err = w.WriteString("one\ntwo\n")
			require.NoError(t, err)
			require.NoError(t, w.Close())
			sh, err := shell.Start(testenv.Context(t), &shell.Options{
				Dir: workspace, RuntimeDir: t.TempDir(), Transport: where, Stdin: r,
			})
			require.NoError(t, err)
			defer func() { assert.NoError(t, sh.Close()) }()
			assert.Equal(t, "one", says(t, sh, "read -r x; echo $x"))
			assert.Equal(t, "two", says(t, sh, "cat"))
		})
	}
}

// The shell's own stdin stands above bash's descriptors.
func TestAFileThatIsTheStdinOfAShellCannotBeWritten(t *testing.T) {
	workspace, policy := usual(t)
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	outside := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(outside, []byte("one\ntwo\n"), 0o644))
	in, err := os.Open(outside)
	require.NoError(t, err)
	defer in.Close() // Read only.
	sh, err := shell.Start(testenv.Context(t), &shell.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: where, Stdin: in})
	require.NoError(t, err)
	defer func() { assert.NoError(t, sh.Close()) }()
	const script = `read -r x; echo $x; for fd in /proc/self/fd/* /proc/$$/fd/*; do [[ $(readlink $fd) != */file ]] || echo $fd leads there; done
chmod 600 /proc/self/fd/0; echo bites >/proc/self/fd/0`
	assert.Equal(t, "one", says(t, sh, "{ "+script+"; } 2>/dev/null"))
	b, err := os.ReadFile(outside)
	require.NoError(t, err)
	assert.Equal(t, "one\ntwo\n", string(b))
}
