package shell_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

func TestResetNamesTheDirectoryThatIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	require.NoError(t, os.Mkdir(dir, 0o755))
	sh := start(t, &shell.Options{Dir: dir})
	run(t, sh, "cd /; x=1")
	require.NoError(t, os.Remove(dir))
	for range 2 {
		err := sh.Reset(testenv.Context(t))
		where, ok := errors.AsType[*shell.DirError](err)
		require.True(t, ok, "%T: %v", err, err)
		assert.Equal(t, dir, where.Dir)
		require.ErrorIs(t, err, fs.ErrNotExist)
		assert.ErrorContains(t, err, "make it")

		res, err := sh.Run(testenv.Context(t), "echo ran")
		_, ok = errors.AsType[*shell.DirError](err)
		require.True(t, ok, "%T: %v", err, err)
		assert.Equal(t, command.CodeUnknown, res.ExitCode)
	}
	require.NoError(t, os.Mkdir(dir, 0o755))
	assert.Equal(t, dir+" unset", says(t, sh, "echo $PWD ${x-unset}"))
}

func TestTheRuntimeDirectoryMayHaveAnyName(t *testing.T) {
	testenv.Slow(t)
	for _, name := range []string{
		"a b", "a'b", `a"b`, "a!b", "a\nb", "ä\u3000ö", "-rf", "$HOME", "`id`", "a\\b", "a\\", "*", "~", "[a]", "{a,b}", "a;b&c", "#a", "\x01", "\xff", "a\tb",
		strings.Repeat("x", 200),
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), name)
			require.NoError(t, os.Mkdir(dir, 0o700))
			sh := start(t, &shell.Options{RuntimeDir: dir})
			assert.Equal(t, "1", says(t, sh, "x=1; f() { echo f; }; echo $x"))
			assert.Equal(t, "f", says(t, sh, "f | cat"))
			assert.Equal(t, 3, run(t, sh, "(exit 3)").ExitCode)
			assert.Equal(t, "3", says(t, sh, "echo $?"))
			res, err := sh.Do(testenv.Context(t), command.Request{Script: "pwd; echo err >&2", Dir: "/"})
			require.NoError(t, err)
			assert.Equal(t, "/\n", res.Stdout.String())
			assert.Equal(t, "err\n", res.Stderr.String())
			run(t, sh, inBash+"exit 7")
			assert.Equal(t, "1 f", says(t, sh, "echo $x $(f)"))
			res, err = sh.Do(testenv.Context(t), command.Request{Script: "cat\n: " + strings.Repeat("x", 1<<18), Stdin: strings.NewReader("in")})
			require.NoError(t, err)
			assert.Equal(t, "in", res.Stdout.String())
			require.NoError(t, sh.Close())
			left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "?*", "*", "?*"))
			require.NoError(t, err)
			assert.Empty(t, left)
		})
	}
}

// What a fork changed comes back, its directory too.
func TestTheDirectoryIsThatOfAScriptThatRanInAFork(t *testing.T) {
	sh := start(t, nil)
	first := sh.Dir()
	run(t, sh, "mkdir a; set -e; cd a; false; cd /")
	assert.Equal(t, filepath.Join(first, "a"), sh.Dir())
	state, err := sh.Checkpoint(testenv.Context(t))
	require.NoError(t, err)
	assert.Equal(t, filepath.Join(first, "a"), state.Dir())

	// A request's own directory is for the script alone, unless it goes elsewhere.
	for _, script := range []string{"set -e; x=1; pwd", "set -u; x=2; pwd; exit 3", "set -e; pwd; false", "shopt -s dotglob; set -e; x=3\n((y = 1))\npwd"} {
		res, err := sh.Do(testenv.Context(t), command.Request{Script: script, Dir: "/usr"})
		require.NoError(t, err)
		assert.Equal(t, "/usr\n", res.Stdout.String(), script)
		assert.Equal(t, filepath.Join(first, "a"), sh.Dir(), script)
		assert.Equal(t, sh.Dir()+" "+sh.Dir()+" "+first, says(t, sh, "echo $(pwd) $(pwd -P) $OLDPWD"), script)
	}
	assert.Equal(t, "3 1", says(t, sh, "echo $x $y"))
	_, err = sh.Do(testenv.Context(t), command.Request{Script: "set -e; cd bin", Dir: "/usr"})
	require.NoError(t, err)
	assert.Equal(t, "/usr/bin", sh.Dir())
	assert.Equal(t, "/usr/bin /usr/bin", says(t, sh, "echo $PWD $(pwd -P)"))
}

// A script that runs in a fork has bash itself wait in the request's directory.
func TestTheDirectoryOfARequestIsForTheScriptAlone(t *testing.T) {
	other := testenv.TempDir(t)
	sub := filepath.Join(other, "sub")
	require.NoError(t, os.Mkdir(sub, 0o755))
	for script, dir := range map[string]string{
		"pwd": "", "pwd; exit 3": "", "pwd; x=1; exit 3": "", "pwd; : $$; exit 3": "", "pwd; set -e; false": "", "pwd; kill -9 $BASHPID": "",
		"pwd; cd sub": sub, "pwd; cd sub; exit 3": sub, "pwd; cd sub; cd ..; exit 3": "", "pwd; : $$; cd sub; exit 3": sub,
	} {
		t.Run(script, func(t *testing.T) {
			sh := start(t, nil)
			home := says(t, sh, "mkdir a; cd a; pwd")
			res, err := sh.Do(testenv.Context(t), command.Request{Script: script, Dir: other})
			require.NoError(t, err)
			require.Nil(t, res.Restart)
			assert.Equal(t, other+"\n", res.Stdout.String())
			want := home
			if dir != "" {
				want = dir
			}
			assert.Equal(t, want, res.Dir)
			assert.Equal(t, want, sh.Dir())
			assert.Equal(t, want, says(t, sh, "pwd"))
			if dir == "" {
				assert.Equal(t, filepath.Dir(home), says(t, sh, "cd - >/dev/null; pwd"))
			}
		})
	}
}

// Bash itself has read it, if at all, when it started.
func TestABashForOneScriptReadsNoStartFile(t *testing.T) {
	file := filepath.Join(testenv.TempDir(t), "file")
	require.NoError(t, os.WriteFile(file, []byte("echo read\n"), 0o600))
	t.Run("set by a script", func(t *testing.T) {
		sh := start(t, nil)
		run(t, sh, "export BASH_ENV="+file)
		assert.Equal(t, file+"\nread\nhi", says(t, sh, ": $$; echo $BASH_ENV; bash -c 'echo hi'; exit 3"))
		assert.Equal(t, file+"\nread\nhi", says(t, sh, "echo $BASH_ENV; bash -c 'echo hi'"))
	})
	t.Run("readonly", func(t *testing.T) {
		sh := start(t, nil)
		run(t, sh, "readonly BASH_ENV="+file+"; export BASH_ENV")
		assert.Equal(t, "read\nhi", says(t, sh, ": $$; bash -c 'echo hi'; exit 3"))
	})
	t.Run("from outside", func(t *testing.T) {
		sh := start(t, &shell.Options{Env: append(shell.DefaultEnv(), "BASH_ENV="+file)})
		assert.Equal(t, "read\nhi", says(t, sh, ": $$; bash -c 'echo hi'; exit 3"))
		run(t, sh, "BASH_ENV=/dev/null")
		assert.Equal(t, "/dev/null", says(t, sh, ": $$; echo $BASH_ENV; exit 3"))
	})
}

// A directory that is removed and made anew, by a command or by somebody else, is another one. The
// next command runs in that, as if the shell had been there all along.
func TestADirectoryThatWasMadeAnewIsEntered(t *testing.T) {
	for _, row := range []struct{ name, set string }{
		{"by a command", "( cd ..; rm -rf d; mkdir d )"},
		{"by a script in a fork", "( cd ..; rm -rf d; mkdir d ); exit 0"},
		{"with the directories above", "( cd ../..; rm -rf top; mkdir -p top/d )"},
		{"as a link", "( cd ..; rm -rf d; mkdir -p e; ln -s e d )"},
		{"by somebody else", ""},
	} {
		for _, script := range []string{"touch x", "touch x; exit 0", "$E x", "wait; touch x"} {
			t.Run(row.name+", "+script, func(t *testing.T) {
				t.Parallel()
				home := testenv.TempDir(t)
				dir := filepath.Join(home, "top", "d")
				require.NoError(t, os.MkdirAll(dir, 0o755))
				sh := start(t, &shell.Options{Dir: home})
				run(t, sh, "E=touch; cd /usr; cd '"+dir+"'")
				if row.set == "" {
					require.NoError(t, os.Remove(dir))
					assert.Equal(t, "1", says(t, sh, "touch x 2>/dev/null; echo $?"), "there is none yet")
					require.NoError(t, os.Mkdir(dir, 0o755))
				} else {
					run(t, sh, row.set)
				}
				res, err := sh.Do(testenv.Context(t), command.Request{Script: script, Env: []string{"A=1"}})
				require.NoError(t, err)
				assert.Zero(t, res.ExitCode, res.Stderr.String())
				assert.Equal(t, dir, res.Dir)
				assert.FileExists(t, filepath.Join(dir, "x"))
				assert.Equal(t, dir+" /usr", says(t, sh, "echo $PWD $OLDPWD"))
			})
		}
	}
}

// A name that looks like one of a directory that was removed is one like any other.
func TestADirectoryMayBeNamedAsIfItWereDeleted(t *testing.T) {
	sh := start(t, nil)
	run(t, sh, "mkdir 'd (deleted)'; cd /usr; cd - >/dev/null; cd 'd (deleted)'; OLDPWD=/usr")
	for range 2 {
		assert.Equal(t, "d (deleted) /usr", says(t, sh, `echo "${PWD##*/} $OLDPWD"`))
	}
}
