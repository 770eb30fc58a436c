package transfer_test

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/transfer"
)

// noted are the entries that a copy has left out.
type noted struct{ skipped, failed []string }

func (n *noted) options() *transfer.Options {
	return &transfer.Options{Note: func(path, why string, skipped bool) {
		if skipped {
			n.skipped = append(n.skipped, path+": "+why)
		} else {
			n.failed = append(n.failed, path+": "+why)
		}
	}}
}

// random are bytes that are like no others.
func random(t *testing.T, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	_, err := rand.Read(b)
	require.NoError(t, err)
	return b
}

// write writes a file, and the directories that it is in.
func write(t *testing.T, path string, b []byte, mode fs.FileMode) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, b, 0o600))
	require.NoError(t, os.Chmod(path, mode))
}

// listed describes all that there is in a directory: kinds, modes, contents, and times but for those of links.
func listed(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		st, err := d.Info()
		require.NoError(t, err)
		name, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		switch {
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			require.NoError(t, err)
			all[name] = "-> " + target
		case d.IsDir():
			all[name] = fmt.Sprint(st.Mode(), st.ModTime().UnixNano())
		default:
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			all[name] = fmt.Sprint(st.Mode(), st.ModTime().UnixNano(), len(b)) + string(b[:min(len(b), 100)]) + string(b[max(0, len(b)-100):])
		}
		return nil
	}))
	return all
}

// strange makes a directory with all that is seldom.
func strange(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(testenv.TempDir(t), "t")
	for name, b := range map[string][]byte{
		"plain": []byte("plain\n"), "empty": nil, "-rf": []byte("dash"), "new\nline": []byte("n"), "bad\xff\xfeutf": []byte("8"), ":colon": []byte(":"),
		strings.Repeat("n", 255): []byte("long"), "one chunk": random(t, 256<<10), "some chunks": random(t, 3<<20), "and one": random(t, 256<<10+1),
		"a/b/c/deep": []byte("deep"), "a/.hidden": []byte("."), "~": []byte("home"), `back\slash`: []byte("b"), "\x1b[31m": []byte("red"),
	} {
		write(t, filepath.Join(dir, name), b, 0o640)
	}
	write(t, filepath.Join(dir, "script"), []byte("#!/bin/sh\n"), 0o755)
	write(t, filepath.Join(dir, "secret"), []byte("x"), 0o400)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "nothing in it"), 0o700))
	for name, target := range map[string]string{"to file": "plain", "to dir": "a", "to nothing": "no/such", "outside": "/etc/passwd", "up": "../../.."} {
		require.NoError(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	write(t, filepath.Join(dir, "read only/x"), []byte("x"), 0o444)
	require.NoError(t, os.Chmod(filepath.Join(dir, "read only"), 0o555))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "read only"), 0o755) }) // For who removes it.
	long := time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)
	for _, name := range []string{"plain", "a/b", "a", "."} {
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), long, long))
	}
	return dir
}

// way is one of the two directions.
type way struct {
	name string
	from func(t *testing.T, here, home string) (transfer.Source, transfer.Sink, string, string)
}

// ways has the source and the destination be directories, which are named as relative paths where that is the home.
var ways = []way{
	{"out", func(t *testing.T, source, dest string) (transfer.Source, transfer.Sink, string, string) {
		return &transfer.Local{}, there(t, dest), source, "."
	}},
	{"in", func(t *testing.T, source, dest string) (transfer.Source, transfer.Sink, string, string) {
		return there(t, filepath.Dir(source)), &transfer.Local{}, filepath.Base(source), dest
	}},
}

// both runs a test in both directions.
func both(t *testing.T, run func(t *testing.T, way func(t *testing.T, source, dest string) (transfer.Source, transfer.Sink, string, string))) {
	t.Helper()
	for _, one := range ways {
		t.Run(one.name, func(t *testing.T) { run(t, one.from) })
	}
}

func TestADirectoryIsCopiedAsItIs(t *testing.T) {
	both(t, func(t *testing.T, way func(*testing.T, string, string) (transfer.Source, transfer.Sink, string, string)) {
		source, dest := strange(t), testenv.TempDir(t)
		from, to, path, as := way(t, source, dest)
		var n noted
		c := transfer.New(from, to, n.options())
		require.NoError(t, c.Copy(testenv.Context(t), path, as), n)
		want := listed(t, source)
		assert.Equal(t, want, listed(t, filepath.Join(dest, "t")))
		assert.EqualValues(t, 18, c.Result().Files)
		assert.EqualValues(t, 5, c.Result().Links)

		c = transfer.New(from, to, n.options())
		require.NoError(t, c.Copy(testenv.Context(t), path, as))
		assert.Zero(t, c.Result().Bytes, "all of it is there")
		assert.EqualValues(t, 18, c.Result().Same)
		assert.Equal(t, want, listed(t, filepath.Join(dest, "t")))
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(dest, "t/read only"), 0o755) }) // For who removes it.
	})
}

func TestWhereItGoes(t *testing.T) {
	for _, one := range []struct{ source, dest, want string }{
		{"f", "d", "d/f"}, {"f", "d/", "d/f"}, {"f", "new", "new"}, {"f", "d/new", "d/new"}, {"f", "old", "old"}, {"f", "to-d", "d/f"}, {"f", "to-old", "to-old"},
		{"to-f", "d", "d/to-f"}, {"f", ".", "f"}, {"./f", "./new", "new"},
		{"s", "d", "d/s/x"}, {"s/", "d", "d/s/x"}, {"s", "new", "new/x"}, {"s", "new/", "new/x"}, {"s/.", "d", "d/x"}, {"s/.", "new", "new/x"}, {"to-s", "d", "d/to-s/x"},
		{"f", "new/", "! no such file"}, {"f", "no/such", "! no such file"}, {"s", "old", "! a directory cannot take the place of a file"},
		{"f", "full", "! there is a directory of that name"}, {"s", "taken", "! something of that name that is no directory"}, {"nosuch", "d", "! no such file"},
		{"f", "old/x", "! not a directory"}, {"f", "fifo", "! it is a fifo"}, {"f", "..", "../f"}, {"s/x", "~", "~"},
	} {
		t.Run(one.source+" to "+one.dest, func(t *testing.T) {
			both(t, func(t *testing.T, way func(*testing.T, string, string) (transfer.Source, transfer.Sink, string, string)) {
				source, dest := testenv.TempDir(t), filepath.Join(testenv.TempDir(t), "dest")
				write(t, filepath.Join(source, "f"), []byte("f"), 0o600)
				write(t, filepath.Join(source, "s/x"), []byte("x"), 0o600)
				require.NoError(t, os.Symlink("f", filepath.Join(source, "to-f")))
				require.NoError(t, os.Symlink("s", filepath.Join(source, "to-s")))
				require.NoError(t, os.MkdirAll(filepath.Join(dest, "d"), 0o755))
				write(t, filepath.Join(dest, "old"), []byte("old"), 0o600)
				write(t, filepath.Join(dest, "full/f/x"), []byte("old"), 0o600)
				write(t, filepath.Join(dest, "taken/s"), []byte("old"), 0o600)
				require.NoError(t, os.Symlink("d", filepath.Join(dest, "to-d")))
				require.NoError(t, os.Symlink("old", filepath.Join(dest, "to-old")))
				require.NoError(t, syscall.Mkfifo(filepath.Join(dest, "fifo"), 0o600))
				from, to, _, _ := way(t, filepath.Join(source, "x"), dest)
				var n noted
				path, as := filepath.Join(source)+"/"+one.source, dest+"/"+one.dest
				err := transfer.New(from, to, n.options()).Copy(testenv.Context(t), path, as)
				if why, fails := strings.CutPrefix(one.want, "! "); fails {
					require.Error(t, err)
					assert.Contains(t, err.Error()+strings.Join(n.failed, ";"), why)
					return
				}
				require.NoError(t, err, n)
				b, err := os.ReadFile(filepath.Join(dest, one.want))
				require.NoError(t, err)
				st, err := os.Stat(path)
				require.NoError(t, err)
				want := map[bool]string{false: "f", true: "x"}[st.IsDir() || strings.HasSuffix(path, "x")]
				assert.Equal(t, want, string(b))
				old, err := os.ReadFile(filepath.Join(dest, "old"))
				require.NoError(t, err)
				assert.Equal(t, one.want == "old", string(old) == "f", "a link is replaced, and not followed")
			})
		})
	}
}

func TestWhatIsNoFileIsSkipped(t *testing.T) {
	both(t, func(t *testing.T, way func(*testing.T, string, string) (transfer.Source, transfer.Sink, string, string)) {
		source, dest := filepath.Join(testenv.TempDir(t), "s"), testenv.TempDir(t)
		write(t, filepath.Join(source, "a"), []byte("a"), 0o600)
		write(t, filepath.Join(source, "z"), []byte("z"), os.ModeSetuid|0o755)
		require.NoError(t, syscall.Mkfifo(filepath.Join(source, "fifo"), 0o600))
		socket(t, filepath.Join(source, "socket"))
		from, to, path, as := way(t, source, dest)
		var n noted
		err := transfer.New(from, to, n.options()).Copy(testenv.Context(t), path, as)
		require.ErrorIs(t, err, transfer.ErrPartly)
		assert.Equal(t, []string{"s/fifo: it is not copied: a fifo", "s/socket: it is not copied: a socket"}, n.skipped)
		assert.FileExists(t, filepath.Join(dest, "s/a"))
		st, err := os.Stat(filepath.Join(dest, "s/z"))
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o755), st.Mode(), "the bit is not copied")
		assert.NoFileExists(t, filepath.Join(dest, "s/fifo"))
	})
}

// No link in the destination leads outside of it.
func TestLinksInTheDestinationAreNotFollowed(t *testing.T) {
	both(t, func(t *testing.T, way func(*testing.T, string, string) (transfer.Source, transfer.Sink, string, string)) {
		source, dest, outside := filepath.Join(testenv.TempDir(t), "s"), testenv.TempDir(t), testenv.TempDir(t)
		for _, name := range []string{"abs/x", "rel/x", "inside/x", "file", "part"} {
			write(t, filepath.Join(source, name), []byte("new"), 0o600)
		}
		write(t, filepath.Join(outside, "file"), []byte("theirs"), 0o600)
		require.NoError(t, os.MkdirAll(filepath.Join(dest, "s/else"), 0o755))
		link := func(target, name string) {
			require.NoError(t, os.Symlink(target, filepath.Join(dest, "s", name)))
		}
		link(outside, "abs")
		up, err := filepath.Rel(filepath.Join(dest, "s"), outside)
		require.NoError(t, err)
		link(up, "rel")
		link("else", "inside")
		link(filepath.Join(outside, "file"), "file")
		link(filepath.Join(outside, "made"), transfer.PartOf("part")) // As somebody may who can write there.
		from, to, path, as := way(t, source, dest)
		var n noted
		err = transfer.New(from, to, n.options()).Copy(testenv.Context(t), path, as)
		require.ErrorIs(t, err, transfer.ErrPartly)
		assert.Len(t, n.failed, 3)
		theirs, err := os.ReadDir(outside)
		require.NoError(t, err)
		require.Len(t, theirs, 1)
		b, err := os.ReadFile(filepath.Join(outside, "file"))
		require.NoError(t, err)
		assert.Equal(t, "theirs", string(b))
		for _, name := range []string{"file", "part"} {
			st, err := os.Lstat(filepath.Join(dest, "s", name))
			require.NoError(t, err)
			assert.True(t, st.Mode().IsRegular(), "it has taken the place of the link")
		}
	})
}

// What is there of a file is not sent again, if it is of that file.
func TestACopyGoesOnWhereItWas(t *testing.T) {
	both(t, func(t *testing.T, way func(*testing.T, string, string) (transfer.Source, transfer.Sink, string, string)) {
		const size = 2<<20 + 7
		b := random(t, size)
		for name, one := range map[string]struct {
			part []byte
			sent int64
		}{
			"a part":         {b[:1<<20+5], size - (1<<20 + 5)},
			"all of it":      {b, 0},
			"another's part": {random(t, 1<<20), size},
			"more than all":  {append(bytes.Clone(b), 'x'), size},
			"nothing":        {nil, size},
		} {
			t.Run(name, func(t *testing.T) {
				source, dest := filepath.Join(testenv.TempDir(t), "f"), testenv.TempDir(t)
				write(t, source, b, 0o644)
				write(t, filepath.Join(dest, transfer.PartOf("f")), one.part, 0o600)
				from, to, path, as := way(t, source, dest)
				c := transfer.New(from, to, nil)
				require.NoError(t, c.Copy(testenv.Context(t), path, as))
				got, err := os.ReadFile(filepath.Join(dest, "f"))
				require.NoError(t, err)
				assert.True(t, bytes.Equal(b, got))
				assert.Equal(t, one.sent, c.Result().Bytes)
				assert.NoFileExists(t, filepath.Join(dest, transfer.PartOf("f")))
			})
		}
	})
}

func TestAFileThatChangesIsAnError(t *testing.T) {
	testenv.Slow(t)
	both(t, func(t *testing.T, way func(*testing.T, string, string) (transfer.Source, transfer.Sink, string, string)) {
		source := filepath.Join(testenv.TempDir(t), "f")
		for name, change := range map[string]func(){
			"grows":      func() { appendTo(t, source, "x") },
			"is cut":     func() { require.NoError(t, os.Truncate(source, 1<<20)) },
			"is emptied": func() { require.NoError(t, os.Truncate(source, 0)) },
			"is written": func() { overwrite(t, source, "x") },
		} {
			t.Run(name, func(t *testing.T) {
				dest := testenv.TempDir(t)
				from, to, path, as := way(t, source, dest)
				write(t, source, random(t, 8<<20), 0o644)
				var n noted
				changes := &changer{Source: from, change: change}
				err := transfer.New(changes, to, n.options()).Copy(testenv.Context(t), path, as)
				require.ErrorIs(t, err, transfer.ErrPartly)
				require.Len(t, n.failed, 1)
				assert.Contains(t, n.failed[0], "it changed while it was copied")
				left, err := os.ReadDir(dest)
				require.NoError(t, err)
				assert.Empty(t, left)
			})
		}
	})
}

func TestWhatCannotBeReadIsSaidAndTheRestIsCopied(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root can read everything")
	}
	both(t, func(t *testing.T, way func(*testing.T, string, string) (transfer.Source, transfer.Sink, string, string)) {
		source, dest := filepath.Join(testenv.TempDir(t), "s"), testenv.TempDir(t)
		write(t, filepath.Join(source, "a"), nil, 0)
		write(t, filepath.Join(source, "b"), []byte("b"), 0o600)
		write(t, filepath.Join(source, "c/d"), nil, 0)
		require.NoError(t, os.Chmod(filepath.Join(source, "c"), 0))
		t.Cleanup(func() { _ = os.Chmod(filepath.Join(source, "c"), 0o700) }) // For who removes it.
		from, to, path, as := way(t, source, dest)
		var n noted
		require.ErrorIs(t, transfer.New(from, to, n.options()).Copy(testenv.Context(t), path, as), transfer.ErrPartly)
		assert.Len(t, n.failed, 2)
		assert.FileExists(t, filepath.Join(dest, "s/b"))
	})
}

func TestAFileThatFailsDoesNotStopTheRest(t *testing.T) {
	source, dest := filepath.Join(testenv.TempDir(t), "s"), testenv.TempDir(t)
	for i := range 50 {
		write(t, filepath.Join(source, fmt.Sprint(i)), []byte(fmt.Sprint(i)), 0o600)
	}
	from := &changer{Source: &transfer.Local{}, fail: func(path string) error {
		if path == "7" || path == "31" {
			return errors.New("oops")
		}
		return nil
	}}
	var n noted
	c := transfer.New(from, there(t, dest), n.options())
	require.ErrorIs(t, c.Copy(testenv.Context(t), source, "."), transfer.ErrPartly)
	assert.ElementsMatch(t, []string{"s/7: oops", "s/31: oops"}, n.failed)
	assert.EqualValues(t, 48, c.Result().Files)
}

// A directory of more entries than a page has, and paths that are too deep.
func TestLargeDirectories(t *testing.T) {
	testenv.Slow(t)
	both(t, func(t *testing.T, way func(*testing.T, string, string) (transfer.Source, transfer.Sink, string, string)) {
		source, dest := filepath.Join(testenv.TempDir(t), "s"), testenv.TempDir(t)
		require.NoError(t, os.Mkdir(source, 0o755))
		const many = 1100
		for i := range many {
			require.NoError(t, os.WriteFile(filepath.Join(source, fmt.Sprintf("%0200d", i)), nil, 0o600))
		}
		require.NoError(t, os.MkdirAll(filepath.Join(source, strings.Repeat("d/", 150)), 0o755))
		from, to, path, as := way(t, source, dest)
		c := transfer.New(from, to, nil)
		require.NoError(t, c.Copy(testenv.Context(t), path, as))
		assert.EqualValues(t, many, c.Result().Files)
		assert.EqualValues(t, 151, c.Result().Dirs)

		require.NoError(t, os.MkdirAll(filepath.Join(source, strings.Repeat("d/", 210)), 0o755))
		var n noted
		require.ErrorIs(t, transfer.New(from, to, n.options()).Copy(testenv.Context(t), path, as), transfer.ErrPartly)
		require.Len(t, n.failed, 1)
		assert.Contains(t, n.failed[0], "it is in more than 200 directories")
	})
}

// Two copies of the same name do not write the same file.
func TestTwoCopiesOfOneNameDoNotMix(t *testing.T) {
	dest := testenv.TempDir(t)
	one, other := filepath.Join(testenv.TempDir(t), "f"), filepath.Join(testenv.TempDir(t), "f")
	write(t, one, random(t, 3<<20), 0o600)
	write(t, other, random(t, 3<<20), 0o600)
	far := there(t, dest)
	second := &changer{Source: &transfer.Local{}, change: func() {
		require.NoError(t, transfer.New(&transfer.Local{}, far, nil).Copy(testenv.Context(t), other, "."))
	}}
	var n noted
	err := transfer.New(second, far, n.options()).Copy(testenv.Context(t), one, ".")
	if err != nil {
		require.ErrorIs(t, err, transfer.ErrPartly)
	}
	got, err := os.ReadFile(filepath.Join(dest, "f"))
	require.NoError(t, err)
	var wants [2][]byte
	for i, path := range []string{one, other} {
		wants[i], err = os.ReadFile(path)
		require.NoError(t, err)
	}
	assert.True(t, bytes.Equal(got, wants[0]) || bytes.Equal(got, wants[1]), "it is one of the two")
}

// A large file takes no memory.
func TestALargeFileTakesNoMemory(t *testing.T) {
	testenv.Slow(t)
	both(t, func(t *testing.T, way func(*testing.T, string, string) (transfer.Source, transfer.Sink, string, string)) {
		source, dest := filepath.Join(testenv.TempDir(t), "f"), testenv.TempDir(t)
		write(t, source, nil, 0o600)
		const size = 160 << 20
		require.NoError(t, os.Truncate(source, size))
		from, to, path, as := way(t, source, dest)
		over, peak := make(chan struct{}), make(chan uint64)
		go func() {
			live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}} // Without what is only not collected yet.
			var most uint64
			for {
				select {
				case <-over:
					peak <- most
					return
				case <-time.After(10 * time.Millisecond):
					metrics.Read(live)
					most = max(most, live[0].Value.Uint64())
				}
			}
		}()
		require.NoError(t, transfer.New(from, to, nil).Copy(t.Context(), path, as))
		close(over)
		most := <-peak
		assert.NotZero(t, most)
		assert.Less(t, most, uint64(64<<20), "both sides are in this program")
		st, err := os.Stat(filepath.Join(dest, "f"))
		require.NoError(t, err)
		assert.EqualValues(t, size, st.Size())
	})
}
