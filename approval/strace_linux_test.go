package approval_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
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
	execs = regexp.MustCompile(`execve\("([^"]+)".*= 0$`)
	opens = regexp.MustCompile(`open(?:at)?\([^"]*"([^"]+)", ([A-Z_|]+)`)
	other = regexp.MustCompile(`\b(unlink|rename|mkdir|rmdir|link|symlink|chmod|chown|truncate|mknod|connect)(?:at2?)?\(.*= 0$`)
)

// Each program that an allowed script starts is one of its findings, and it opens no file for writing and changes none.
func TestAllowedScriptsDoWhatWasFound(t *testing.T) {
	for _, program := range []string{"bwrap", "strace", "bash"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the system calls of a script cannot be seen here: no %s", program)
		}
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("one:1\ntwo:2\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b"), []byte("two:2\nfour:4\n"), 0o600))
	trace := filepath.Join(t.TempDir(), "trace")
	for _, script := range traced {
		j := approval.Judge(script, nil)
		if !assert.Equal(t, approval.Allow, j.Verdict, script) {
			continue
		}
		cmd := exec.Command("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--bind", dir, dir, "--bind", filepath.Dir(trace), filepath.Dir(trace), "--unshare-pid", "--proc", "/proc", "--unshare-net", "--die-with-parent", "--chdir", dir,
			"strace", "-f", "-qq", "-e", "trace=execve,open,openat,creat,unlink,unlinkat,rename,renameat,renameat2,mkdir,mkdirat,rmdir,link,linkat,symlink,symlinkat,chmod,fchmodat,chown,fchownat,truncate,mknod,mknodat,connect",
			"-o", trace, "bash", "--norc", "--noprofile", "-c", script)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent", "LC_ALL=C"}
		out, err := cmd.CombinedOutput()
		if text := string(out); err != nil && (strings.Contains(text, "bwrap:") || strings.Contains(text, "ptrace")) {
			t.Skipf("the system calls of a script cannot be seen here: %s", text)
		}
		checkTrace(t, script, trace, j)
	}
}

func checkTrace(t *testing.T, script, trace string, j approval.Judgement) {
	t.Helper()
	file, err := os.Open(trace)
	require.NoError(t, err)
	defer func() { _ = file.Close() }() // It was read only.
	seen := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		line := lines.Text()
		if m := execs.FindStringSubmatch(line); m != nil {
			seen++
			name := filepath.Base(m[1])
			found := slices.ContainsFunc(j.Findings, func(f approval.Finding) bool {
				return f.Kind == approval.KindCommand && slices.Contains(regexp.MustCompile(`[\w.-]+`).FindAllString(f.Text, -1), name)
			})
			assert.True(t, found || seen == 1, "%q starts %s, which is no finding", script, name) // The first is bash itself.
		}
		if m := opens.FindStringSubmatch(line); m != nil && regexp.MustCompile(`O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND`).MatchString(m[2]) {
			heredoc := strings.Contains(m[1], "sh-thd") // Bash's own, for a here-document.
			assert.True(t, m[1] == "/dev/null" || m[1] == "/dev/tty" || heredoc, "%q opens %s for writing", script, m[1])
		}
		if !strings.Contains(line, "sh-thd") && !strings.Contains(line, "nscd") {
			assert.NotRegexp(t, other, line, "%q changes something", script)
		}
	}
	assert.Positive(t, seen, "%q: strace has seen nothing", script)
}
