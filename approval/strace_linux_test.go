package approval_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// traced are scripts that are allowed. They run for real, in a sandbox.
var traced = []string{
	"ls -l", "cat a b", "head -n 1 a", "tail -1 b", "wc -l a b", "grep -n o a", "grep -rn o .", "sort a", "sort a | uniq -c", "cut -d: -f1 a", "tr a-z A-Z <a", "nl a", "tac a", "rev a",
	"find . -name a", "find . -type f -exec grep -l o {} +", "find . -type f -print0 | xargs -0 wc -l", "ls | xargs echo", "diff a b || true", "cmp -s a b || echo differ", "stat -c %s a", "du -s .", "df . >/dev/null",
	"basename /x/y", "dirname /x/y", "readlink -f a", "md5sum a", "od -c a", "seq 1 3", "date +%s", "uname -a", "id -u", "sed -n 1p a", "sed s/o/0/ a", "awk '{print $1}' a", "awk -F: '$1 > 1 {n++} END {print n}' a",
	"for f in *; do echo \"$f\"; done", "while IFS= read -r l; do echo \"$l\"; done <a", "if [ -f a ]; then echo yes; fi", "i=0; while [ $i -lt 3 ]; do echo $((i)); i=$((i+1)); done", "x=$(cat a); echo \"$x\"",
	"env LC_ALL=C ls", "timeout 5 cat a", "nice ls", "command ls", "bash -c 'cat a; ls'", "sh -c 'cat a | wc -l'", "cat <<E\nx $(cat a)\nE", "cat <(cat a)", "printf '%s\\n' a b | paste -sd,", "test -e a && cat a", "[[ a == a ]] && ls 2>/dev/null", "cd / && ls", "case a in a) ls;; esac", "time ls", "! cat nosuch", "comm -12 <(sort a) <(sort b)",
}

var (
	execs  = regexp.MustCompile(`execve\("([^"]+)".*= 0$`)
	opens  = regexp.MustCompile(`open(?:at)?\([^"]*"([^"]+)", ([A-Z_|]+)`)
	writes = regexp.MustCompile(`O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND`)
	other  = regexp.MustCompile(`\b(unlink|rename|mkdir|rmdir|link|symlink|chmod|chown|truncate|mknod|connect|kill)(?:at2?)?\(.*= 0$`)
	word   = regexp.MustCompile(`[\w.[-]+`)
)

var unquoted = strings.NewReplacer("\\\n", "", `\`, "", `"`, "", "'", "", "$", "")

// starts are programs that others start by themselves: they are no findings of their own.
var starts = map[string]string{"egrep": "grep", "fgrep": "grep", "zcat": "gzip", "xargs": "echo"}

// tracer runs scripts that are allowed, in a sandbox in which a directory alone can be written to, and looks at what they do.
type tracer struct{ dir, trace string }

func newTracer(t *testing.T) *tracer {
	t.Helper()
	for _, program := range []string{"bwrap", "strace", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the system calls of a script cannot be seen here: no %s", program)
		}
	}
	tr := &tracer{t.TempDir(), filepath.Join(t.TempDir(), "trace")}
	require.NoError(t, os.WriteFile(filepath.Join(tr.dir, "a"), []byte("one:1\ntwo:2\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(tr.dir, "b"), []byte("two:2\nfour:4\n"), 0o600))
	return tr
}

// tracePatience is how long a script runs: some wait for ever, as tail -f does.
const tracePatience = 3 * time.Second

// run runs a script, and returns what it did that is no finding. It returns false if it did not end.
func (tr *tracer) run(t *testing.T, script string, j approval.Judgement) (beside []string, ended bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), tracePatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--bind", tr.dir, tr.dir, "--bind", filepath.Dir(tr.trace), filepath.Dir(tr.trace),
		"--unshare-pid", "--unshare-ipc", "--proc", "/proc", "--unshare-net", "--cap-drop", "ALL", "--die-with-parent", "--chdir", tr.dir,
		"strace", "-f", "-qq", "-s", "256", "-e", "trace=execve,open,openat,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,chmod,fchmodat,chown,fchownat,truncate,mknod,mknodat,connect,kill",
		"-o", tr.trace, "bash", "--norc", "--noprofile", "-c", script)
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C"}
	cmd.WaitDelay = tracePatience
	out, err := cmd.CombinedOutput()
	if err != nil && (bytes.HasPrefix(out, []byte("bwrap: ")) || bytes.HasPrefix(out, []byte("strace: "))) {
		t.Skipf("the system calls of a script cannot be seen here: %.200s", out)
	}
	return tr.beside(t, j), ctx.Err() == nil
}

// beside returns what the trace has that is no finding.
func (tr *tracer) beside(t *testing.T, j approval.Judgement) (beside []string) {
	t.Helper()
	file, err := os.Open(tr.trace)
	require.NoError(t, err)
	defer func() { _ = file.Close() }() // It was read only.
	seen := 0
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if m := execs.FindStringSubmatch(line); m != nil {
			if seen++; seen > 1 && !isFinding(j, filepath.Base(m[1])) { // The first is bash itself.
				beside = append(beside, "starts "+m[1])
			}
		}
		if strings.Contains(line, "sh-thd") || strings.Contains(line, "nscd") {
			continue // Bash's own file for a here-document, and the C library's.
		}
		if m := opens.FindStringSubmatch(line); m != nil && writes.MatchString(m[2]) && m[1] != "/dev/null" && m[1] != "/dev/tty" {
			beside = append(beside, "opens "+m[1]+" for writing")
		}
		if other.MatchString(line) {
			beside = append(beside, line)
		}
	}
	require.NoError(t, lines.Err())
	assert.Positive(t, seen, "strace has seen nothing")
	return beside
}

// isFinding reports whether a program is the command of a finding: its first word, or, where that is not known, one of its words.
func isFinding(j approval.Judgement, program string) bool {
	return slices.ContainsFunc(j.Findings, func(f approval.Finding) bool {
		switch {
		case f.Kind != approval.KindCommand:
			return false
		case len(f.Words) > 0:
			name := filepath.Base(f.Words[0])
			return name == program || starts[name] == program
		}
		return slices.ContainsFunc(word.FindAllString(unquoted.Replace(f.Text), -1), func(name string) bool { return name == program || starts[name] == program })
	})
}

// Each program that an allowed script starts is one of its findings, and it opens no file for writing and changes none.
func TestAllowedScriptsDoWhatWasFound(t *testing.T) {
	testenv.Slow(t)
	tr := newTracer(t)
	for _, script := range traced {
		j := approval.Judge(script, nil)
		if !assert.Equal(t, approval.Allow, j.Verdict, script) {
			continue
		}
		beside, ended := tr.run(t, script, j)
		assert.Empty(t, beside, "%q", script)
		assert.True(t, ended, "%q", script)
	}
}
