package sessiontest

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
)

// live is a Writer that others look into.
type live struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *live) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *live) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func outputComesLive(t *testing.T, s session.Handle) {
	var out, err live
	goOn := filepath.Join(testenv.TempDir(t), "go on")
	r := start(testenv.Context(t), s, command.Request{
		Script: fmt.Sprintf("echo one; echo two >&2; until [ -e '%s' ]; do sleep 0.01; done; printf three", goOn), Stdout: &out, Stderr: &err,
	})
	testenv.Await(t, "the first of both", func() bool { return out.String() == "one\n" && err.String() == "two\n" })
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	res, failed := r.ended(t)
	require.NoError(t, failed)
	assert.Equal(t, "one\nthree", out.String())
	assert.Equal(t, "one\nthree", res.Stdout.String())
	assert.Equal(t, "two\n", res.Stderr.String())
}

// someBytes are random, and no text.
func someBytes(t *testing.T, n int) (path string, b []byte) {
	t.Helper()
	b = make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(b) // It cannot fail.
	path = filepath.Join(testenv.TempDir(t), "bytes")
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path, b
}

func allBytesArrive(t *testing.T, s session.Handle) {
	path, want := someBytes(t, 5<<20)
	var out, err bytes.Buffer
	res, failed := s.Do(testenv.Context(t), command.Request{Script: "cat '" + path + "'; cat '" + path + "' >&2", Stdout: &out, Stderr: &err})
	require.NoError(t, failed)
	assert.Equal(t, sha256.Sum256(want), sha256.Sum256(out.Bytes()))
	assert.Equal(t, sha256.Sum256(want), sha256.Sum256(err.Bytes()))
	assert.EqualValues(t, len(want), res.Stdout.Total)
	assert.EqualValues(t, len(want), res.Stderr.Total)
}

func longOutput(t *testing.T, s session.Handle) {
	res := run(t, s, "seq 1 400000")
	assert.EqualValues(t, 2688895, res.Stdout.Total)
	assert.True(t, bytes.HasPrefix(res.Stdout.Head, []byte("1\n2\n")))
	assert.True(t, bytes.HasSuffix(res.Stdout.Tail, []byte("\n399999\n400000\n")))
	assert.Positive(t, res.Stdout.Omitted())
}

func stderrIsMerged(t *testing.T, s session.Handle) {
	var out, err bytes.Buffer
	res, failed := s.Do(testenv.Context(t), command.Request{Script: "echo 1; echo 2 >&2; echo 3", MergeStderr: true, Stdout: &out, Stderr: &err})
	require.NoError(t, failed)
	assert.Equal(t, "1\n2\n3\n", out.String())
	assert.Equal(t, "1\n2\n3\n", res.Stdout.String())
	assert.Empty(t, err.String())
	assert.Zero(t, res.Stderr.Total)
}

var errFull = errors.New("there is no room")

// failing takes one Write.
type failing struct{ n int }

func (f *failing) Write(p []byte) (int, error) {
	if f.n++; f.n > 1 {
		return 0, errFull
	}
	return len(p), nil
}

func writerFails(t *testing.T, s session.Handle) {
	var out failing
	goOn := filepath.Join(testenv.TempDir(t), "go on")
	r := start(testenv.Context(t), s, command.Request{
		Script: fmt.Sprintf("echo one; echo x >&2; until [ -e '%s' ]; do sleep 0.01; done; seq 1 1000", goOn), Stdout: &out, Stderr: io.Discard,
	})
	require.NoError(t, os.WriteFile(goOn, nil, 0o600))
	res, err := r.ended(t)
	if out.n == 1 { // All came at once.
		require.NoError(t, err)
	} else {
		require.ErrorIs(t, err, errFull)
	}
	assert.Equal(t, 0, res.ExitCode)
	assert.True(t, strings.HasSuffix(res.Stdout.String(), "999\n1000\n"))
}

// lessens is a Writer against io.Writer: it takes less, and returns no error.
type lessens struct{}

func (lessens) Write(p []byte) (int, error) { return len(p) - 1, nil }

func writerTakesLess(t *testing.T, s session.Handle) {
	res, err := s.Do(testenv.Context(t), command.Request{Script: "echo one; exit 3", Stdout: lessens{}})
	require.ErrorIs(t, err, io.ErrShortWrite)
	assert.Equal(t, 3, res.ExitCode)
	assert.Equal(t, "one\n", res.Stdout.String())
}

// blocked is a Writer that takes nothing until it is let go.
type blocked struct {
	begun chan struct{}
	once  sync.Once
	free  chan struct{}
}

func (b *blocked) Write(p []byte) (int, error) {
	b.once.Do(func() { close(b.begun) })
	<-b.free
	return len(p), nil
}

func writerBlocks(t *testing.T, s session.Handle) {
	out := &blocked{begun: make(chan struct{}), free: make(chan struct{})}
	defer close(out.free)
	ctx := testenv.Context(t)
	r := start(ctx, s, command.Request{Script: "echo begun; sleep 1000", Stdout: out})
	select {
	case <-out.begun:
	case <-ctx.Done():
		require.FailNow(t, "nothing was printed")
	}
	ran, err := s.Interrupt(ctx)
	require.NoError(t, err)
	assert.True(t, ran)
	res, err := r.ended(t)
	require.Error(t, err)
	assert.Equal(t, "begun\n", res.Stdout.String())
	assert.Equal(t, "next", says(t, s, "echo next"))
}

func stdinArrives(t *testing.T, s session.Handle) {
	run(t, s, "cd /tmp; export E=e")
	res, err := s.Do(testenv.Context(t), command.Request{Script: "echo $PWD $E; cat", Stdin: strings.NewReader("a line\nand a rest")})
	require.NoError(t, err)
	assert.Equal(t, "/tmp e\na line\nand a rest", res.Stdout.String())
	path, want := someBytes(t, 2<<20)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close() // Read only.
	res, err = s.Do(testenv.Context(t), command.Request{Script: "sha256sum", Stdin: struct{ io.Reader }{f}})
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("%x  -\n", sha256.Sum256(want)), res.Stdout.String())
}

func stdinIsLeft(t *testing.T, s session.Handle) {
	res, err := s.Do(testenv.Context(t), command.Request{Script: "head -c 3", Stdin: io.LimitReader(zeros{}, 1<<30)})
	require.NoError(t, err)
	assert.EqualValues(t, 3, res.Stdout.Total)
}

// zeros is an endless Reader.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func stdinFails(t *testing.T, s session.Handle) {
	res, err := s.Do(testenv.Context(t), command.Request{Script: "cat", Stdin: io.MultiReader(strings.NewReader("some\n"), failingReader{})})
	require.ErrorIs(t, err, errFull)
	assert.Regexp(t, `^(oneshot|shell|session): reading the command's stdin: there is no room$`, err.Error())
	assert.Equal(t, 0, res.ExitCode)
	assert.Equal(t, "some\n", res.Stdout.String())
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errFull }

func endlessStdin(t *testing.T, s session.Handle) {
	r, w := io.Pipe() // Nobody writes.
	defer w.Close()   // It ends the goroutine that reads.
	res, err := s.Do(testenv.Context(t), command.Request{Script: "exit 5", Stdin: r})
	require.NoError(t, err)
	assert.Equal(t, 5, res.ExitCode)
}
