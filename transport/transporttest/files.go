package transporttest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport"
)

// unguessable is a name of 96 random bits.
var unguessable = regexp.MustCompile(`[0-9a-f]{24}`)

// checkPrivate checks what is in a runtime directory, and returns how many
// files there are. A directory of the user's, limpet-UID, holds one of the
// program, which has an unguessable name, as have those of its shells. These belong
// to whom the transport runs things as, who can pass through the two above.
func (s suite) checkPrivate(t *testing.T, dir string) (files int) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // It is gone, which is private enough.
		}
		name, _ := filepath.Rel(dir, path) // It is below dir.
		if entry.IsDir() {
			want := "drwx------"
			if strings.Count(name, string(filepath.Separator)) < 2 && transport.UserOf(s.transport) != nil {
				want = "drwx--x--x"
			}
			assert.Equal(t, want, info.Mode().String(), name)
		} else {
			files++
			want := "-rw-------"
			if (strings.Contains(name, "/out/") || strings.Contains(name, "/oneshot-")) && transport.UserOf(s.transport) != nil {
				want = "-rw-rw-rw-" // A capture: nobody else can enter its directory.
			}
			assert.Equal(t, want, info.Mode().String(), name)
		}
		if parts := strings.Split(name, string(filepath.Separator)); len(parts) == 2 || len(parts) == 3 && entry.IsDir() {
			assert.Regexp(t, unguessable, entry.Name(), "a name that can be guessed")
		}
		return nil
	}))
	return files
}

// checkEmpty checks that nothing is left of programs in a runtime directory.
func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "limpet-*", "*"))
	require.NoError(t, err)
	assert.Empty(t, left, "left behind")
}

// 38. Directories 0700, files 0600, unguessable names, all removed at Close,
// whatever the shell's umask is.
func privateFiles(t *testing.T, s suite) {
	dir := s.runtimeDir(t)
	x := s.start(t, func(o *shell.Options) { o.RuntimeDir, o.OutputLimit, o.SpoolLimit = dir, 1000, 1<<20 })
	for _, script := range []string{
		"true", "umask 000", "yes | head -c 100000", "sleep 1000 &", "exit 3", "echo | false", "trap 'echo usr' USR1", "kill -9 $BASHPID",
		"umask 777", "set -e; false", "kill -9 $BASHPID", "exit 3", "umask 022",
	} {
		_, _ = x.do(command.Request{Script: script}) // Its result is not the point.
		assert.Positive(t, s.checkPrivate(t, dir), script)
	}
	_, err := x.do(command.Request{Script: "cat", Stdin: strings.NewReader("in")})
	require.NoError(t, err)
	s.checkPrivate(t, dir)
	// While a command runs, also.
	x.interruptAt("ready", "echo >ready; while :; do :; done")
	s.checkPrivate(t, dir)

	y := s.start(t, func(o *shell.Options) { o.RuntimeDir = dir })
	y.want("", "yes >/dev/null & sleep 1000 & setsid sleep 1001 &")
	require.NoError(t, x.Close())
	y.want("fine\n", "echo fine")
	require.NoError(t, y.Close())
	checkEmpty(t, dir)
}

// 38. Secrets are in neither argv nor the child's environment.
func secrets(t *testing.T, s suite) {
	testenv.NeedProc(t)
	const secret = "hunter2-correct-horse"
	for _, name := range []string{"ACME_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "AWS_SESSION_NAME", "X_SECRET"} {
		t.Setenv(name, secret)
	}
	t.Setenv("BASH_ENV", "/nosuch")
	x := s.start(t)
	assert.NotContains(t, x.run("env; set; declare -p").Stdout.String(), secret)
	y := s.start(t, func(o *shell.Options) { o.Env = shell.DefaultEnv("GITHUB_TOKEN") })
	y.want(secret+"\n", "echo $GITHUB_TOKEN$ACME_API_KEY")

	// What a request brings is in its environment, for as long as it runs, and
	// in the arguments of nobody, while it runs and afterwards.
	x.want("", "mkfifo go")
	done := make(chan error, 1)
	go func() {
		_, err := x.Do(t.Context(), command.Request{
			Script: "echo >ready; read line <go; : not-in-argv " + secret, Env: []string{"ACME_API_KEY=" + secret},
		})
		done <- err
	}()
	testenv.AwaitFile(t, x.file("ready"))
	checkArguments(t, secret)
	require.NoError(t, os.WriteFile(x.file("go"), []byte("\n"), 0))
	require.NoError(t, <-done)
	checkArguments(t, secret)
	x.want("none\n", "echo ${ACME_API_KEY-none}")
	_, err := x.do(command.Request{Script: "echo hi", Env: []string{"not an identifier=" + secret}})
	require.Error(t, err)
	assert.NotContains(t, err.Error(), secret)
}

// checkArguments looks at the arguments of every process, not only of ours.
func checkArguments(t *testing.T, secret string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, path := range all {
		b, _ := os.ReadFile(path) // It may be gone.
		assert.NotContains(t, string(b), secret, path)
	}
}
