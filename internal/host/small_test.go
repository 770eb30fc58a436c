package host_test

import (
	"bytes"
	"errors"
	"image/png"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/picture"
)

// agents is a directory in which cmd/limpet-connect was built once, for this processor; buildAgents makes it, and TestMain removes it.
// ./test all has it built for amd64 and for arm64. The gate does not: for another processor than this one all of Go's library is compiled first.
var (
	agents      string
	buildAgents = sync.OnceValues(func() (said []byte, err error) {
		if agents, err = os.MkdirTemp("", "limpet-agents"); err != nil {
			return nil, err
		}
		build := exec.Command("../../cmd/limpet-connect/build", agents)
		if !testenv.All() {
			build.Args = append(build.Args, "linux/"+runtime.GOARCH)
		}
		return build.CombinedOutput()
	})
)

// small is the path of cmd/limpet-connect for a processor. A test that wants it is slow.
func small(t *testing.T, arch string) string {
	t.Helper()
	testenv.Slow(t)
	said, err := buildAgents()
	require.NoError(t, err, "%s", said)
	return filepath.Join(agents, "limpet-linux-"+arch)
}

// sizeSent returns the bytes that are sent to bring a program to a machine which has none.
func sizeSent(t *testing.T, target string, opts host.Options) (size int64) {
	t.Helper()
	to, err := host.ParseTarget(target)
	require.NoError(t, err)
	opts.Progress = func(sent, of int64) { size = of }
	h, err := host.Dial(testenv.Context(t), to, &opts)
	if err == nil { // Else it was sent, and is for another processor.
		require.NoError(t, h.Disconnect())
	}
	return size
}

// A machine that claims to be one of the other processor is sent that program, which it cannot execute.
func TestTheProgramThatIsSentHasSixMegabytesAtMost(t *testing.T) {
	const most = 6_000_000
	for arch, machine := range map[string]string{"amd64": "x86_64", "arm64": "aarch64"} {
		if arch != runtime.GOARCH && !testenv.All() {
			continue
		}
		program := small(t, arch)
		home := testenv.TempDir(t)
		path := programs(t, needed+" bash", nil)
		require.NoError(t, os.Remove(filepath.Join(path, "uname")))
		require.NoError(t, os.WriteFile(filepath.Join(path, "uname"), []byte("#!/bin/sh\n[ \"$1\" = -s ] && echo Linux || echo "+machine+"\n"), 0o755))
		opts := host.Options{Agents: filepath.Dir(program)}
		if arch == runtime.GOARCH {
			opts.Executable = program
		}
		size := sizeSent(t, "exec:env -i HOME="+home+" PATH="+path+" sh", opts)
		assert.Positive(t, size, arch)
		assert.LessOrEqual(t, size, int64(most), arch)
		t.Logf("%s: %d bytes are sent", arch, size)
	}
}

// smallHost dials a machine that is brought cmd/limpet-connect.
func smallHost(t *testing.T, m machine) *host.Host {
	t.Helper()
	h := dial(t, m.target, &host.Options{Executable: small(t, runtime.GOARCH)})
	exe, err := os.ReadFile(h.Hello().Executable)
	require.NoError(t, err)
	want, err := os.ReadFile(small(t, runtime.GOARCH))
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, exe), "another program answers")
	return h
}

func TestTheSmallProgramKeepsSessionsJobsAndTerminals(t *testing.T) {
	m := machineOf(t, "sh")
	ctx := testenv.Context(t)
	h := smallHost(t, m)
	version, err := exec.Command(small(t, runtime.GOARCH), "version").Output()
	require.NoError(t, err)
	assert.Equal(t, strings.TrimSpace(string(version)), "limpet-connect "+h.Hello().Version)
	s, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	_, err = s.Run(ctx, "cd /usr; x=1; set -o pipefail")
	require.NoError(t, err)
	job, err := s.StartJob(ctx, jobs.Spec{Command: "until [[ -e " + m.home + "/go ]]; do sleep 0.05; done; echo went; exit 3"})
	require.NoError(t, err)
	require.NoError(t, h.Disconnect())

	h = smallHost(t, m)
	s, err = h.Session(ctx, "s", nil)
	require.NoError(t, err)
	res, err := s.Run(ctx, "echo $PWD $x; false")
	require.NoError(t, err)
	assert.Equal(t, "/usr 1\n", res.Stdout.String())
	assert.Equal(t, 1, res.ExitCode)
	_, err = s.Run(ctx, "echo >"+m.home+"/go")
	require.NoError(t, err)
	all, err := s.Jobs()
	require.NoError(t, err)
	ended, err := all.Wait(ctx, jobs.WaitOptions{IDs: []string{job.ID}})
	require.NoError(t, err)
	require.NotNil(t, ended.Job.Exit)
	assert.Equal(t, 3, ended.Job.Exit.Code, "its supervisor is of the small program, too")
	log, err := all.Log(job.ID, jobs.LogOptions{})
	require.NoError(t, err)
	assert.Equal(t, "went\n", log.Text)

	one := startTerminal(t, s, terminal.Spec{Line: `printf '\033[41mred\033[0m'; read -r x`})
	_, err = one.Wait(ctx, terminal.WaitOptions{Text: "red", Timeout: testenv.Patience})
	require.NoError(t, err)
	shown, err := one.Screen()
	require.NoError(t, err)
	assert.Equal(t, "red", shown.Text())
	var b bytes.Buffer
	require.NoError(t, picture.PNG(&b, shown.Screen))
	_, err = png.Decode(&b)
	require.NoError(t, err, "it is drawn here: there are no fonts over there")

	fork, err := s.Fork(ctx, "f")
	require.NoError(t, err)
	defer fork.(*keeper.Kept).Disconnect()
	res, err = fork.Run(ctx, "echo $x")
	require.NoError(t, err)
	assert.Equal(t, "1\n", res.Stdout.String())
}

// The test's own program is as a whole limpet, as is what stands in for it: it keeps sessions that the small one goes on with, and the other way round.
func TestSessionsOfAWholeLimpetAndOfASmallOneAreUpgradedToEachOther(t *testing.T) {
	m := machineOf(t, "sh")
	ctx := testenv.Context(t)
	whole := dial(t, m.target, &host.Options{Executable: proc.Self()})
	s, err := whole.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	exe := func(h *host.Host) string {
		k, err := h.Session(ctx, "s", nil)
		require.NoError(t, err)
		defer k.Disconnect()
		res, err := k.Run(ctx, "echo $x; readlink /proc/$PPID/exe")
		require.NoError(t, err)
		return strings.TrimSpace(res.Stdout.String())
	}
	_, err = s.Run(ctx, "x=1")
	require.NoError(t, err)
	little := smallHost(t, m)
	assert.Equal(t, "1\n"+whole.Hello().Executable, exe(little))
	require.NotEqual(t, whole.Hello().Executable, little.Hello().Executable)
	for _, h := range []*host.Host{little, whole} {
		k, err := h.Session(ctx, "s", nil)
		require.NoError(t, err)
		_, err = h.Upgrade(ctx, k, keeper.Upgrade{Force: true})
		require.NoError(t, err)
		assert.Equal(t, "1\n"+h.Hello().Executable, exe(whole))
	}
}

// Where it is the limpet in the PATH of a machine, nothing is brought.
func TestTheSmallProgramIsTheLimpetInAPath(t *testing.T) {
	path := programs(t, needed+" bash", nil)
	require.NoError(t, os.Symlink(small(t, runtime.GOARCH), filepath.Join(path, "limpet")))
	m := machineOf(t, "XDG_CACHE_HOME="+testenv.TempDir(t), "PATH="+path, "sh")
	h := dial(t, m.target, &host.Options{Progress: func(int64, int64) { t.Error("one is brought") }})
	assert.Equal(t, small(t, runtime.GOARCH), h.Hello().Executable)
	s, err := h.Temporary(testenv.Context(t), "s", &keeper.Spec{})
	require.NoError(t, err)
	res, err := s.Run(testenv.Context(t), "echo ran")
	require.NoError(t, err)
	assert.Equal(t, "ran\n", res.Stdout.String())
}

func TestTheSmallProgramSaysWhatItIsFor(t *testing.T) {
	program := small(t, runtime.GOARCH)
	out, err := exec.Command(program, "version").Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), runtime.GOOS+"/"+runtime.GOARCH)
	for _, args := range []string{"", "run true", "connect --stdio"} { // The last one has no pipes.
		said, err := exec.Command(program, strings.Fields(args)...).CombinedOutput()
		ended, ok := errors.AsType[*exec.ExitError](err)
		require.True(t, ok, args)
		assert.Equal(t, 2, ended.ExitCode(), args)
		assert.Contains(t, string(said), "started by limpet", args)
	}
}

// For a system like this one a file in Agents is optional. A file that does not fit is passed over, and the caller is told. Then the file beside this
// program is brought; if there is none, this program.
func TestAProgramForThisSystemIsTakenFromAgents(t *testing.T) {
	name := "limpet-linux-" + runtime.GOARCH
	broken, ours := testenv.TempDir(t), filepath.Dir(small(t, runtime.GOARCH))
	require.NoError(t, os.WriteFile(filepath.Join(broken, name), []byte("broken"), 0o700))
	self, err := os.ReadFile(filepath.Join(proc.ExecutableDir(), name)) // If something stands in for it.
	if errors.Is(err, fs.ErrNotExist) {
		self, err = os.ReadFile(proc.Self())
	}
	require.NoError(t, err)
	want, err := os.ReadFile(filepath.Join(ours, name))
	require.NoError(t, err)
	for dir, c := range map[string]struct {
		exe  []byte
		told string
	}{
		ours:   {want, ""},
		broken: {self, filepath.Join(broken, name) + ": it is not a program that Go has built"},
	} {
		m := machineOf(t, "XDG_CACHE_HOME="+testenv.TempDir(t), "sh")
		told := ""
		opts := host.Options{Agents: dir, PassedOver: func(why error) { told += why.Error() }}
		h := dial(t, m.target, &opts)
		exe, err := os.ReadFile(h.Hello().Executable)
		require.NoError(t, err)
		assert.True(t, bytes.Equal(c.exe, exe), "for %q", c.told)
		if c.told == "" {
			assert.Empty(t, told)
			continue
		}
		assert.Contains(t, told, c.told)
		told = ""
		dial(t, m.target, &opts)
		assert.Empty(t, told, "nothing is brought")
	}
}

// For another system there is nothing else to bring, and the error says why the file is passed over.
func TestAProgramForAnotherSystemThatDoesNotFitIsAnError(t *testing.T) {
	dir := testenv.TempDir(t)
	b, err := os.ReadFile(small(t, runtime.GOARCH))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "limpet-linux-riscv64"), b, 0o700))
	target := "exec:env -i HOME=/nowhere PATH=" + programs(t, "sh bash id head", map[string]string{"uname": `[ "$1" = -s ] && echo Linux || echo riscv64`}) + " sh"
	err = failing(t, target, &host.Options{Agents: dir})
	require.ErrorIs(t, err, host.ErrNoProgram)
	assert.ErrorContains(t, err, filepath.Join(dir, "limpet-linux-riscv64")+": it is for linux/"+runtime.GOARCH)
	assert.ErrorContains(t, err, "--agents or LIMPET_AGENTS")
}

// The test binary is a part of limpet, too, so that nothing which is there or is brought is enough.
func TestWhatNeedsLimpetAsAWholeIsNotDoneByAPart(t *testing.T) {
	path := programs(t, needed+" bash", nil)
	require.NoError(t, os.Symlink(small(t, runtime.GOARCH), filepath.Join(path, "limpet")))
	m := machineOf(t, "PATH="+path, "sh")
	sharing(t)
	for _, share := range []bool{false, true} {
		h := dial(t, m.target, &host.Options{Share: share})
		assert.NotEmpty(t, h.Hello().Lacks)
		err := failing(t, m.target, &host.Options{Share: share, Whole: true, Executable: os.Args[0]})
		require.ErrorIs(t, err, host.ErrPart)
		assert.ErrorContains(t, err, "have limpet itself there")
	}
}
