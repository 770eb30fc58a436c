package terminal_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/transport"
)

func TestWhatCannotBeStartedIsAClearErrorAndRecordedAsFailed(t *testing.T) {
	dir := testenv.TempDir(t)
	plain := filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(plain, []byte("x"), 0o600))
	r := open(t, &terminal.Options{Dir: dir})
	for _, test := range []struct {
		name string
		spec terminal.Spec
		is   error
		says string
	}{
		{"nothing", terminal.Spec{}, terminal.ErrNothingToRun, "the command is empty"},
		{"an empty name", terminal.Spec{Argv: []string{"", "x"}}, terminal.ErrNothingToRun, "name a program"},
		{"a blank line", terminal.Spec{Line: " \n"}, terminal.ErrNothingToRun, "the command is empty"},
		{"both", terminal.Spec{Line: "x", Argv: []string{"x"}}, nil, "either Argv or Line"},
		{"no such program", terminal.Spec{Argv: []string{"no-such-program"}}, terminal.ErrNoProgram, `"no-such-program": it is not in PATH`},
		{"no such path", terminal.Spec{Argv: []string{"./no/such"}}, fs.ErrNotExist, `"./no/such": no such file or directory`},
		{"not executable", terminal.Spec{Argv: []string{plain}}, fs.ErrPermission, "permission denied"},
		{"a directory", terminal.Spec{Argv: []string{dir}}, terminal.ErrNoProgram, "it is a directory"},
		{"no such directory", terminal.Spec{Argv: []string{"true"}, Dir: "/no/such"}, fs.ErrNotExist, `cannot start in directory "/no/such"`},
		{"no directory", terminal.Spec{Argv: []string{"true"}, Dir: plain}, nil, "not a directory"},
		{"no columns", terminal.Spec{Argv: []string{"true"}, Size: terminal.Size{Rows: 24}}, terminal.ErrSize, "0 columns and 24 rows; there can be 1 to 1000 columns"},
		{"too large", terminal.Spec{Argv: []string{"true"}, Size: terminal.Size{Cols: 80, Rows: 501}}, terminal.ErrSize, "501 rows"},
		{"a bad variable", terminal.Spec{Argv: []string{"true"}, Env: []string{"NOPE"}}, nil, "NAME=value"},
		{"a NUL", terminal.Spec{Argv: []string{"echo", "a\x00b"}}, nil, "NUL byte"},
		{"a NUL in a line", terminal.Spec{Line: "a\x00b"}, nil, "NUL byte"},
		{"a recording that is there", terminal.Spec{Argv: []string{"true"}, Record: plain}, fs.ErrExist, "making the recording"},
		{"a recording nowhere", terminal.Spec{Argv: []string{"true"}, Record: "/no/such/cast"}, fs.ErrNotExist, "making the recording"},
	} {
		t.Run(test.name, func(t *testing.T) {
			term, err := r.Start(testenv.Context(t), test.spec)
			require.Error(t, err)
			require.Nil(t, term)
			if test.is != nil {
				require.ErrorIs(t, err, test.is)
			}
			require.ErrorContains(t, err, test.says)
			failure, ok := errors.AsType[*terminal.Error](err)
			require.True(t, ok)
			require.NotEmpty(t, failure.ID)
			recorded, err := r.Get(failure.ID)
			require.NoError(t, err)
			info := recorded.Info()
			assert.Equal(t, terminal.Failed, info.State)
			assert.Contains(t, info.Why, test.says)
			assert.False(t, info.Ended.IsZero())
			assert.Zero(t, info.PID)
			assert.Nil(t, info.Exit)
			<-recorded.Done()
			s, err := recorded.Screen()
			require.NoError(t, err)
			assert.Empty(t, s.Text())
			_, err = recorded.Write([]byte("x"))
			require.ErrorIs(t, err, terminal.ErrEnded)
		})
	}
	_, err := r.Start(testenv.Context(t), terminal.Spec{Argv: []string{"true"}, Dir: "/no/such"})
	_, ok := errors.AsType[*transport.DirError](err)
	assert.True(t, ok)
	_, err = r.Start(testenv.Context(t), terminal.Spec{Argv: []string{"true"}, Env: []string{"NOPE"}})
	_, ok = errors.AsType[*command.EnvError](err)
	assert.True(t, ok)
}

func TestAStartThatIsGivenUpIsCancelled(t *testing.T) {
	r := open(t, nil)
	ctx, cancel := context.WithCancelCause(context.Background())
	given := errors.New("given up")
	cancel(given)
	_, err := r.Start(ctx, terminal.Spec{Argv: []string{"true"}})
	require.ErrorIs(t, err, given)
	infos, err := r.List()
	require.NoError(t, err)
	require.Len(t, infos, 1)
	assert.Equal(t, terminal.Cancelled, infos[0].State)
}

func TestAProgramGetsATerminalOfItsOwn(t *testing.T) {
	dir := testenv.TempDir(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	t.Setenv("SOME_TOKEN", "secret")
	t.Setenv("TMUX", "/tmp/tmux-0/default,1,0")
	t.Setenv("COLUMNS", "11")
	r := open(t, &terminal.Options{Dir: dir})
	term := startSpec(t, r, terminal.Spec{
		Line: `tty; test -t 0 && test -t 1 && test -t 2 && echo three; (: </dev/tty) && echo controlling
			stty size; pwd; echo "$TERM-$X-$SOME_TOKEN-$TMUX-$COLUMNS-$PAGER-$LIMPET_TERMINAL"; ps -o pid=,pgid=,sid= $$; ls -l /proc/self/fd | grep -c ptmx`,
		Dir: "sub", Env: []string{"X=1"}, Size: terminal.Size{Cols: 100, Rows: 30}, Session: "s1",
	})
	info := ended(t, term)
	assert.Equal(t, terminal.Failed, info.State, "grep has found nothing")
	assert.Equal(t, "s1", info.Session)
	assert.Equal(t, terminal.Size{Cols: 100, Rows: 30}, info.Size)
	lines := strings.Split(strings.ReplaceAll(output(t, term), "\r\n", "\n"), "\n")
	require.GreaterOrEqual(t, len(lines), 8, "%q", lines)
	assert.Regexp(t, `^/dev/pts/\d+$`, lines[0])
	assert.Equal(t, []string{"three", "controlling", "30 100", filepath.Join(dir, "sub")}, lines[1:5])
	assert.Equal(t, "xterm-256color-1---100--"+term.ID(), lines[5])
	ids := strings.Fields(lines[6])
	assert.Equal(t, ids[0], ids[1])
	assert.Equal(t, ids[0], ids[2], "it does not lead its session")
	assert.Equal(t, "0", lines[7], "it has the other end of its terminal")
}

func TestAsManyRunAsMay(t *testing.T) {
	r := open(t, &terminal.Options{MaxRunning: 2})
	a := start(t, r, "cat")
	start(t, r, "cat")
	_, err := r.Start(testenv.Context(t), terminal.Spec{Argv: []string{"cat"}})
	require.ErrorIs(t, err, terminal.ErrTooMany)
	require.NoError(t, a.Close())
	_, err = r.Start(testenv.Context(t), terminal.Spec{Argv: []string{"no-such-program"}})
	require.ErrorIs(t, err, terminal.ErrNoProgram)
	start(t, r, "cat")
	infos, err := r.List()
	require.NoError(t, err)
	assert.Len(t, infos, 4, "the one that was too many left something behind")
}

func TestTheStateIsThatOfTheProgram(t *testing.T) {
	r := open(t, nil)
	for _, test := range []struct {
		line  string
		state terminal.State
		exit  terminal.Exit
		says  string
	}{
		{"exit 0", terminal.Succeeded, terminal.Exit{}, "exit 0"},
		{"exit 7", terminal.Failed, terminal.Exit{Code: 7}, "exit 7"},
		{"kill -KILL $$", terminal.Failed, terminal.Exit{Code: -1, Signal: syscall.SIGKILL}, "ended by signal 9 (killed)"},
	} {
		info := ended(t, startSpec(t, r, terminal.Spec{Line: test.line}))
		assert.Equal(t, test.state, info.State, test.line)
		require.NotNil(t, info.Exit)
		assert.Equal(t, test.exit, *info.Exit, test.line)
		assert.Equal(t, test.says, info.Exit.String())
	}
}

func TestADirectoryThatOthersCanWriteToIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "terminals")
	require.NoError(t, os.Mkdir(dir, 0o700))
	require.NoError(t, os.Chmod(dir, 0o777))
	_, err := terminal.Open(dir, nil)
	require.ErrorContains(t, err, "others than this user can write to it")
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err = terminal.Open(file, nil)
	require.ErrorContains(t, err, "name a directory")
}
