package shell_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// person answers questions, and remembers them.
type person struct {
	mu     sync.Mutex
	answer string // empty: no
	asked  []command.PasswordQuestion
}

func (p *person) ask(_ context.Context, q command.PasswordQuestion) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, q)
	if p.answer == "" {
		return nil, errors.New("the answer was no")
	}
	return []byte(p.answer), nil
}

func (p *person) questions() []command.PasswordQuestion {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func startAsking(t *testing.T, p *person, opts shell.Options) *shell.PersistentShell {
	t.Helper()
	testenv.NeedProc(t)
	opts.AskPassword = p.ask
	if opts.Env == nil {
		opts.Env = []string{"PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	}
	sh, err := shell.Start(testenv.Context(t), &opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sh.Close()) })
	return sh
}

func TestProgramsAskAPersonWhereverTheyRun(t *testing.T) {
	for name, req := range map[string]command.Request{
		"in bash":                        {Script: `"$SUDO_ASKPASS" p`},
		"in a subshell":                  {Script: `(:; "$SUDO_ASKPASS" p; :)`},
		"in a fork":                      {Script: `set -e; "$SUDO_ASKPASS" p; exit 0`},
		"in a fresh bash":                {Script: `"$SUDO_ASKPASS" p`, Stdin: strings.NewReader("")},
		"in the background":              {Script: `"$SUDO_ASKPASS" p & wait`},
		"by SSH_ASKPASS":                 {Script: `"$SSH_ASKPASS" p`},
		"in a process group":             {Script: `set -m; "$SUDO_ASKPASS" p`},
		"in a session":                   {Script: `setsid -w "$SUDO_ASKPASS" p`},
		"in a pipeline":                  {Script: `"$SUDO_ASKPASS" p | cat`},
		"with an environment of its own": {Script: `env -i "$SUDO_ASKPASS" p`},
	} {
		t.Run(name, func(t *testing.T) {
			p := &person{answer: "pass"}
			sh := startAsking(t, p, shell.Options{})
			res, err := sh.Do(testenv.Context(t), req)
			require.NoError(t, err)
			assert.Equal(t, "pass\n", res.Stdout.String(), res.Stderr.String())
			require.Len(t, p.questions(), 1)
			chain := p.questions()[0].Chain
			if req.Stdin == nil { // A fresh bash may become its only command.
				assert.Contains(t, chain[len(chain)-1].Command, "bash")
			}
		})
	}
}

func TestAfterTheEndOfBashProgramsStillAsk(t *testing.T) {
	p := &person{answer: "pass"}
	sh := startAsking(t, p, shell.Options{})
	res, err := sh.Run(testenv.Context(t), killBash)
	require.Error(t, err)
	require.NotNil(t, res.Restart)
	res, err = sh.Run(testenv.Context(t), `"$SUDO_ASKPASS" p`)
	require.NoError(t, err)
	assert.Equal(t, "pass\n", res.Stdout.String(), res.Stderr.String())
	require.NoError(t, sh.Reset(testenv.Context(t)))
	res, err = sh.Run(testenv.Context(t), `"$SUDO_ASKPASS" p`)
	require.NoError(t, err)
	assert.Equal(t, "pass\n", res.Stdout.String(), res.Stderr.String())
}

func TestAnotherShellOfTheProgramIsNotAnswered(t *testing.T) {
	p := &person{answer: "pass"}
	sh := startAsking(t, p, shell.Options{})
	res, err := sh.Run(testenv.Context(t), `echo "$SUDO_ASKPASS"`)
	require.NoError(t, err)
	other := startAsking(t, &person{}, shell.Options{})
	res, err = other.Run(testenv.Context(t), strings.TrimSpace(res.Stdout.String())+" p")
	require.NoError(t, err)
	assert.Equal(t, "limpet: no password: the process that asks does not descend from this shell, or its parent has ended\n", res.Stderr.String())
	assert.Empty(t, p.questions())
}

func TestNoIsAnErrorOfTheProgram(t *testing.T) {
	p := &person{}
	sh := startAsking(t, p, shell.Options{})
	res, err := sh.Run(testenv.Context(t), `"$SUDO_ASKPASS" p`)
	require.NoError(t, err)
	assert.Equal(t, 1, res.ExitCode)
	assert.Equal(t, "limpet: no password: the answer was no\n", res.Stderr.String())
}

func TestAnOwnAskpassProgramStays(t *testing.T) {
	p := &person{answer: "pass"}
	sh := startAsking(t, p, shell.Options{Env: []string{"SUDO_ASKPASS=/mine", "SSH_ASKPASS=/mine", "PATH=" + os.Getenv("PATH")}})
	res, err := sh.Run(testenv.Context(t), `echo $SUDO_ASKPASS $SSH_ASKPASS ${SSH_ASKPASS_REQUIRE-unset}`)
	require.NoError(t, err)
	assert.Equal(t, "/mine /mine unset\n", res.Stdout.String())
}

func TestWithoutAPersonNothingIsSet(t *testing.T) {
	sh := start(t, &shell.Options{Env: []string{"PATH=" + os.Getenv("PATH")}})
	res, err := sh.Run(testenv.Context(t), `echo ${!SUDO_*} ${!SSH_*} ${!GIT_*}`)
	require.NoError(t, err)
	assert.Equal(t, "\n", res.Stdout.String())
}

// A program that waits for an answer is stopped with its command, and the question with it.
func TestAStopEndsAQuestion(t *testing.T) {
	testenv.NeedProc(t)
	ctx, cancel := context.WithCancel(testenv.Context(t))
	ended := make(chan error, 1)
	sh := start(t, &shell.Options{AskPassword: func(asked context.Context, _ command.PasswordQuestion) ([]byte, error) {
		cancel()
		<-asked.Done()
		ended <- context.Cause(asked)
		return nil, context.Cause(asked)
	}})
	_, err := sh.Run(ctx, `"$SUDO_ASKPASS" p`)
	require.ErrorIs(t, err, context.Canceled)
	require.EqualError(t, <-ended, "the program does not wait any more")
}

func TestCloseEndsAQuestionAndLeavesNothingOfIt(t *testing.T) {
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	begun, ended := make(chan struct{}), make(chan struct{})
	sh := start(t, &shell.Options{RuntimeDir: dir, AskPassword: func(asked context.Context, _ command.PasswordQuestion) ([]byte, error) {
		close(begun)
		<-asked.Done()
		close(ended)
		return nil, context.Cause(asked)
	}})
	over := make(chan error, 1)
	go func() {
		_, err := sh.Run(context.Background(), `"$SUDO_ASKPASS" p`)
		over <- err
	}()
	<-begun
	require.NoError(t, sh.Close())
	<-ended
	require.ErrorIs(t, <-over, shell.ErrClosed)
	left, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// The answer is in what the program printed, and nowhere else that is the shell's.
func TestAnAnswerIsNotInTheFilesOfAShell(t *testing.T) {
	const secret = "s3cret-in-no-file"
	dir := testenv.TempDir(t)
	p := &person{answer: secret}
	sh := startAsking(t, p, shell.Options{RuntimeDir: dir})
	res, err := sh.Run(testenv.Context(t), `[ "$("$SUDO_ASKPASS" p | tee >(wc -c >&2))" ] && echo got it; history; set; export`)
	require.NoError(t, err)
	assert.Contains(t, res.Stdout.String(), "got it\n")
	assert.NotContains(t, res.Stdout.String()+res.Stderr.String(), secret)
	state, err := sh.Checkpoint(testenv.Context(t))
	require.NoError(t, err)
	saved, err := state.MarshalBinary()
	require.NoError(t, err)
	assert.NotContains(t, string(saved), secret)
	files := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		files++
		assert.NotContains(t, string(b), secret, path)
		return err
	}))
	assert.NotZero(t, files)
}
