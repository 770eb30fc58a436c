package askpass_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/askpass"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/socket"
	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

const secret = "a b'c\\d é"

type ask = func(context.Context, command.PasswordQuestion) ([]byte, error)

// isChild takes the children of the tests for shells.
func isChild(st proc.Stat) bool { return st.PPID == os.Getpid() }

func serve(t *testing.T, opts askpass.Options) *askpass.Server {
	t.Helper()
	testenv.NeedProc(t)
	if opts.RuntimeDir == "" {
		opts.RuntimeDir = testenv.TempDir(t)
	}
	if opts.Shell == nil {
		opts.Shell = isChild
	}
	s, err := askpass.Serve(opts)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func serveBy(t *testing.T, ask ask) *askpass.Server { return serve(t, askpass.Options{Ask: ask}) }

func answers(context.Context, command.PasswordQuestion) ([]byte, error) { return []byte(secret), nil }

// helperOf is the path of a server's helper.
func helperOf(s *askpass.Server) string {
	return strings.TrimPrefix(s.Env(nil)[0], "SUDO_ASKPASS=")
}

// shell is a bash that has a server's variables.
func shell(s *askpass.Server, script string) *exec.Cmd {
	cmd := exec.Command("bash", "-c", script+"\ntrue") // Its last command would take its place.
	cmd.Env = s.Env(append(os.Environ(), "SUDO_ASKPASS", "SSH_ASKPASS"))
	return cmd
}

// says runs a script and returns what it wrote.
func says(t *testing.T, s *askpass.Server, script string) (stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	cmd := shell(s, script)
	cmd.Stdout, cmd.Stderr = &out, &err
	require.NoError(t, cmd.Run())
	return out.String(), err.String()
}

func TestAProgramGetsTheAnswer(t *testing.T) {
	questions, given := make(chan command.PasswordQuestion, 1), []byte(secret)
	dir := filepath.Join(testenv.TempDir(t), "with blanks")
	require.NoError(t, os.Mkdir(dir, 0o700))
	s := serve(t, askpass.Options{
		RuntimeDir: dir,
		Ask: func(_ context.Context, q command.PasswordQuestion) ([]byte, error) {
			questions <- q
			return given, nil
		},
	})
	out, stderr := says(t, s, `(echo >/dev/null; "$SSH_ASKPASS" $'Password\e[2J: '; true); true`)
	assert.Equal(t, secret+"\n", out)
	assert.Empty(t, stderr)
	q := <-questions
	assert.Equal(t, command.AskPassword, q.Kind)
	assert.Equal(t, "Password\x1b[2J: ", q.Prompt)
	assert.Empty(t, q.Program, "bash is none of those that askpass is made for")
	assert.False(t, q.Again)
	require.Len(t, q.Chain, 2, "the subshell and its bash")
	assert.Contains(t, q.Chain[1].Command, "bash -c (echo")
	s.Close() // It waits for the goroutine that overwrites the answer.
	assert.Equal(t, make([]byte, len(secret)), given, "it was overwritten")
}

func TestNoAnswerIsASentenceAndAnExitCode(t *testing.T) {
	s := serveBy(t, func(context.Context, command.PasswordQuestion) ([]byte, error) {
		return []byte(secret), errors.New("the answer was no")
	})
	out, stderr := says(t, s, `"$SUDO_ASKPASS" p; echo "code $?"`)
	assert.Equal(t, "code 1\n", out)
	assert.Equal(t, "limpet: no password: the answer was no\n", stderr)
}

func TestNobodyAnswersForever(t *testing.T) {
	s := serve(t, askpass.Options{Timeout: time.Millisecond, Ask: func(ctx context.Context, _ command.PasswordQuestion) ([]byte, error) {
		<-ctx.Done()
		return []byte(secret), nil // Late.
	}})
	out, stderr := says(t, s, `"$SUDO_ASKPASS" p; echo "code $?"`)
	assert.Equal(t, "code 1\n", out)
	assert.Equal(t, "limpet: no password: nobody answered within 1ms\n", stderr)
}

func TestAnAnswerThatAProgramWouldNotGetAsItIsIsRefused(t *testing.T) {
	for _, bad := range []string{"two\nlines", "nul\x00", strings.Repeat("x", 1024)} {
		s := serveBy(t, func(context.Context, command.PasswordQuestion) ([]byte, error) { return []byte(bad), nil })
		out, stderr := says(t, s, `"$SUDO_ASKPASS" p; echo "code $?"`)
		assert.Equal(t, "code 1\n", out)
		assert.Equal(t, "limpet: no password: an answer is one line of at most 1023 bytes\n", stderr)
	}
	longest := strings.Repeat("x", 1023)
	s := serveBy(t, func(context.Context, command.PasswordQuestion) ([]byte, error) { return []byte(longest), nil })
	out, _ := says(t, s, `"$SUDO_ASKPASS" p`)
	assert.Equal(t, longest+"\n", out)
}

// asking is a server whose questions are open until they are answered or end.
func asking(t *testing.T, opts askpass.Options) (s *askpass.Server, begun chan command.PasswordQuestion, ended chan error) {
	begun, ended = make(chan command.PasswordQuestion), make(chan error, 1)
	opts.Ask = func(ctx context.Context, q command.PasswordQuestion) ([]byte, error) {
		begun <- q
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return nil, context.Cause(ctx)
	}
	return serve(t, opts), begun, ended
}

func TestAQuestionEndsWithItsProgram(t *testing.T) {
	s, begun, ended := asking(t, askpass.Options{})
	cmd := shell(s, `"$SUDO_ASKPASS" p & wait`)
	require.NoError(t, cmd.Start())
	<-begun
	for _, helper := range proc.Children(cmd.Process.Pid) {
		require.NoError(t, proc.Signal(helper.ID(), syscall.SIGKILL))
	}
	assert.EqualError(t, <-ended, "the program does not wait any more")
	require.NoError(t, cmd.Wait())
}

func TestCloseEndsQuestionsAndLeavesNothing(t *testing.T) {
	dir := testenv.TempDir(t)
	before := testenv.FDs(t)
	s, begun, ended := asking(t, askpass.Options{RuntimeDir: dir})
	path := helperOf(s)
	st, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), st.Mode().Perm())
	st, err = os.Stat(filepath.Join(filepath.Dir(path), "socket"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), st.Mode().Perm())
	var stderr bytes.Buffer
	cmd := shell(s, `"$SUDO_ASKPASS" p; true`)
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	silent, err := socket.Dial(testenv.Context(t), filepath.Dir(path), "socket")
	require.NoError(t, err)
	<-begun
	s.Close()
	s.Close()
	require.Error(t, <-ended)
	require.NoError(t, cmd.Wait())
	assert.Equal(t, "limpet: no password: the limpet that would have asked has ended\n", stderr.String())
	_, err = silent.Read(make([]byte, 1))
	assert.ErrorIs(t, err, io.EOF, "a client that says nothing is let go")
	require.NoError(t, silent.Close())
	assert.NoDirExists(t, filepath.Dir(path))
	assert.Equal(t, before, testenv.FDs(t))
	var none *askpass.Server
	none.Close()
}

func TestOthersAreNotAnswered(t *testing.T) {
	var asked atomic.Bool
	s := serve(t, askpass.Options{
		Shell: func(proc.Stat) bool { return false },
		Ask: func(context.Context, command.PasswordQuestion) ([]byte, error) {
			asked.Store(true)
			return []byte(secret), nil
		},
	})
	out, stderr := says(t, s, `"$SUDO_ASKPASS" p; echo "code $?"`)
	assert.Equal(t, "code 1\n", out)
	assert.Equal(t, "limpet: no password: the process that asks does not descend from this shell, or its parent has ended\n", stderr)
	assert.False(t, asked.Load())
}

// A process whose parent has ended, as a daemon's, descends from no shell any more.
func TestAProcessWithoutItsShellIsNotAnswered(t *testing.T) {
	s := serveBy(t, answers)
	dir := testenv.TempDir(t)
	cmd := shell(s, `(until [ "$(ps -o ppid= -p $BASHPID)" -ne $$ ]; do sleep 0.01; done; "$SUDO_ASKPASS" p 2>"$1/err"; echo >"$1/done") & `)
	cmd.Args = append(cmd.Args, "_", dir)
	require.NoError(t, cmd.Run())
	testenv.Await(t, "the end of the process", func() bool {
		_, err := os.Stat(filepath.Join(dir, "done"))
		return err == nil
	})
	b, err := os.ReadFile(filepath.Join(dir, "err"))
	require.NoError(t, err)
	assert.Equal(t, "limpet: no password: the process that asks does not descend from this shell, or its parent has ended\n", string(b))
}

func TestWhoAsksAgainIsToldApart(t *testing.T) {
	again := make(chan bool, 4)
	s := serveBy(t, func(_ context.Context, q command.PasswordQuestion) ([]byte, error) {
		again <- q.Again
		return []byte(secret), nil
	})
	says(t, s, `"$SUDO_ASKPASS" p; "$SUDO_ASKPASS" p; "$SUDO_ASKPASS" other; true`)
	says(t, s, `"$SUDO_ASKPASS" other; true`)
	assert.Equal(t, []bool{false, true, false, false}, []bool{<-again, <-again, <-again, <-again})
}

// Ssh asks three times, whatever it gets.
func TestNobodyHasToSayNoTwice(t *testing.T) {
	var asked atomic.Int32
	s := serveBy(t, func(context.Context, command.PasswordQuestion) ([]byte, error) {
		asked.Add(1)
		return nil, errors.New("the answer was no")
	})
	_, stderr := says(t, s, `for i in 1 2 3; do "$SUDO_ASKPASS" p; done; true`)
	assert.Equal(t, strings.Repeat("limpet: no password: the answer was no\n", 3), stderr)
	assert.EqualValues(t, 1, asked.Load())
	says(t, s, `"$SUDO_ASKPASS" p; true`)
	assert.EqualValues(t, 2, asked.Load(), "that is another process")
}

func TestQuestionsComeOneAfterTheOther(t *testing.T) {
	var open, most atomic.Int32
	s := serveBy(t, func(context.Context, command.PasswordQuestion) ([]byte, error) {
		if n := open.Add(1); n > most.Load() {
			most.Store(n)
		}
		time.Sleep(time.Millisecond)
		open.Add(-1)
		return []byte(secret), nil
	})
	out, _ := says(t, s, `for i in 1 2 3 4 5; do "$SUDO_ASKPASS" $i & done; wait`)
	assert.Equal(t, strings.Repeat(secret+"\n", 5), out)
	assert.EqualValues(t, 1, most.Load())
}

// Who has become another program while the person thought is not the one that was shown.
func TestAProgramThatIsAnotherByThenGetsNothing(t *testing.T) {
	s := serveBy(t, func(_ context.Context, q command.PasswordQuestion) ([]byte, error) {
		require.NoError(t, os.WriteFile(strings.Fields(q.Prompt)[0], nil, 0o600))
		for !strings.HasPrefix(proc.Command(q.Chain[0].PID), "sleep") {
			time.Sleep(time.Millisecond)
		}
		return []byte(secret), nil
	})
	dir := testenv.TempDir(t)
	cmd := shell(s, `"$SUDO_ASKPASS" "$1/asked" >"$1/out" 2>"$1/err" & until [ -e "$1/asked" ]; do :; done; exec sleep 1000`)
	cmd.Args = append(cmd.Args, "_", dir)
	require.NoError(t, cmd.Start())
	text := testenv.AwaitFile(t, filepath.Join(dir, "err"))
	assert.Equal(t, "limpet: no password: the processes that asked have changed meanwhile", text)
	out, err := os.ReadFile(filepath.Join(dir, "out"))
	require.NoError(t, err)
	assert.Empty(t, out)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait() // It was killed.
}

func TestWhatIsNoHelperIsHungUpOn(t *testing.T) {
	s := serveBy(t, answers)
	for name, text := range map[string]string{"no JSON": "x\n", "no line": "", "too long": strings.Repeat("x", 1<<20)} {
		conn, err := socket.Dial(testenv.Context(t), filepath.Dir(helperOf(s)), "socket")
		require.NoError(t, err)
		_, _ = io.WriteString(conn, text) // It may be closed in the middle.
		require.NoError(t, conn.(*net.UnixConn).CloseWrite())
		b, _ := io.ReadAll(conn) // Reset, or the end.
		assert.Empty(t, b, name)
		require.NoError(t, conn.Close())
	}
	out, _ := says(t, s, `"$SUDO_ASKPASS" p`)
	assert.Equal(t, secret+"\n", out)
}

func TestKindsOfQuestions(t *testing.T) {
	kinds := make(chan command.PasswordKind, 1)
	s := serveBy(t, func(_ context.Context, q command.PasswordQuestion) ([]byte, error) {
		kinds <- q.Kind
		return []byte(secret), nil
	})
	for _, c := range []struct {
		hint, prompt, want string
		kind               command.PasswordKind
	}{
		{"", "alice@host's password: ", secret + "\n", command.AskPassword},
		{"", "Are you sure you want to continue connecting (yes/no/[fingerprint])? ", "yes\n", command.AskConfirm},
		{"", "Are you sure you want to continue connecting (yes/no)? ", "yes\n", command.AskConfirm},
		{"confirm", "Allow use of key x?", "yes\n", command.AskConfirm},
		{"none", "Confirm user presence for key", secret + "\n", command.AskNothing},
		{"", "Username for 'https://example.org': ", secret + "\n", command.AskPassword}, // Bash is not git.
	} {
		out, _ := says(t, s, `SSH_ASKPASS_PROMPT='`+c.hint+`' "$SSH_ASKPASS" "`+c.prompt+`"`)
		assert.Equal(t, c.want, out, c.prompt)
		assert.Equal(t, c.kind, <-kinds, c.prompt)
	}
}

func TestTheCallersOwnProgramsStay(t *testing.T) {
	s := serveBy(t, answers)
	helper := helperOf(s)
	for _, c := range []struct{ env, want []string }{
		{nil, []string{"SUDO_ASKPASS=" + helper, "SSH_ASKPASS=" + helper, "SSH_ASKPASS_REQUIRE=force"}},
		{[]string{"A=1", "SUDO_ASKPASS=mine"}, []string{"A=1", "SUDO_ASKPASS=mine", "SSH_ASKPASS=" + helper, "SSH_ASKPASS_REQUIRE=force"}},
		{[]string{"SSH_ASKPASS=mine"}, []string{"SSH_ASKPASS=mine", "SUDO_ASKPASS=" + helper}},
		{[]string{"SSH_ASKPASS_REQUIRE=never"}, []string{"SSH_ASKPASS_REQUIRE=never", "SUDO_ASKPASS=" + helper, "SSH_ASKPASS=" + helper}},
		{[]string{"SUDO_ASKPASS=", "SSH_ASKPASS="}, []string{"SUDO_ASKPASS=", "SSH_ASKPASS="}},
		{[]string{"SUDO_ASKPASS", "SSH_ASKPASS", "B"}, []string{"B", "SUDO_ASKPASS=" + helper, "SSH_ASKPASS=" + helper, "SSH_ASKPASS_REQUIRE=force"}},
	} {
		assert.Equal(t, c.want, s.Env(c.env), "%q", c.env)
	}
}

// An expect script answers on the terminal that it has made for ssh.
func TestWhoHasATerminalIsAskedThere(t *testing.T) {
	s := serveBy(t, func(context.Context, command.PasswordQuestion) ([]byte, error) { return nil, errors.New("not here") })
	cmd := shell(s, `out=$("$SSH_ASKPASS" "there: "); echo "got ${out/typed/right}"`)
	user, err := pty.Start(cmd)
	require.NoError(t, err)
	defer user.Close() // The program has ended.
	var seen []byte
	sees := func(text string) {
		for buf := make([]byte, 1024); !bytes.Contains(seen, []byte(text)); {
			n, err := user.Read(buf)
			require.NoError(t, err, "%s", seen)
			seen = append(seen, buf[:n]...)
		}
	}
	sees("there: ")
	testenv.Await(t, "no echo", func() bool { return !echoes(t, user) })
	_, err = user.WriteString("typed\n")
	require.NoError(t, err)
	sees("got right\r\n")
	assert.NotContains(t, string(seen), "typed")
	require.NoError(t, cmd.Wait())
}

func TestWhatTheServerWouldNotAnswerIsNotLedToIt(t *testing.T) {
	for _, c := range []struct{ env, want []string }{
		{[]string{"A=b", "SUDO_ASKPASS=/run/x/limpet-askpass", "SSH_ASKPASS=/run/x/limpet-askpass", "SSH_ASKPASS_REQUIRE=force"}, []string{"A=b"}},
		{[]string{"SUDO_ASKPASS=/run/x/limpet-askpass", "SSH_ASKPASS=/usr/bin/ksshaskpass", "SSH_ASKPASS_REQUIRE=prefer"}, []string{"SSH_ASKPASS=/usr/bin/ksshaskpass", "SSH_ASKPASS_REQUIRE=prefer"}},
		{[]string{"SUDO_ASKPASS=", "SSH_ASKPASS"}, []string{"SUDO_ASKPASS=", "SSH_ASKPASS"}},
	} {
		assert.Equal(t, c.want, askpass.Strip(c.env))
	}
}
