package remote_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/keys"
	"github.com/limpet-sh/limpet/terminal/remote"
)

type served struct {
	r      *terminal.Registry
	server *remote.Server
	client *remote.Client
}

func serve(t testing.TB, dir string, opts *terminal.Options) *served {
	t.Helper()
	r, err := terminal.Open(dir, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	server, err := remote.Serve(r)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return &served{r, server, dial(t, r)}
}

func dial(t testing.TB, r *terminal.Registry) *remote.Client {
	t.Helper()
	client, err := remote.Dial(testenv.Context(t), r.Dir(), r.Owner())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// start starts a program, and returns it as others see it.
func (s *served) start(t testing.TB, line string) *remote.Terminal {
	t.Helper()
	return s.client.Terminal(s.local(t, line).ID())
}

func (s *served) local(t testing.TB, line string) *terminal.Terminal {
	t.Helper()
	one, err := s.r.Start(testenv.Context(t), terminal.Spec{Line: line})
	require.NoError(t, err)
	return one
}

const bash = `export PS1='> ' PROMPT_COMMAND=; exec bash --noprofile --norc`

func waitFor(t testing.TB, one *remote.Terminal, o terminal.WaitOptions) terminal.Waited {
	t.Helper()
	o.Timeout = testenv.Patience
	got, err := one.Wait(testenv.Context(t), o)
	require.NoError(t, err)
	require.NotEqual(t, terminal.WaitTimeout, got.Reason)
	return got
}

func TestEverythingCanBeDoneFromElsewhere(t *testing.T) {
	testenv.Slow(t)
	s := serve(t, t.TempDir(), nil)
	one := s.start(t, bash)
	waitFor(t, one, terminal.WaitOptions{Prompt: true})
	info, err := one.Info()
	require.NoError(t, err)
	assert.Equal(t, terminal.Running, info.State)
	assert.Equal(t, one.ID(), info.ID)
	assert.False(t, info.Elsewhere)
	list, err := s.client.List(testenv.Context(t))
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.GreaterOrEqual(t, list[0].Lasted, info.Lasted)
	list[0].Lasted = info.Lasted
	assert.Equal(t, info, list[0])
	assert.Equal(t, os.Getpid(), s.client.PID())

	enter, err := keys.Key("Enter")
	require.NoError(t, err)
	require.NoError(t, one.Send(keys.Text("echo $((6 * 7))"), enter))
	got := waitFor(t, one, terminal.WaitOptions{Pattern: `(?m)^42$`})
	assert.Equal(t, "42", got.Match)
	n, err := one.Write([]byte("echo \x1b[31mé\r"))
	require.NoError(t, err)
	assert.Equal(t, len("echo \x1b[31mé\r"), n)
	require.NoError(t, one.Resize(terminal.Size{Cols: 100, Rows: 30}))
	require.NoError(t, one.Send(keys.Text("clear; printf '\\e[31mred漢\\e[0m\\n'; stty size\r")))
	waitFor(t, one, terminal.WaitOptions{Text: "30 100"})

	local, err := s.r.Get(one.ID())
	require.NoError(t, err)
	waitFor(t, one, terminal.WaitOptions{Silence: 100 * time.Millisecond})
	there, err := one.Screen()
	require.NoError(t, err)
	here, err := local.Screen()
	require.NoError(t, err)
	assert.Equal(t, here, there)
	assert.Equal(t, string(here.ANSI()), string(there.ANSI()))

	hereOut, err := local.Output(0, 1<<20)
	require.NoError(t, err)
	thereOut, err := one.Output(0, 1<<20)
	require.NoError(t, err)
	assert.Equal(t, hereOut, thereOut)
	hereText, err := local.Text(5, 100)
	require.NoError(t, err)
	thereText, err := one.Text(5, 100)
	require.NoError(t, err)
	assert.Equal(t, hereText, thereText)
	lines, err := one.Scrollback()
	require.NoError(t, err)
	hereLines, err := local.Scrollback()
	require.NoError(t, err)
	assert.ElementsMatch(t, hereLines, lines)

	require.NoError(t, one.Send(keys.Text("cat\r")))
	waitFor(t, one, terminal.WaitOptions{Silence: 100 * time.Millisecond})
	require.NoError(t, one.Signal(syscall.SIGINT))
	waitFor(t, one, terminal.WaitOptions{Prompt: true})
	require.NoError(t, one.Close())
	info, err = one.Info()
	require.NoError(t, err)
	assert.Equal(t, terminal.Cancelled, info.State)
	require.NoError(t, one.Close())
}

func TestAViewerGetsEveryByteOnce(t *testing.T) {
	s := serve(t, t.TempDir(), &terminal.Options{BufferLimit: 8 << 20})
	one := s.start(t, `stty -opost; seq 200000; exit 3`)
	v, err := one.Attach(0)
	require.NoError(t, err)
	var got bytes.Buffer
	for {
		c, err := v.Next(testenv.Context(t))
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		require.Zero(t, c.Missed)
		require.Equal(t, int64(got.Len()), c.Offset)
		got.Write(c.Data)
		require.Equal(t, int64(got.Len()), v.Offset())
	}
	require.NoError(t, v.Close())
	var want strings.Builder
	for i := range 200000 {
		fmt.Fprintln(&want, i+1)
	}
	require.Equal(t, want.String(), got.String())
	_, err = v.Next(testenv.Context(t))
	require.ErrorIs(t, err, terminal.ErrClosed)
}

func TestANextThatWasInterruptedCanBeAskedAgain(t *testing.T) {
	s := serve(t, t.TempDir(), nil)
	one := s.start(t, `stty -echo; echo ready; read -r; echo done; read -r`)
	waitFor(t, one, terminal.WaitOptions{Pattern: "ready"}) // Before, what is typed would be echoed.
	v, err := one.Attach(terminal.Now)
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	cancel(why)
	_, err = v.Next(ctx)
	require.ErrorIs(t, err, why)
	_, err = one.Write([]byte("\n"))
	require.NoError(t, err)
	for text := ""; !strings.HasSuffix(text, "done\r\n"); { // In one chunk or several.
		c, err := v.Next(testenv.Context(t))
		require.NoError(t, err)
		text += string(c.Data)
	}
	go func() { _ = v.Close() }() // It ends one that waits.
	_, err = v.Next(testenv.Context(t))
	require.ErrorIs(t, err, terminal.ErrClosed)
	require.NoError(t, v.Close())
}

func TestErrorsKeepTheirIdentityAndTheirText(t *testing.T) {
	s := serve(t, t.TempDir(), &terminal.Options{WritePatience: 50 * time.Millisecond})
	local := s.local(t, "exit 3")
	over := s.client.Terminal(local.ID())
	waitFor(t, over, terminal.WaitOptions{})
	_, want := local.Write([]byte("x"))
	_, err := over.Write([]byte("x"))
	require.ErrorIs(t, err, terminal.ErrEnded)
	require.EqualError(t, err, want.Error())
	e, ok := errors.AsType[*terminal.Error](err)
	require.True(t, ok)
	assert.Equal(t, local.ID(), e.ID)

	_, err = s.client.Terminal("term-nothing-aaaaaaaa").Info()
	require.ErrorIs(t, err, terminal.ErrNotFound)
	_, err = s.client.Terminal("../x?y").Screen()
	require.ErrorIs(t, err, terminal.ErrNotFound)

	deaf := s.start(t, "stty raw; sleep 60")
	waitFor(t, deaf, terminal.WaitOptions{Silence: 100 * time.Millisecond})
	err = deaf.Resize(terminal.Size{Cols: -1, Rows: 5})
	require.ErrorIs(t, err, terminal.ErrSize)
	n, err := deaf.Write(bytes.Repeat([]byte("x"), 1<<20))
	require.ErrorIs(t, err, terminal.ErrNotRead)
	assert.Positive(t, n)
	assert.Less(t, n, 1<<20)
	_, err = deaf.Write(make([]byte, 9<<20))
	require.ErrorContains(t, err, "8388608 bytes")
	_, err = deaf.Wait(testenv.Context(t), terminal.WaitOptions{Pattern: "("})
	require.ErrorContains(t, err, "missing closing )")
	require.NotErrorIs(t, err, remote.ErrGone)

	err = dialled(t, s.r.Dir(), "nobody")
	require.ErrorIs(t, err, remote.ErrGone)
	said, err := remote.UnmarshalError(remote.MarshalError(want))
	require.NoError(t, err)
	require.ErrorIs(t, said, terminal.ErrEnded)
	said, err = remote.UnmarshalError(remote.MarshalError(nil))
	require.NoError(t, err)
	require.NoError(t, said)
}

func TestAContextEndsTheWaitOnBothSides(t *testing.T) {
	s := serve(t, t.TempDir(), nil)
	one := s.start(t, "sleep 60")
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("enough")
	time.AfterFunc(100*time.Millisecond, func() { cancel(why) })
	_, err := one.Wait(ctx, terminal.WaitOptions{Text: "never"})
	require.ErrorIs(t, err, why)
	require.NoError(t, s.server.Drain(testenv.Context(t)))
}

func TestARecordingComesLineByLine(t *testing.T) {
	testenv.Slow(t)
	s := serve(t, t.TempDir(), nil)
	one := s.start(t, `echo begun; read -rs; echo more; exit 0`)
	waitFor(t, one, terminal.WaitOptions{Text: "begun"})
	r, w := io.Pipe()
	type result struct {
		terminal.Recorded
		err error
	}
	done := make(chan result, 1)
	go func() {
		res, err := one.Record(context.Background(), w, terminal.RecordOptions{FromStart: true, Title: "a & b"})
		_ = w.Close() // A pipe of our own.
		done <- result{res, err}
	}()
	lines := bufio.NewScanner(r)
	require.True(t, lines.Scan())
	assert.Contains(t, lines.Text(), `"title":"a & b"`)
	require.True(t, lines.Scan())
	assert.Contains(t, lines.Text(), "begun")
	_, err := one.Write([]byte("\n"))
	require.NoError(t, err)
	rest := ""
	for lines.Scan() {
		rest += lines.Text()
	}
	assert.Contains(t, rest, "more")
	res := <-done
	require.NoError(t, res.err)
	info, err := one.Info()
	require.NoError(t, err)
	assert.Equal(t, info.Bytes, res.Bytes)

	sleeper := s.start(t, "echo begun; sleep 60")
	waitFor(t, sleeper, terminal.WaitOptions{Text: "begun"})
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	var cast bytes.Buffer
	time.AfterFunc(200*time.Millisecond, func() { cancel(why) })
	part, err := sleeper.Record(ctx, &cast, terminal.RecordOptions{FromStart: true})
	require.ErrorIs(t, err, why)
	assert.Equal(t, int64(len("begun\r\n")), part.Bytes)
	assert.True(t, strings.HasSuffix(cast.String(), "]\n"))
}

func TestAHundredClients(t *testing.T) {
	s := serve(t, t.TempDir(), nil)
	one := s.local(t, `read -rs; seq 1000; exit 0`)
	var all sync.WaitGroup
	var ready sync.WaitGroup
	ready.Add(100)
	for range 100 {
		all.Go(func() {
			client, err := remote.Dial(testenv.Context(t), s.r.Dir(), s.r.Owner())
			if !assert.NoError(t, err) {
				ready.Done()
				return
			}
			defer client.Close() // It cannot fail.
			v, err := client.Terminal(one.ID()).Attach(0)
			ready.Done()
			if !assert.NoError(t, err) {
				return
			}
			defer v.Close() // As above.
			n := 0
			for {
				c, err := v.Next(testenv.Context(t))
				if err != nil {
					assert.ErrorIs(t, err, io.EOF)
					break
				}
				n += len(c.Data)
			}
			assert.Equal(t, int64(n), one.Info().Bytes)
		})
	}
	ready.Wait()
	_, err := one.Write([]byte("\n"))
	require.NoError(t, err)
	all.Wait()
}

func TestAClosedServerEndsWhatIsUnderWay(t *testing.T) {
	s := serve(t, t.TempDir(), nil)
	one := s.start(t, "echo begun; sleep 60")
	waitFor(t, one, terminal.WaitOptions{Text: "begun"})
	v, err := one.Attach(0)
	require.NoError(t, err)
	defer v.Close() // It cannot fail.
	_, err = v.Next(testenv.Context(t))
	require.NoError(t, err)
	waited, recorded := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := one.Wait(context.Background(), terminal.WaitOptions{Text: "never"})
		waited <- err
	}()
	go func() {
		_, err := one.Record(context.Background(), io.Discard, terminal.RecordOptions{})
		recorded <- err
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.server.Drain(ctx), context.DeadlineExceeded)
	require.NoError(t, s.server.Close())
	require.NoError(t, s.server.Close())
	require.ErrorIs(t, <-waited, terminal.ErrClosed)
	require.ErrorIs(t, <-recorded, terminal.ErrClosed)
	_, err = v.Next(testenv.Context(t))
	require.ErrorIs(t, err, terminal.ErrClosed)
	_, err = one.Info()
	require.ErrorIs(t, err, remote.ErrGone)
	sockets, err := filepath.Glob(filepath.Join(s.r.Dir(), "*.sock*"))
	require.NoError(t, err)
	assert.Empty(t, sockets)
	// The program lives, and lets nobody reach it.
	require.ErrorIs(t, dialled(t, s.r.Dir(), s.r.Owner()), remote.ErrUnreachable)
	again, err := remote.Serve(s.r)
	require.NoError(t, err)
	require.NoError(t, again.Close())
}

func TestAClosedClientEndsItsCalls(t *testing.T) {
	s := serve(t, t.TempDir(), nil)
	client := dial(t, s.r)
	one := client.Terminal(s.local(t, "sleep 60").ID())
	v, err := one.Attach(0)
	require.NoError(t, err)
	time.AfterFunc(100*time.Millisecond, func() { _ = client.Close() })
	_, err = one.Wait(context.Background(), terminal.WaitOptions{})
	require.ErrorIs(t, err, terminal.ErrClosed)
	_, err = v.Next(testenv.Context(t))
	require.ErrorIs(t, err, terminal.ErrClosed)
	require.NoError(t, v.Close())
}

func TestALongPath(t *testing.T) {
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("needs /proc")
	}
	dir := filepath.Join(t.TempDir(), strings.Repeat("long/", 40))
	s := serve(t, dir, nil)
	require.Greater(t, len(s.r.Dir()), 150)
	waitFor(t, s.start(t, "exit 0"), terminal.WaitOptions{})
	require.NoError(t, s.server.Close())
	left, err := filepath.Glob(filepath.Join(dir, "*.sock*"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

func TestARegistryIsServedOnce(t *testing.T) {
	s := serve(t, t.TempDir(), nil)
	_, err := remote.Serve(s.r)
	require.ErrorContains(t, err, "served already")
	st, err := os.Stat(filepath.Join(s.r.Dir(), s.r.Owner()+".sock"))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), st.Mode().Perm())
}

func TestCurl(t *testing.T) {
	testenv.Slow(t)
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl")
	}
	s := serve(t, t.TempDir(), nil)
	one := s.start(t, bash)
	waitFor(t, one, terminal.WaitOptions{Prompt: true})
	curl := func(path string, args ...string) string {
		out, err := exec.Command("curl", append([]string{
			"-sS", "--max-time", "20", "--unix-socket", filepath.Join(s.r.Dir(), s.r.Owner()+".sock"), "http://limpet/v1" + path,
		}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	at := "/terminals/" + one.ID()
	assert.Contains(t, curl(""), `"version":1`)
	assert.Equal(t, "{}\n", curl(at+"/send", "-d", `["echo hi", "Enter", {"text": "Enter"}]`))
	waitFor(t, one, terminal.WaitOptions{Text: "> Enter"})
	assert.Contains(t, curl(at+"/screen?format=text"), "> echo hi\nhi\n> Enter")
	assert.Contains(t, curl(at+"/wait", "-d", `{"text": "hi"}`), `"reason":"matched"`)
	assert.Contains(t, curl(at+"/send", "-d", `["Ctrl-Foo"]`), `no key`)
	assert.Contains(t, curl(at+"/none"), "there is no GET /v1")
	require.NoError(t, one.Close())
	assert.Regexp(t, `^0 0 \d+\n`, curl(at+"/attach"))
}

// dialled is the error of a dial that does not go well.
func dialled(t *testing.T, dir, owner string) error {
	client, err := remote.Dial(testenv.Context(t), dir, owner)
	if err == nil {
		assert.NoError(t, client.Close())
	}
	return err
}
