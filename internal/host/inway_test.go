package host_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// tiny returns a program that can be brought, a few bytes long, which serves the connection by this test program.
func tiny(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	file := filepath.Join(testenv.TempDir(t), "limpet")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "#!/bin/bash\nexec -a limpet-connect %s \"$@\"\n", self), 0o700))
	return file
}

// bringing dials, and reports whether a program was brought.
func bringing(t *testing.T, target string, opts host.Options) (brought bool) {
	t.Helper()
	opts.Progress = func(sent, of int64) { brought = true }
	h := dial(t, target, &opts)
	require.NoError(t, h.Disconnect())
	return brought
}

// Whatever has the place of the program over there, the copy gets that place, or another directory is taken.
func TestWhatHasThePlaceOfTheProgram(t *testing.T) {
	testenv.Slow(t)
	program := tiny(t)
	elsewhere := testenv.TempDir(t)
	type place struct {
		name    string
		makes   string // a script, which has the path of the program in $f, that of its directory in $d, and the program itself as $x
		another bool   // directory is taken
	}
	places := []place{
		{"an empty directory", "mkdir $f", true},
		{"a directory with a file in it", "mkdir $f; echo >$f/x", true},
		{"a link to a directory", "ln -s " + elsewhere + " $f", false},
		{"a link to a file", "cp $x $d/y; ln -s y $f", false},
		{"a link to nothing", "ln -s nothing $f", false},
		{"a fifo", "mkfifo $f", false},
		{"another file", "echo >$f; chmod 700 $f", false},
		{"a file that others can write to", "cp $x $f; chmod 722 $f", false},
		{"a file in the place of its directory", "rmdir $d; echo >$d", true},
		{"a link to a directory that others can write to", "rmdir $d; mkdir $d.x; chmod 777 $d.x; ln -s $d.x $d", true},
		{"a directory that others can write to", "chmod 777 $d", true},
		{"a link to a directory of the user's", "mv $d $d.x; ln -s $d.x $d", true},
		{"a file that is too large to be read", "truncate -s 1T $f; chmod 700 $f", false},
		{"a link that others can change", "s=${d%/bin/*}/safe; mv $d $s; ln -s $s $d; chmod 777 ${d%/*}", true},
	}
	if os.Getuid() == 0 {
		places = append(places, place{"a file of another user", "cp $x $f; chown 12345 $f", false}, place{"a directory of another user", "chown 12345 $d", true},
			place{"a link of another user above it", "l=${d%/bin/*}; rm -r $l; ln -s " + elsewhere + " $l; chown -h 12345 $l", true},
			place{"a directory of another user above it", "l=${d%/bin/*}; rm -r $l/bin; chown 12345 $l", true})
	}
	for _, row := range places {
		t.Run(row.name, func(t *testing.T) {
			home := testenv.TempDir(t)
			target := "exec:env -i GORACE=" + race + " HOME=" + home + " XDG_CACHE_HOME=" + home + " PATH=" + os.Getenv("PATH") + " sh"
			require.True(t, bringing(t, target, host.Options{Executable: program}))
			found, err := filepath.Glob(home + "/limpet/bin/*/limpet-connect")
			require.NoError(t, err)
			require.Len(t, found, 1)
			file := found[0]
			dir := filepath.Dir(file)
			other := filepath.Join("/var/tmp/limpet-"+uid()+"/bin", filepath.Base(dir))
			t.Cleanup(func() { require.NoError(t, os.RemoveAll(other)) }) // The hash is that of this test's program.
			out, err := exec.Command("bash", "-ec", "f="+file+" d="+dir+" x="+home+"/x; mv $f $x; "+row.makes).CombinedOutput()
			require.NoError(t, err, "%s", out)

			assert.True(t, bringing(t, target, host.Options{Executable: program}))
			assert.False(t, bringing(t, target, host.Options{Executable: program}), "it is found")
			if row.another {
				assert.FileExists(t, filepath.Join(other, "limpet-connect"))
			} else {
				st, err := os.Lstat(file)
				require.NoError(t, err)
				assert.True(t, st.Mode().IsRegular())
				assert.NoDirExists(t, other)
			}
			left, err := os.ReadDir(elsewhere)
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}

// The lines of an answer cannot have any path. What others can write to has the path that would be left of one.
func TestAPathThatNoLineCanHave(t *testing.T) {
	testenv.Slow(t)
	program := tiny(t)
	b, err := os.ReadFile(program)
	require.NoError(t, err)
	hash := fmt.Sprintf("%x", sha256.Sum256(b))
	type odd struct {
		name, left string
		mode       fs.FileMode // of what is left
		fits       bool
		shell      string
	}
	var rows []odd
	for _, shell := range []string{"sh", "bash", "busybox sh"} {
		rows = append(rows, odd{"odd ", "odd", 0o777, true, shell}, odd{"two\nlines", "two", 0o777, false, shell},
			odd{"return\r", "return", 0o777, false, shell}, odd{"end\n", "end", 0o777, false, shell}, odd{"last\n", "last", 0o700, false, shell})
	}
	for _, row := range rows {
		if _, err := exec.LookPath(strings.Fields(row.shell)[0]); err != nil {
			continue
		}
		home := testenv.TempDir(t)
		place := filepath.Join(home, row.name)
		for _, dir := range []string{"limpet", row.name, row.left} {
			require.NoError(t, os.Mkdir(filepath.Join(home, dir), 0o700))
		}
		require.NoError(t, os.Chmod(filepath.Join(home, row.left), row.mode))
		require.NoError(t, os.Symlink(place, filepath.Join(home, "limpet", "bin")))
		other := filepath.Join("/var/tmp/limpet-"+uid()+"/bin", hash)
		t.Cleanup(func() { require.NoError(t, os.RemoveAll(other)) }) // The hash is that of this test's program.
		target := "exec:env -i GORACE=" + race + " HOME=" + home + " XDG_CACHE_HOME=" + home + " PATH=" + os.Getenv("PATH") + " " + row.shell
		assert.True(t, bringing(t, target, host.Options{Executable: program}), "%q by %s", row.name, row.shell)
		assert.False(t, bringing(t, target, host.Options{Executable: program}), "%q by %s: it is found", row.name, row.shell)
		used, unused := place, other
		if !row.fits {
			used, unused = filepath.Dir(other), filepath.Join(place, hash)
		}
		assert.FileExists(t, filepath.Join(used, hash, "limpet-connect"), "%q by %s", row.name, row.shell)
		assert.NoDirExists(t, unused, "%q by %s", row.name, row.shell)
		left, err := os.ReadDir(filepath.Join(home, row.left))
		require.NoError(t, err)
		assert.Empty(t, left, "%q by %s", row.name, row.shell)
		require.NoError(t, os.RemoveAll(other))
	}
}

// Behind a link whose end nobody else can change it is found, and executed by its real path: the link may be another one a moment later.
func TestACopyBehindALinkIsExecutedByItsRealPath(t *testing.T) {
	home, self := testenv.TempDir(t), os.Args[0]
	log := filepath.Join(home, "log")
	program := filepath.Join(home, "program")
	require.NoError(t, os.WriteFile(program, fmt.Appendf(nil, "#!/bin/bash\necho \"$0\" >>%s\nexec -a limpet-connect %s \"$@\"\n", log, self), 0o700))
	target := "exec:env -i GORACE=" + race + " HOME=" + home + " XDG_CACHE_HOME=" + home + " PATH=" + os.Getenv("PATH") + " sh"
	require.True(t, bringing(t, target, host.Options{Executable: program}))
	found, err := filepath.Glob(home + "/limpet/bin/*")
	require.NoError(t, err)
	require.Len(t, found, 1)
	safe := filepath.Join(home, "safe")
	require.NoError(t, os.Rename(found[0], safe))
	require.NoError(t, os.Symlink(safe, found[0]))
	require.NoError(t, os.Remove(log))
	assert.False(t, bringing(t, target, host.Options{Executable: program}))
	ran, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Equal(t, safe+"/limpet-connect\n", string(ran))
}

// A limpet in the PATH that does not answer is named, and does not keep another one from being copied.
func TestALimpetThatHangsIsPassedOver(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	for name, tools := range map[string]string{"with timeout": needed + " bash sleep timeout true", "without": needed + " bash sleep"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := programs(t, tools, map[string]string{"limpet": "exec sleep 1000"})
			mark := "HANGS=" + dir
			t.Cleanup(func() {
				for _, left := range testenv.Marked(mark) {
					_ = syscall.Kill(left.PID, syscall.SIGKILL) // It may have ended just now.
				}
				testenv.AwaitNone(t, mark, "when the limpets that hang were killed")
			})
			target := "exec:env -i GORACE=" + race + " " + mark + " HOME=" + testenv.TempDir(t) + " PATH=" + dir + " sh"
			const patience = time.Second
			var told []string
			opts := host.Options{Executable: tiny(t), Patience: patience, PassedOver: func(why error) { told = append(told, why.Error()) }}
			hangs := "the limpet in the PATH over there does not answer: " + dir + "/limpet has not said within 1s which versions of the protocol it speaks"
			require.True(t, bringing(t, target, opts))
			assert.Equal(t, []string{hangs}, told)
			assert.False(t, bringing(t, target, opts), "it is there")
			assert.Equal(t, []string{hangs, hangs}, told)

			require.NoError(t, os.Remove(filepath.Join(dir, "head")))
			opts.Executable = os.Args[0] // Which is not there.
			assert.ErrorContains(t, failing(t, target, &opts), "there is no head(1); "+hangs+"; have that limpet answer")
		})
	}
}

// What is reached may send back the script that limpet has sent. An error does not quote it: it does not say why the machine is not reached.
func TestWhatIsSentBackIsNotQuoted(t *testing.T) {
	testenv.Slow(t)
	for _, argv := range []string{"cat", "cat -n", "sh -c 'echo welcome; cat'", "sh -c 'echo welcome; cat >&2'", "sh -c 'echo welcome; head -n 30; exit 3'"} {
		err := failing(t, "exec:"+argv, &host.Options{Patience: time.Second})
		assert.NotContains(t, err.Error(), "limpet_", argv)
		assert.NotContains(t, err.Error(), "shellcheck", argv)
		if strings.Contains(argv, ">&2") {
			assert.ErrorContains(t, err, "nothing was heard from there for 1s; it said: welcome")
		} else {
			assert.ErrorContains(t, err, "it sends back what it is sent, as cat does, and as a terminal does")
			assert.ErrorContains(t, err, "leave -t out")
		}
	}
}

// Where HOME is relative over there, sessions have the home directory that the system knows of the user, as where HOME is not set.
func TestARelativeHomeIsNone(t *testing.T) {
	target := "exec:env -i GORACE=" + race + " HOME=nowhere XDG_STATE_HOME=" + testenv.TempDir(t) + " PATH=" + os.Getenv("PATH") + " sh"
	opts := host.Options{Executable: tiny(t)}
	b, err := os.ReadFile(opts.Executable)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, os.RemoveAll(fmt.Sprintf("/var/tmp/limpet-%s/bin/%x", uid(), sha256.Sum256(b))))
	})
	h := dial(t, target, &opts)
	s, err := h.Temporary(testenv.Context(t), host.TemporaryName("home"), &keeper.Spec{})
	require.NoError(t, err)
	res, err := s.Run(testenv.Context(t), "echo $HOME; pwd")
	require.NoError(t, err)
	me, err := user.Current()
	require.NoError(t, err)
	assert.Equal(t, me.HomeDir+"\n"+me.HomeDir+"\n", res.Stdout.String())
	assert.NoDirExists(t, "nowhere")
}
