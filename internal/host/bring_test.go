package host_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// failing dials in vain.
func failing(t *testing.T, target string, opts *host.Options) error {
	t.Helper()
	to, err := host.ParseTarget(target)
	require.NoError(t, err)
	h, err := host.Dial(testenv.Context(t), to, opts)
	if err == nil {
		_ = h.Disconnect() // It should not be there.
	}
	require.ErrorIs(t, err, host.ErrUnreached)
	return err
}

// programs is a directory with some of this machine's programs, and others that are scripts.
func programs(t *testing.T, names string, scripts map[string]string) string {
	t.Helper()
	dir := testenv.TempDir(t)
	for name := range strings.FieldsSeq(names) {
		require.NoError(t, os.Symlink("/usr/bin/"+name, filepath.Join(dir, name)))
	}
	for name, text := range scripts {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
	}
	return dir
}

// What far.sh needs, but for a bash.
const needed = "env sh id uname head gzip df ls tr grep cat tail mkdir chmod mv rm wc sha256sum"

func TestWhyAMachineIsNotReached(t *testing.T) {
	testenv.Slow(t)
	t.Setenv("HOME", testenv.TempDir(t))
	for _, c := range []struct {
		name, target string
		is           error
		says         string
	}{
		{"there is no such program", "exec:nothing-is-called-so", nil, `reach "exec:nothing-is-called-so"`},
		{"it ends", "exec:sh -c 'exit 3'", nil, "sh ended with exit code 3; try it by hand: it is to reach a POSIX sh"},
		{"it says why", "exec:sh -c 'echo no such machine >&2; exit 255'", nil, "exit code 255; it said: no such machine"},
		{"it says so on its output", "exec:sh -c 'echo welcome; exit 1'", nil, "exit code 1; it said: welcome; try it by hand"},
		{"it is killed", "exec:sh -c 'kill -9 $$'", nil, "signal 9 (killed); try it by hand"},
		{"no bash", "exec:env -i PATH=" + programs(t, needed, nil) + " sh", host.ErrNoBash, "there is no bash over there; install bash there"},
		{
			"another processor", "exec:env -i HOME=/nowhere PATH=" + programs(t, "sh bash id head", map[string]string{"uname": `[ "$1" = -s ] && echo Linux || echo mips`}) + " sh",
			host.ErrNoProgram, `it is "Linux mips"; install limpet there`,
		},
		{
			"a processor for which there is none", "exec:env -i HOME=/nowhere PATH=" + programs(t, "sh bash id head", map[string]string{"uname": `[ "$1" = -s ] && echo Linux || echo riscv64`}) + " sh",
			host.ErrNoProgram, `there is no limpet-linux-riscv64 in `,
		},
		{
			"another processor, and a limpet in the PATH", "exec:env -i HOME=/nowhere PATH=" + programs(t, "sh bash id head", map[string]string{
				"uname": `[ "$1" = -s ] && echo Linux || echo riscv64`, "limpet": `[ "$2" = --protocol ] && echo 1 99 || { echo it was executed >&2; exit 9; }`,
			}) + " sh",
			nil, "it was executed",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := failing(t, c.target, nil)
			if c.is != nil {
				require.ErrorIs(t, err, c.is)
			}
			assert.ErrorContains(t, err, c.says)
		})
	}
}

// What arrives otherwise than it was sent is not executed, and leaves nothing.
func TestASpoiledProgramIsNotExecuted(t *testing.T) {
	testenv.Slow(t)
	home := testenv.TempDir(t)
	small := filepath.Join(testenv.TempDir(t), "limpet")
	b := make([]byte, 100<<10)
	_, err := rand.Read(b)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(small, b, 0o700))
	for name, scripts := range map[string]map[string]string{
		"less of it": {"head": `shift; n=$1; /usr/bin/head -c "$n" | /usr/bin/tail -c +2`},
		"another":    {"gzip": `/usr/bin/gzip "$@" | /usr/bin/tr 'e' 'f'`},
		"none":       {"gzip": `exit 1`},
		"no room":    {"cat": `exit 1`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := programs(t, needed+" bash", nil)
			for name, text := range scripts {
				require.NoError(t, os.Remove(filepath.Join(dir, name)))
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755))
			}
			if name == "no room" { // The cat that writes the copy fails; the cat that discards the rest of the piece works.
				require.NoError(t, os.WriteFile(filepath.Join(dir, "cat"), []byte("#!/bin/sh\ncase $(readlink /proc/$$/fd/1) in */part-*) /usr/bin/head -c 1000; exit 1 ;; esac\nexec /usr/bin/cat\n"), 0o755))
				require.NoError(t, os.Symlink("/usr/bin/readlink", filepath.Join(dir, "readlink")))
			}
			err := failing(t, "exec:env -i HOME="+home+" PATH="+dir+" sh", &host.Options{Executable: small})
			require.ErrorIs(t, err, host.ErrSpoiled)
			left, err := filepath.Glob(home + "/.cache/limpet/bin/*")
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}

// A directory that others can write to is left alone, and so is one where nothing can be executed.
func TestAProgramIsBroughtToWhereNobodyElseCanChangeIt(t *testing.T) {
	testenv.Slow(t)
	needSandbox(t)
	shared := testenv.TempDir(t)
	require.NoError(t, os.Chmod(shared, 0o777))
	target := func(more ...string) string {
		return "exec:" + strings.Join(append(sandboxed(more...), "busybox", "sh"), " ")
	}
	h := dial(t, target("--bind", shared, "/cache", "--setenv", "XDG_CACHE_HOME", "/cache"), nil)
	assert.Equal(t, "/var/tmp/limpet-"+uid()+"/bin", exeDir(t, h))
	require.NoError(t, h.Disconnect())

	err := failing(t, target("--remount-ro", "/tmp", "--remount-ro", "/var/tmp", "--remount-ro", "/dev/shm", "--remount-ro", "/"), nil)
	require.ErrorIs(t, err, host.ErrNoPlace)
	for _, dir := range []string{"/home/u/.cache", "/var/tmp", "/tmp", "/dev/shm"} {
		assert.ErrorContains(t, err, dir)
	}
	assert.ErrorContains(t, err, "it cannot be made")
}

func uid() string { return strconv.Itoa(os.Getuid()) }

// exeDir is the directory for programs that were brought, of the one at the other end.
func exeDir(t *testing.T, h *host.Host) string {
	t.Helper()
	s, err := h.Temporary(testenv.Context(t), "exe", &keeper.Spec{})
	require.NoError(t, err)
	res, err := s.Run(testenv.Context(t), "readlink /proc/"+strconv.Itoa(connectOf(h))+"/exe")
	require.NoError(t, err)
	return filepath.Dir(filepath.Dir(strings.TrimSpace(res.Stdout.String())))
}
