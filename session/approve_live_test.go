package session_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// asking is a person, and what decides in a session until that one is asked.
type asking struct {
	mu     sync.Mutex
	answer approval.Answer
	asked  []approval.Question
}

func (a *asking) ask(_ context.Context, q approval.Question) (approval.Reply, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, q)
	return approval.Reply{Answer: a.answer}, nil
}

func (a *asking) says(answer approval.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer, a.asked = answer, nil
}

// questions are those since says.
func (a *asking) questions() []approval.Question {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.asked
}

// systemFile takes what is in /usr/bin for what nobody can change.
func systemFile(path string) approval.File {
	if _, err := os.Stat(path); err != nil {
		return approval.File{}
	}
	if filepath.Dir(path) == "/usr/bin" {
		return approval.File{Path: path}
	}
	return approval.File{Path: path, Why: "a file that can be changed"}
}

// plainEnv is what the shells of these tests begin with.
func plainEnv(t *testing.T) []string {
	return []string{"PATH=/usr/bin:/bin", "HOME=" + testenv.TempDir(t), "LANG=C.UTF-8"}
}

func asked(t *testing.T) (*session.Session, *asking) {
	p := &asking{answer: approval.Once}
	exported := func(name string) bool { return name == "PATH" || name == "HOME" }
	r := registry(t, &session.Options{
		Shell: &shell.Options{Env: plainEnv(t), Dir: testenv.TempDir(t)},
		Approve: func(session.Approved) session.Approver {
			return gated{approval.NewGate(p.ask, &approval.Options{File: systemFile, Exported: exported})}
		},
	})
	return open(t, r, "s"), p
}

// Behind a script that may have changed what names mean, those scripts ask that it changed, and no others.
func TestOnlyWhatChangedAsks(t *testing.T) {
	testenv.Slow(t)
	for _, row := range []struct{ setup, script, why string }{
		// What changes nothing, or nothing that the script uses.
		{"eval :", "ls", ""},
		{"source /dev/null", "ls | sort | wc -l; date +%s; cat /etc/hostname", ""},
		{"f() { :; }", "ls", ""},
		{"f() { :; }; unset -f f", "f", "it is not known to change nothing"},
		{"alias ls=touch", "ls", ""}, // It is not expanded.
		{"mkdir -p venv/bin; touch venv/bin/pip; chmod +x venv/bin/pip; export VIRTUAL_ENV=$PWD/venv; PATH=$PWD/venv/bin:$PATH; deactivate() { :; }; hash -r", "ls; echo $VIRTUAL_ENV; grep -r x .", ""},
		{"export FOO_URL=x DATABASE_URL=y; export PAGER=cat", "ls; git --version", ""},
		{"shopt -s nullglob; set -o pipefail; set -f", "ls *.x", ""},
		{"PROMPT_COMMAND='touch owned'; PS1='$(touch owned)'", "ls", ""}, // It is no interactive shell.
		{"trap 'touch owned' USR1; trap - USR1", "ls", ""},
		{"exec 3>owned; exec 3>&-", "echo x >&3", ""},
		{"exec >owned", "ls", ""}, // Each script has its own.
		{"unalias -a; enable -n echo; enable echo", "echo a", ""},
		{"enable -n test", "test -f a", ""}, // Limpet itself needs it, and enables it again.
		{"hash -p /tmp/x ls; hash -r", "ls", ""},

		// Functions, aliases, builtins.
		{"ls() { touch owned; }", "ls", "ls is a function here, since: ls() { touch owned; }"},
		{"ls() { touch owned; }", "cat a; (ls)", "ls is a function here"},
		{"ls() { touch owned; }; export -f ls", "bash -c ls", "ls is a function here"},
		{"function /bin/date { touch owned; }", "/bin/date", "/bin/date is a function here"},
		{"echo() { touch owned; }", "echo $(date)", "echo is a function here"},
		{"cd() { touch owned; }", "cd /", "cd is a function here"},
		{"export() { touch owned; }", "export LC_ALL=C", "export is a function here"},
		{"test() { touch owned; }", "if test -f a; then :; fi", "test is a function here"},
		{"printf 'ls() { touch owned; }' >f; source ./f", "ls", "ls is a function here, since: printf 'ls() { touch owned; }' >f; source ./f"},
		{"builtin() { touch owned; }", "ls", "here, which may hide others"},
		{"command_not_found_handle() { touch owned; }", "rg x", "there is no program rg"},
		{"shopt -s expand_aliases; alias ls='touch owned'", "ls", "ls is an alias here"},
		{"shopt -s expand_aliases; alias a='touch owned' ls='a '", "true; ls", "ls is an alias here"},
		{"shopt -s expand_aliases; alias a=b b='touch owned'", "echo; a", "a is an alias here"},
		{"shopt -s expand_aliases; alias if='touch owned;'", "if true; then ls; fi", "if is an alias here"},
		{"shopt -s expand_aliases; alias ls='touch owned'", "l\\\ns", "ls is an alias here"},
		{"shopt -s expand_aliases; BASH_ALIASES[ls]='touch owned'", "echo $(ls)", "ls is an alias here"},
		{"enable -n pwd", "pwd", "the builtin pwd is disabled here"},
		{"enable -n echo", "echo a", "the builtin echo is disabled here"},

		// Where programs are found.
		{"hash -p /tmp/x ls", "ls", "ls is /tmp/x here: bash remembers that"},
		{"BASH_CMDS[ls]=/usr/bin/touch", "ls", "ls is /usr/bin/touch here"},
		{"mkdir -p bin; cp /usr/bin/touch bin/ls; PATH=$PWD/bin:$PATH", "ls", "bin/ls, a file that can be changed"},
		{"mkdir -p bin; ln -s /usr/bin/touch bin/ls; PATH=$PWD/bin:$PATH", "ls", "bin/ls, a file that can be changed"},
		{"PATH=.:$PATH", "ls", "it has a directory that is not absolute"},
		{"PATH=:$PATH", "ls", "it has a directory that is not absolute"},
		{"PATH='~/bin:'$PATH", "ls", "it has a directory that is not absolute"},
		{"PATH=$PWD/bin:$PATH; (mkdir bin; cp /usr/bin/touch bin/ls) & wait", "ls", "a file that can be changed"},
		{"unset PATH", "ls", "it has a directory that is not absolute"},
		{"CDPATH=/tmp", "cd x && ls", "has cd go elsewhere"},
		{"shopt -s cdable_vars", "cd x && ls", "has cd go elsewhere"},
		{"EXECIGNORE='*'", "ls", "the variable EXECIGNORE"},
		{"HOME=/tmp", "ls ~", "the variable HOME"},

		// What runs beside a script.
		{"trap 'touch owned' DEBUG; trap 'touch owned' USR1", "ls", "a trap for"},
		{"trap 'touch owned' CHLD", "ls", "a trap for SIGCHLD runs commands"},
		{"trap 'touch owned' EXIT; trap 'touch owned' USR2", "exit 0", "a trap for"},
		{"set -o functrace; trap 'touch owned' RETURN USR1; trap 'touch owned' ERR", "false", "a trap for"},
		{"set -x; PS4='$(touch owned)'", "ls", "the variable PS4"},

		// How a script is read.
		{"set -k", "ls a=b", "the option keyword"},
		{"set -o posix", "ls", "the option posix"},
		{"set -o history; set -o histexpand", "echo !!", "the option hist"},
		{"set -a", "X=y; ls", "the option allexport"},
		{"set +B", "ls {a,b}", "the option braceexpand of the shell is off"},
		{"shopt -u interactive_comments", "ls # a", "the option interactive"},
		{"shopt -s lastpipe", "ls", "the option lastpipe"},
		{"shopt -s extdebug", "ls", "the option extdebug"},
		{"shopt -s compat31", "ls", "the option compat31"},
		{"IFS=/", "ls", "the variable IFS"},
		{"GLOBIGNORE='*'", "ls *", "the variable GLOBIGNORE"},
		{"BASH_COMPAT=3.1", "ls", "the option compat31"},
		{"TEXTDOMAIN=x", `echo $"a"`, "the variable TEXTDOMAIN"},

		// Variables.
		{"declare -i x", "x='a[$(touch owned)]'; echo $x", "x has attributes here (declare -i)"},
		{"declare -n x=PATH", "x=/tmp; ls", "x has attributes here (declare -n)"},
		{"readonly x=-o", "x=a; sort -- $x", "x has attributes here (declare -r)"},
		{"declare -u x", "x=a; echo $x", "x has attributes here (declare -u)"},
		{"unset RANDOM; RANDOM='a[$(touch owned)]'", "echo $((RANDOM))", "RANDOM is no number here"},
		{"unset LINENO; LINENO='a[$(touch owned)]'", "echo $((LINENO))", "LINENO is no number here"},
		{"unset EPOCHSECONDS; EPOCHSECONDS='a[$(touch owned)]'", "[[ 1 -lt $EPOCHSECONDS ]]", "EPOCHSECONDS is no number here"},
		{"unset BASHPID; BASHPID=PATH", "echo $((BASHPID))", "BASHPID is no number here"},
		{"OLDPWD=-la", "cat $OLDPWD", "OLDPWD is no directory here"},
		{"export LD_PRELOAD=/tmp/x.so", "ls", "LD_PRELOAD was exported here"},
		{"export LD_LIBRARY_PATH=/tmp", "env ls", "LD_LIBRARY_PATH was exported here"},
		{"export BASH_ENV=/tmp/x", "bash -c ls", "BASH_ENV was exported here"},
		{"export ENV=/tmp/x", "sh -c ls", "ENV was exported here"},
		{"export GIT_CONFIG_COUNT=1", "git --version", "GIT_CONFIG_COUNT was exported here"},
		{"export GIT_PAGER='touch owned'", "git branch --show-current", "GIT_PAGER was exported here"},
		{"export TAR_OPTIONS=-x", "tar -tf a.tar", "TAR_OPTIONS was exported here"},
		{"export RIPGREP_CONFIG_PATH=x", "rg x", "RIPGREP_CONFIG_PATH was exported here"},
		{"export PYTHONSTARTUP=x", "python3 --version", "PYTHONSTARTUP was exported here"},
		{"export LC_ALL=/tmp/locale", "ls", "LC_ALL was exported here"},
		{"export SHELLOPTS", "ls", "SHELLOPTS was exported here"},
		{"export XY=1", "XY=2; ls", "XY is no variable that is known to be harmless"},

		// Redirections of the shell.
		{"exec 3>owned", "echo x >&3", "descriptor 3 is open in the shell"},
		{"exec 4<>owned", "ls 2>&4", "descriptor 4 is open in the shell"},
		{"exec {fd}>owned", "echo $fd; ls", ""},
	} {
		t.Run(row.setup+" / "+row.script, func(t *testing.T) {
			s, p := asked(t)
			ctx := testenv.Context(t)
			p.says(approval.Once)
			_, err := s.Run(ctx, row.setup)
			require.NoError(t, err)
			p.says(approval.No)
			_, err = s.Run(ctx, row.script)
			if row.why == "" {
				require.NoError(t, err, "%v", p.questions())
				return
			}
			require.Error(t, err)
			assert.ErrorContains(t, err, row.why)
		})
	}
}

// An answer for the session is for the variables as they were, too.
func TestAnAnswerForTheSessionIsForTheVariablesOfThen(t *testing.T) {
	s, p := asked(t)
	ctx := testenv.Context(t)
	run := func(script string) int {
		p.says(approval.Session)
		_, err := s.Run(ctx, script)
		require.NoError(t, err)
		return len(p.questions())
	}
	require.Zero(t, run("d=a"))
	require.Equal(t, 1, run(`rm -rf "$d"`))
	require.Zero(t, run(`rm -rf "$d"`))
	require.Zero(t, run("d=b; e=c"))
	require.Equal(t, 1, run(`rm -rf "$d"`), "another directory")
	require.Zero(t, run("e=d"))
	require.Zero(t, run(`rm -rf "$d"`))
	require.Equal(t, 1, run("make --version | cat; touch x"))
	require.Zero(t, run("make --version | cat; touch x"))
	require.Equal(t, 1, run("make() { :; }"))
	for range 2 {
		require.Equal(t, 1, run("make --version | cat; touch x"), "what a function does is not in the question")
	}
	require.Equal(t, 1, run("unset -f make"))
	require.Zero(t, run("make --version | cat; touch x"))
	require.Equal(t, 1, run("mkdir -p bin; cp /usr/bin/true bin/make; PATH=$PWD/bin:$PATH"))
	require.Equal(t, 1, run("make --version | cat; touch x"), "another make")
	require.Zero(t, run("make --version | cat; touch x"))
}

// What was seen of a shell is not true any more behind a reset, and behind a rollback.
func TestAResetAndARollbackAreLookedAt(t *testing.T) {
	s, p := asked(t)
	ctx := testenv.Context(t)
	run := func(script string) int {
		p.says(approval.Once)
		_, err := s.Run(ctx, script)
		require.NoError(t, err)
		return len(p.questions())
	}
	require.Equal(t, 1, run("ls() { echo; }"))
	require.Equal(t, 1, run("ls"))
	err := s.Checkpoint(ctx, "with")
	require.NoError(t, err)
	require.NoError(t, s.Reset(ctx))
	require.Zero(t, run("ls"))
	require.Zero(t, run("ls"))
	_, err = s.Rollback(ctx, "with")
	require.NoError(t, err)
	require.Equal(t, 1, run("ls"))
}

// A directory of PATH that the shell began with may get programs later, also by what is no script: an agent's tool that writes files.
func TestAProgramThatIsPutBeforeTheSystemsAsks(t *testing.T) {
	dir, p := testenv.TempDir(t), &asking{}
	path := filepath.Join(dir, "bin") + ":/usr/bin:/bin"
	r := registry(t, &session.Options{
		Shell: &shell.Options{Env: append(plainEnv(t), "PATH="+path), Dir: dir},
		Approve: func(session.Approved) session.Approver {
			return gated{approval.NewGate(p.ask, &approval.Options{File: systemFile, Path: path})}
		},
	})
	s, ctx := open(t, r, "s"), testenv.Context(t)
	scripts := map[string]string{"comm a a": "comm", "find . | xargs": "echo", "env test -f a": "test", "timeout 5 ls": "ls", "bash -c 'ls'": "ls", "egrep x a || true": "grep", "tar -tf a.tgz || true": "gzip"}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a"), []byte("x"), 0o600))
	for script := range scripts {
		if script != "comm a a" { // Bash remembers the files of programs that it has run.
			_, err := s.Run(ctx, script)
			require.NoError(t, err, script)
		}
	}
	_, err := s.Run(ctx, "sort a")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "bin"), 0o700))
	for script, program := range scripts {
		planted := filepath.Join(dir, "bin", program)
		require.NoError(t, os.WriteFile(planted, []byte("#!/bin/sh\n: >"+dir+"/owned\n"), 0o700))
		_, err := s.Run(ctx, script)
		assert.ErrorContains(t, err, program+" is "+planted+", a file that can be changed", script)
		require.NoError(t, os.Remove(planted))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "bin", "sort"), []byte("#!/bin/sh\n: >"+dir+"/owned\n"), 0o700))
	_, err = s.Run(ctx, "sort a")
	require.NoError(t, err, "it is the sort that bash remembers")
	assert.NoFileExists(t, filepath.Join(dir, "owned"))
	assert.Len(t, p.questions(), len(scripts))
}

// A script that was let pass waits for its turn behind one that changes names, or behind a program that puts another into PATH.
func TestWhatWaitsIsLookedAtAgain(t *testing.T) {
	s, p := asked(t)
	ctx := testenv.Context(t)
	run := func(script string) {
		_, err := s.Run(ctx, script)
		assert.NoError(t, err)
	}
	dir := testenv.TempDir(t)
	fifo := filepath.Join(dir, "fifo")
	run("mkfifo " + fifo + "; eval :")
	p.says(approval.Once)
	var all sync.WaitGroup
	all.Go(func() { run("ls() { echo; }; read -r line <" + fifo) })
	testenv.Await(t, "the first script", func() bool { return len(p.questions()) == 1 })
	var err error
	all.Go(func() {
		_, err = s.Do(ctx, command.Request{Script: "ls"})
	})
	f, openErr := os.OpenFile(fifo, os.O_WRONLY, 0) // It waits for the first script, which runs by then.
	require.NoError(t, openErr)
	_, openErr = f.WriteString("go\n")
	require.NoError(t, openErr)
	require.NoError(t, f.Close())
	all.Wait()
	require.NoError(t, err)
	questions := p.questions()
	require.Len(t, questions, 2)
	reason, _ := questions[1].Why()
	assert.True(t, strings.HasPrefix(reason, "ls is a function here"), reason)
}

// A caller that waits no longer for its turn than it said does so, too, where the shell must be looked at first.
func TestALookWaitsNoLongerThanTheCommandWould(t *testing.T) {
	s, p := asked(t)
	ctx := testenv.Context(t)
	p.says(approval.Once)
	_, err := s.Run(ctx, "eval :; mkfifo fifo")
	require.NoError(t, err)
	fifo := filepath.Join(s.Dir(), "fifo")
	var all sync.WaitGroup
	all.Go(func() {
		_, err := s.Run(ctx, "read -r line <"+fifo)
		assert.NoError(t, err)
	})
	f, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = s.Do(ctx, command.Request{Script: "touch x", TurnTimeout: 1})
	require.ErrorIs(t, err, shell.ErrBusy)
	_, refused := errors.AsType[*shell.RefusedError](err)
	assert.False(t, refused)
	require.NoError(t, f.Close())
	all.Wait()
}

// BenchmarkLook is what a look at a shell costs.
func BenchmarkLook(b *testing.B) {
	for _, variables := range []int{0, 1000} {
		b.Run(fmt.Sprint(variables, " variables"), func(b *testing.B) {
			ctx := context.Background()
			sh, err := shell.Start(ctx, &shell.Options{Env: []string{"PATH=/usr/bin:/bin"}})
			require.NoError(b, err)
			defer sh.Close()
			_, err = sh.Run(ctx, fmt.Sprintf("for ((i = 0; i < %d; i++)); do declare x$i=$i; done", variables))
			require.NoError(b, err)
			for b.Loop() {
				_, err := sh.Live(ctx)
				require.NoError(b, err)
			}
		})
	}
}
