package approve

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// In a sandbox, too, a script asks only if it uses what changed. A directory of the sandbox's own that comes into PATH is not looked into.
func TestInASandboxOnlyWhatChangedAsks(t *testing.T) {
	testenv.Slow(t)
	if _, err := sandbox.Probe(t.Context()); err != nil {
		t.Skipf("no sandbox is to be had here: %q", err)
	}
	for _, row := range []struct{ setup, script, why string }{
		{"f() { :; }", "ls", ""},
		{"source /dev/null", "ls | sort | wc -l; cat /etc/hostname", ""},
		{"mkdir -p venv/bin; touch venv/bin/pip; chmod +x venv/bin/pip; export VIRTUAL_ENV=$PWD/venv; PATH=$PWD/venv/bin:$PATH; hash -r", "ls; grep -r x .", ""},
		{"PATH=$PATH:/usr/local/bin", "ls", ""},
		{"f() { :; }; true", "kill -0 $$; touch /usr/nosuch", ""},
		{"PATH=/nosuch/bin:$PATH", "ls", ""},
		{"ls() { touch a; }", "ls", "ls is a function here, since: ls() { touch a; }"},
		{"kill() { touch a; }", "kill 1", "kill is a function here"},
		{"touch() { command touch a; }", "touch /usr/nosuch", "touch is a function here"},
		{"PATH=/tmp/x:$PATH", "ls", "ls is /tmp/x/ls, where the sandbox may have a file of its own"},
		{"PATH=~/x:$PATH", "ls", "where the sandbox may have a file of its own"},
		{"PATH=/var/tmp:$PATH", "ls", "where the sandbox may have a file of its own"},
		{"PATH=/dev/shm:$PATH", "ls", "where the sandbox may have a file of its own"},
		{"PATH=/proc/self/cwd:$PATH", "ls", "where the sandbox may have a file of its own"},
		{"mkdir bin; cp /bin/true bin/ls; PATH=$PWD/bin:$PATH", "ls", "PATH was changed here: ls is"},
		{"mkdir bin; ln -s /tmp/x bin/ls; ln -s /tmp y; PATH=$PWD/y:$PATH", "ls", "where the sandbox may have a file of its own"},
		{"PATH=:$PATH", "ls", "it has a directory that is not absolute"},
		{"hash -p /tmp/x ls", "ls", "ls is /tmp/x here: bash remembers that"},
		{"hash -p /tmp/ls ls", "ls", "where the sandbox may have a file of its own"},
		{"trap 'touch a' EXIT; trap 'touch a' USR1", "ls", "a trap for"},
		{"export LD_PRELOAD=/tmp/x.so", "ls", "LD_PRELOAD was exported here"},
		{"exec 3>a", "echo x >&3", "descriptor 3 is open in the shell"},
		{"set -k", "ls a=b", "the option keyword"},
		{"mkdir -p /tmp/a /tmp/bin; cp /bin/true /tmp/bin/ls; ln -s /tmp/a l; PATH=$PWD/l/../bin:$PATH", "ls", "where the sandbox may have a file of its own"},
		{"mkdir -p /tmp/q/r /tmp/usr/bin; cp /bin/true /tmp/usr/bin/ls; ln -s /tmp/q/r /tmp/l; PATH=/tmp/l/../../usr/bin:$PATH", "ls", "where the sandbox may have a file of its own"},
		{"mkdir -p /tmp/a /tmp/bin; cp /bin/true /tmp/bin/ls; ln -s /tmp/a ~/l; PATH=~/l/../bin:$PATH", "ls", "where the sandbox may have a file of its own"},
		{"PATH=$PWD/./bin:$PATH", "ls", "where the sandbox may have a file of its own"},
		{"PATH=//usr//bin:$PATH", "ls", ""},
		{"mkdir -p ~/bin; cp /bin/true ~/bin/ls; hash -r; f() { :; }", "cat /etc/hostname", ""}, // ~/bin was in PATH, and was empty then.
		{"export LD_LIBRARY_PATH=/tmp/libs", "ls", "LD_LIBRARY_PATH was exported here"},
		{"export BASH_ENV=/tmp/x", "bash -c ls", "BASH_ENV was exported here"},
		{"f() { :; }", "od a", "/hidden/od, where the sandbox may have a file of its own"},
		{"export LC_TIME=C", "ls -l", ""},
	} {
		t.Run(row.setup+" / "+row.script, func(t *testing.T) {
			work := testenv.TempDir(t)
			policy := sandbox.WorkspaceWrite(work)
			home := testenv.TempDir(t)
			hidden := filepath.Join(home, "hidden") // What this machine has there the sandbox has not.
			require.NoError(t, os.Mkdir(hidden, 0o700))
			require.NoError(t, os.Symlink("/bin/true", filepath.Join(hidden, "od")))
			link := filepath.Join(testenv.TempDir(t), "home")
			require.NoError(t, os.Symlink(home, link))
			t.Setenv("HOME", home)
			env := []string{"PATH=" + home + "/bin:" + hidden + ":/usr/bin:/bin", "HOME=" + link, "LANG=C.UTF-8", "LD_LIBRARY_PATH=/tmp/libs", "BASH_ENV=/tmp/x"}
			var refuse atomic.Bool
			opts := &approval.Options{Home: home, Path: PathOf(env), File: File, Exported: Exported(env)}
			Confine(opts, policy)
			gate := approval.NewGate(func(context.Context, approval.Question) (approval.Reply, error) {
				if refuse.Load() {
					return approval.Reply{Answer: approval.No}, nil
				}
				return approval.Reply{Answer: approval.Once}, nil
			}, opts)
			r, err := session.New(&session.Options{
				Shell: &shell.Options{Env: env, Dir: work, RuntimeDir: testenv.TempDir(t)}, Policy: &policy,
				Approve: func(session.Approved) session.Approver { return approver{gate, time.Minute} },
			})
			require.NoError(t, err)
			defer func() { require.NoError(t, r.Close()) }()
			s, err := r.Open(t.Context(), "s", nil)
			require.NoError(t, err)
			_, err = s.Run(t.Context(), row.setup)
			require.NoError(t, err)
			refuse.Store(true)
			_, err = s.Run(t.Context(), row.script)
			if row.why == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, row.why)
			}
			_, err = s.Look(t.Context())
			require.ErrorContains(t, err, "it is in a sandbox", "whoever looks from elsewhere does not know its files")
		})
	}
}
