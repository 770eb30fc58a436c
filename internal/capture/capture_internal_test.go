package capture

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/files"
	"github.com/limpet-sh/limpet/internal/testenv"
)

func rootOf(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	return root
}

func testCapture(t *testing.T, keep int64) *capture {
	t.Helper()
	c, err := newCapture(rootOf(t), "c", keep, nil)
	require.NoError(t, err)
	t.Cleanup(c.drop)
	return c
}

// appendTo writes to the file as a command does.
func appendTo(t *testing.T, c *capture, b []byte) {
	t.Helper()
	f, err := os.OpenFile(c.path(), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.Write(b)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestOutputAccountsForEveryByte(t *testing.T) {
	c := testCapture(t, 1<<20)
	text := strings.Repeat("ä€😀x", 100)
	appendTo(t, c, []byte(text))
	for limit := int64(0); limit <= int64(len(text))+1; limit++ {
		out, err := c.output(limit)
		require.NoError(t, err)
		require.LessOrEqual(t, int64(len(out.Head)+len(out.Tail)), limit)
		require.True(t, utf8.Valid(out.Head) && utf8.Valid(out.Tail), "limit %d", limit)
		require.True(t, strings.HasPrefix(text, string(out.Head)) && strings.HasSuffix(text, string(out.Tail)))
		require.EqualValues(t, len(text), out.Total)
	}
}

func TestAFileThatAnotherProcessHoldsIsNeverReused(t *testing.T) {
	p := Pool{root: rootOf(t), keep: 4096}
	defer p.Clear()
	c, err := p.capture()
	require.NoError(t, err)
	exe, err := os.Executable()
	require.NoError(t, err)
	holder := exec.Command(exe)
	holder.Env = append(os.Environ(), "LIMPET_TEST_HELPER=hold", "LIMPET_TEST_FILE="+c.path())
	stdin, err := holder.StdinPipe()
	require.NoError(t, err)
	stdout, err := holder.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, holder.Start())
	said := make([]byte, 5)
	_, err = io.ReadFull(stdout, said)
	require.NoError(t, err)
	require.Equal(t, "held\n", string(said))

	assert.False(t, p.put(c), "somebody has it open")
	other, err := p.capture()
	require.NoError(t, err)
	assert.NotEqual(t, c.path(), other.path())
	assert.True(t, p.put(other))

	require.NoError(t, stdin.Close())
	require.NoError(t, holder.Wait())
	assert.True(t, p.put(c), "nobody has it open")
	again, err := p.capture()
	require.NoError(t, err)
	assert.Equal(t, c.path(), again.path())
	assert.True(t, p.put(again))
}

func TestAMovedCaptureIsTheOneThatWasWritten(t *testing.T) {
	testenv.NeedProc(t)
	p := Pool{root: rootOf(t), keep: 4096}
	defer p.Clear()
	outside := t.TempDir()
	secret, kept := filepath.Join(outside, "secret"), filepath.Join(outside, "kept")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	o, err := p.Take(false)
	require.NoError(t, err)
	defer o.Release()
	appendTo(t, o.stdout, []byte("written"))
	require.NoError(t, os.Link(o.stdout.path(), filepath.Join(p.root.Name(), "second name")))
	assert.ErrorIs(t, o.Move(1, kept), errHeld, "somebody could go on writing")
	assert.NoFileExists(t, kept)

	o, err = p.Take(false)
	require.NoError(t, err)
	defer o.Release()
	appendTo(t, o.stdout, []byte("written"))
	// The command puts a symlink in its place; the file has no name then.
	require.NoError(t, os.Remove(o.stdout.path()))
	require.NoError(t, os.Symlink(secret, o.stdout.path()))
	assert.Error(t, o.Move(1, kept))
	assert.NoFileExists(t, kept)

	appendTo(t, o.stderr, []byte("written"))
	require.NoError(t, o.Move(2, kept))
	b, err := os.ReadFile(kept)
	require.NoError(t, err)
	assert.Equal(t, "written", string(b))
}

func TestReuseBeginsWithAnEmptyFile(t *testing.T) {
	p := Pool{root: rootOf(t), keep: 4096}
	defer p.Clear()
	c, err := p.capture()
	require.NoError(t, err)
	appendTo(t, c, bytes.Repeat([]byte("x"), 1<<20))
	c.bound(c.size(), c.size())
	require.True(t, p.put(c))
	again, err := p.capture()
	require.NoError(t, err)
	assert.Zero(t, again.size())
	assert.Zero(t, again.punched)
	require.NoError(t, os.Remove(again.path()))
	assert.False(t, p.put(again), "its name is gone")
	again.drop()
}

func TestPunchingKeepsHeadAndTailAndFreesTheMiddle(t *testing.T) {
	const keep, size = 100_000, 8 << 20
	c := testCapture(t, keep)
	text := make([]byte, size)
	for i := range text {
		text[i] = 'a' + byte(i%23)
	}
	appendTo(t, c, text)
	before := blocks(t, c.f)
	c.bound(c.size(), c.size())
	assert.EqualValues(t, size, c.size())
	assert.Less(t, blocks(t, c.f), before/8)
	assert.Less(t, blocks(t, c.f), int64(2*keep+3*4096))
	out, err := c.output(2 * keep)
	require.NoError(t, err)
	assert.Equal(t, text[:keep], out.Head)
	assert.Equal(t, text[size-keep:], out.Tail)
}

func TestPunchingLeavesWhatIsStillToBeStreamed(t *testing.T) {
	c := testCapture(t, 4096)
	appendTo(t, c, bytes.Repeat([]byte("x"), 4<<20))
	c.bound(c.size(), 2<<20)
	got, err := files.ReadRange(c.f, 2<<20, 4096)
	require.NoError(t, err)
	assert.Equal(t, bytes.Repeat([]byte("x"), 4096), got)
	assert.Greater(t, blocks(t, c.f), int64(2<<20)-1)
	assert.Less(t, blocks(t, c.f), int64(3<<20))
}

func blocks(t *testing.T, f *os.File) int64 {
	t.Helper()
	st, err := f.Stat()
	require.NoError(t, err)
	return st.Sys().(*syscall.Stat_t).Blocks * 512
}

func TestStreamHoldsBackAnIncompleteRuneUntilTheEnd(t *testing.T) {
	c := testCapture(t, 1<<20)
	var got bytes.Buffer
	s := &stream{c: c, w: &got}
	appendTo(t, c, []byte("a\xe2\x82"))
	require.NoError(t, s.copy(false))
	assert.Equal(t, "a", got.String())
	appendTo(t, c, []byte("\xacb\xf0\x9f"))
	require.NoError(t, s.copy(false))
	assert.Equal(t, "a€b", got.String())
	require.NoError(t, s.copy(true))
	assert.Equal(t, "a€b\xf0\x9f", got.String(), "the end loses nothing")
}

func TestStreamChunksHoldWholeRunes(t *testing.T) {
	c := testCapture(t, 1<<30)
	text := strings.Repeat("€", 200_000)
	appendTo(t, c, []byte(text))
	var got strings.Builder
	s := &stream{c: c, w: writer(func(p []byte) (int, error) {
		assert.True(t, utf8.Valid(p))
		return got.Write(p)
	})}
	require.NoError(t, s.copy(true))
	assert.Equal(t, text, got.String())
}

type writer func([]byte) (int, error)

func (f writer) Write(p []byte) (int, error) { return f(p) }

func TestASlowWriterIsToldHowMuchItLost(t *testing.T) {
	testenv.Slow(t)
	const keep = 8192
	c := testCapture(t, keep)
	const size = maxLag + (1 << 20)
	appendTo(t, c, bytes.Repeat([]byte("x"), size))
	var got bytes.Buffer
	s := &stream{c: c, w: &got}
	assert.EqualValues(t, size-keep, s.needs(size))
	c.bound(size, size-keep)
	require.NoError(t, s.copy(true))
	notice := "\n[limpet: 68149248 bytes omitted: the reader is too slow]\n"
	assert.Equal(t, notice+strings.Repeat("x", keep), got.String())
}

func TestASlowWriterOfMultiByteRunesGetsWholeOnes(t *testing.T) {
	testenv.Slow(t)
	const keep = 8192
	c := testCapture(t, keep)
	const size = (maxLag + (1 << 20)) / 3 * 3
	appendTo(t, c, bytes.Repeat([]byte("€"), size/3))
	var got bytes.Buffer
	s := &stream{c: c, w: &got}
	s.needs(size)
	require.NoError(t, s.copy(true))
	assert.True(t, utf8.Valid(got.Bytes()), "%.80q", got.String())
}

func TestAFailingWriterHoldsNothingUp(t *testing.T) {
	c := testCapture(t, 4096)
	appendTo(t, c, []byte("x"))
	s := &stream{c: c, w: writer(func([]byte) (int, error) { return 0, io.ErrClosedPipe })}
	require.ErrorIs(t, s.copy(false), io.ErrClosedPipe)
	require.ErrorIs(t, s.copy(true), io.ErrClosedPipe)
	assert.EqualValues(t, 100, s.needs(100))
}

func TestAWriterThatTakesLessIsAFailingOne(t *testing.T) {
	c := testCapture(t, 4096)
	appendTo(t, c, []byte("xyz"))
	s := &stream{c: c, w: writer(func(p []byte) (int, error) { return len(p) - 1, nil })}
	require.ErrorIs(t, s.copy(true), io.ErrShortWrite)
	require.ErrorIs(t, s.copy(true), io.ErrShortWrite)
}

func TestMonitorStreamsAndKnowsSilence(t *testing.T) {
	p := Pool{root: rootOf(t), keep: 4096}
	defer p.Clear()
	o, err := p.Take(false)
	require.NoError(t, err)
	var out, errs bytes.Buffer
	m := NewMonitor(o, &out, &errs)
	appendTo(t, o.stdout, []byte("out"))
	before := m.grown
	assert.Positive(t, m.Look())
	assert.True(t, m.grown.After(before))
	appendTo(t, o.stderr, []byte("err"))
	require.NoError(t, m.Finish(t.Context(), false, 0))
	assert.Equal(t, "out", out.String())
	assert.Equal(t, "err", errs.String())
	assert.Empty(t, o.Release())
}

func TestAStuckWriterIsGivenUp(t *testing.T) {
	p := Pool{root: rootOf(t), keep: 4096}
	defer p.Clear()
	o, err := p.Take(true)
	require.NoError(t, err)
	release := make(chan struct{})
	m := NewMonitor(o, writer(func(b []byte) (int, error) { <-release; return len(b), nil }), nil)
	appendTo(t, o.stdout, []byte("x"))
	require.ErrorIs(t, m.Finish(t.Context(), true, 10*time.Millisecond), ErrWriterStuck)
	close(release)
	<-m.copied
	o.Abandon()
}

func TestKeeperBoundsWhatAJobWritesAndDropsTheFileWhenItEnds(t *testing.T) {
	p := Pool{root: rootOf(t), keep: 4096}
	defer p.Clear()
	o, err := p.Take(true)
	require.NoError(t, err)
	c := o.stdout
	job, err := os.OpenFile(c.path(), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	var k Tender
	held := o.Release()
	require.Len(t, held, 1)
	k.Tend(held)
	for range 8 {
		_, err = job.Write(bytes.Repeat([]byte("x"), 1<<20))
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return blocks(t, job) < 1<<20 }, testenv.Patience, time.Millisecond)
	require.FileExists(t, c.path())
	require.NoError(t, job.Close())
	require.Eventually(t, func() bool {
		_, err := os.Stat(c.path())
		return os.IsNotExist(err)
	}, testenv.Patience, time.Millisecond)
	k.Close()
	k.Close()
}

func TestAClosedKeeperDropsWhatItGets(t *testing.T) {
	p := Pool{root: rootOf(t), keep: 4096}
	o, err := p.Take(true)
	require.NoError(t, err)
	path := o.stdout.path()
	job, err := os.Open(path)
	require.NoError(t, err)
	defer job.Close() // Read only.
	var k Tender
	k.Close()
	k.Tend(o.Release())
	assert.NoFileExists(t, path)
}
