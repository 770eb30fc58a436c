package command_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
)

func TestZeroOutputIsAnEmptyStream(t *testing.T) {
	var out command.Output
	assert.Empty(t, out.Bytes())
	assert.Empty(t, out.String())
	assert.Zero(t, out.Omitted())
	assert.False(t, out.Binary())
	n, err := out.ReadAt(make([]byte, 4), 0)
	assert.Zero(t, n)
	assert.ErrorIs(t, err, io.EOF)
	found, err := out.Search(regexp.MustCompile("."), 0)
	assert.NoError(t, err)
	assert.Empty(t, found)
}

func TestBytesSaysHowMuchWasLeftOut(t *testing.T) {
	for _, test := range []struct {
		name    string
		out     command.Output
		omitted int64
		want    string
	}{
		{"all in head", command.Output{Head: []byte("abc"), Total: 3}, 0, "abc"},
		{"head and tail meet", command.Output{Head: []byte("ab"), Tail: []byte("cd"), Total: 4}, 0, "abcd"},
		{"a gap", command.Output{Head: []byte("ab"), Tail: []byte("yz"), Total: 26}, 22, "ab\n[limpet: 22 bytes omitted]\nyz"},
		{"no tail", command.Output{Head: []byte("ab"), Total: 5}, 3, "ab\n[limpet: 3 bytes omitted]\n"},
		{"nothing kept", command.Output{Total: 5}, 5, "\n[limpet: 5 bytes omitted]\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			assert.Equal(t, test.omitted, test.out.Omitted())
			assert.Equal(t, test.want, string(test.out.Bytes()))
			assert.Equal(t, test.want, test.out.String())
		})
	}
}

func TestBytesOfHeadAndTailAreACopy(t *testing.T) {
	out := command.Output{Head: append(make([]byte, 0, 64), "ab"...), Tail: []byte("cd"), Total: 4}
	got := out.Bytes()
	got[0] = 'X'
	assert.Equal(t, "ab", string(out.Head))
}

func TestBinaryIsWhatIsNoText(t *testing.T) {
	for _, test := range []struct {
		name string
		out  command.Output
		want bool
	}{
		{"text", command.Output{Head: []byte("grün\n")}, false},
		{"NUL in head", command.Output{Head: []byte("a\x00b")}, true},
		{"NUL in tail", command.Output{Head: []byte("a"), Tail: []byte("\x00")}, true},
		{"latin-1", command.Output{Head: []byte("gr\xfcn")}, true},
		{"no UTF-8 in tail", command.Output{Tail: []byte("\xff")}, true},
	} {
		t.Run(test.name, func(t *testing.T) { assert.Equal(t, test.want, test.out.Binary()) })
	}
}

// sparse is a stream of lines of which head and tail are in memory, and a
// stretch behind the head and one before the tail in the file.
func sparse(t *testing.T) (whole []byte, out command.Output) {
	t.Helper()
	const page, pages = 4096, 64
	for i := 0; len(whole) < page*pages; i++ {
		whole = append(whole, strings.Repeat("x", 58)...)
		whole = append(whole, []byte{'0' + byte(i/1000%10), '0' + byte(i/100%10), '0' + byte(i/10%10), '0' + byte(i%10), '\n'}...)
	}
	whole = whole[:page*pages]
	path := filepath.Join(t.TempDir(), "kept")
	f, err := os.Create(path)
	require.NoError(t, err)
	_, err = f.WriteAt(whole[:8*page], 0)
	require.NoError(t, err)
	_, err = f.WriteAt(whole[56*page:], 56*page)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	return whole, command.Output{Head: whole[:1000], Tail: whole[len(whole)-1000:], Total: int64(len(whole)), Path: path}
}

func TestReadAtPagesThroughHeadFileAndTail(t *testing.T) {
	whole, out := sparse(t)
	const kept = 8 * 4096
	for _, test := range []struct {
		name     string
		off, len int64
		n        int64 // how much comes
		err      error
	}{
		{"in the head", 10, 100, 100, nil},
		{"from head into the file", 900, 200, 200, nil},
		{"in the file", 5000, 3000, 3000, nil},
		{"up to the gap", kept - 100, 100, 100, nil},
		{"into the gap", kept - 100, 300, 100, command.ErrOmitted},
		{"in the gap", kept + 4096, 10, 0, command.ErrOmitted},
		{"behind the gap", 56 * 4096, 4096, 4096, nil},
		{"from file into the tail", int64(len(whole)) - 1500, 1500, 1500, nil},
		{"beyond the end", int64(len(whole)) - 5, 10, 5, io.EOF},
		{"at the end", int64(len(whole)), 10, 0, io.EOF},
	} {
		t.Run(test.name, func(t *testing.T) {
			buf := make([]byte, test.len)
			n, err := out.ReadAt(buf, test.off)
			assert.ErrorIs(t, err, test.err)
			assert.EqualValues(t, test.n, n)
			assert.Equal(t, string(whole[test.off:test.off+int64(n)]), string(buf[:n]))
		})
	}
}

func TestReadAtRefusesANegativeOffset(t *testing.T) {
	_, err := command.Output{Head: []byte("a"), Total: 1}.ReadAt(make([]byte, 1), -1)
	assert.ErrorContains(t, err, "negative offset -1")
}

func TestReadAtWithoutTheFileSaysOmitted(t *testing.T) {
	_, out := sparse(t)
	out.Path = filepath.Join(t.TempDir(), "gone")
	_, err := out.ReadAt(make([]byte, 10), 5000)
	assert.ErrorIs(t, err, command.ErrOmitted)
	assert.ErrorIs(t, err, os.ErrNotExist)
}

func TestReadAtBehindAFileThatIsTooShortSaysOmitted(t *testing.T) {
	whole, out := sparse(t)
	require.NoError(t, os.Truncate(out.Path, 60*4096))
	buf := make([]byte, 200)
	n, err := out.ReadAt(buf, 60*4096-100)
	assert.ErrorIs(t, err, command.ErrOmitted)
	assert.Equal(t, string(whole[60*4096-100:60*4096]), string(buf[:n]))
}

func TestKeptStepsOverGaps(t *testing.T) {
	_, out := sparse(t)
	gone, headless, tailless := out, out, out
	gone.Path = filepath.Join(t.TempDir(), "gone")
	headless.Head, headless.Path = nil, ""
	tailless.Tail, tailless.Path = nil, ""
	const gap, behind, total = 8 * 4096, 56 * 4096, 64 * 4096
	for _, test := range []struct {
		name          string
		out           command.Output
		off, from, to int64
	}{
		{"the beginning", out, 0, 0, gap},
		{"in the file", out, 5000, 5000, gap},
		{"the last byte before the gap", out, gap - 1, gap - 1, gap},
		{"at the gap", out, gap, behind, total},
		{"in the gap", out, gap + 4097, behind, total},
		{"the last byte of the gap", out, behind - 1, behind, total},
		{"behind the gap", out, behind + 1, behind + 1, total},
		{"in the tail", out, total - 1, total - 1, total},
		{"at the end", out, total, total, total},
		{"beyond the end", out, total + 1, total, total},
		{"head without the file", gone, 10, 10, 1000},
		{"tail without the file", gone, 1000, total - 1000, total},
		{"no head", headless, 0, total - 1000, total},
		{"no tail", tailless, 1000, total, total},
		{"nothing", command.Output{}, 0, 0, 0},
		{"all", command.Output{Head: []byte("abc"), Total: 3}, 1, 1, 3},
		{"head and tail meet", command.Output{Head: []byte("ab"), Tail: []byte("cd"), Total: 4}, 1, 1, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			from, to := test.out.Kept(test.off)
			assert.Equal(t, [2]int64{test.from, test.to}, [2]int64{from, to})
			n, err := test.out.ReadAt(make([]byte, to-from), from)
			assert.NoError(t, err)
			assert.EqualValues(t, to-from, n)
		})
	}
}

func TestReadAtIsGoodForASectionReader(t *testing.T) {
	out := command.Output{Head: []byte("hello "), Tail: []byte("world"), Total: 11}
	all, err := io.ReadAll(io.NewSectionReader(out, 0, out.Total))
	require.NoError(t, err)
	assert.Equal(t, "hello world", string(all))
}

func TestSearchFindsLinesOnBothSidesOfTheGap(t *testing.T) {
	whole, out := sparse(t)
	found, err := out.Search(regexp.MustCompile("x0(002|100|2000|3700|4150)$"), 0)
	require.NoError(t, err)
	var numbers []string
	for _, match := range found {
		assert.Equal(t, match.Line+"\n", string(whole[match.Offset:match.Offset+int64(len(match.Line))+1]))
		numbers = append(numbers, match.Line[58:])
	}
	assert.Equal(t, []string{"0002", "0100"}, numbers)

	last := string(bytes.TrimSpace(whole[len(whole)-200:])[64:127])
	found, err = out.Search(regexp.MustCompile(regexp.QuoteMeta(last[len(last)-10:])), 0)
	require.NoError(t, err)
	assert.NotEmpty(t, found, "a line of the tail")
}

func TestSearchStopsAtMax(t *testing.T) {
	out := command.Output{Head: []byte("a1\nb\na2\na3"), Total: 10}
	all, err := out.Search(regexp.MustCompile("^a"), 0)
	require.NoError(t, err)
	assert.Equal(t, []command.Match{{0, "a1"}, {5, "a2"}, {8, "a3"}}, all)
	two, err := out.Search(regexp.MustCompile("^a"), 2)
	require.NoError(t, err)
	assert.Equal(t, all[:2], two)
	negative, err := out.Search(regexp.MustCompile("^a"), -1)
	require.NoError(t, err)
	assert.Equal(t, all, negative)
}

func TestSearchGoesThroughALineOfThreeMiB(t *testing.T) {
	head := append(bytes.Repeat([]byte("x"), 3<<20), "needle\nnext needle\n"...)
	found, err := command.Output{Head: head, Total: int64(len(head))}.Search(regexp.MustCompile("needle"), 0)
	require.NoError(t, err)
	require.Len(t, found, 2)
	assert.EqualValues(t, 3<<20, found[0].Offset)
	assert.Equal(t, "next needle", found[1].Line)
}

func TestSearchDoesNotJoinLinesAcrossTheGap(t *testing.T) {
	out := command.Output{Head: []byte("one\ntw"), Tail: []byte("ree\nfour\n"), Total: 100}
	found, err := out.Search(regexp.MustCompile("^twree$"), 0)
	require.NoError(t, err)
	assert.Empty(t, found)
	found, err = out.Search(regexp.MustCompile("ree|tw"), 0)
	require.NoError(t, err)
	assert.Equal(t, []command.Match{{4, "tw"}, {91, "ree"}}, found)
}

func TestScanBeginsAnywhereAndCountsWhatItPassesOver(t *testing.T) {
	out := command.Output{Head: []byte("one\n\ntw"), Tail: []byte("ree\nfour"), Total: 100}
	scan := func(from int64, until string) (seen []command.Match, omitted int64) {
		omitted, err := out.Scan(from, func(offset int64, line []byte) bool {
			seen = append(seen, command.Match{Offset: offset, Line: string(line)})
			return string(line) != until
		})
		require.NoError(t, err)
		return seen, omitted
	}
	all := []command.Match{{0, "one"}, {4, ""}, {5, "tw"}, {92, "ree"}, {96, "four"}}
	for _, test := range []struct {
		from    int64
		until   string
		want    []command.Match
		omitted int64
	}{
		{0, "-", all, 85},
		{-3, "-", all, 85},
		{4, "-", all[1:], 85},
		{6, "-", append([]command.Match{{6, "w"}}, all[3:]...), 85},
		{50, "-", all[3:], 42},
		{96, "-", all[4:], 0},
		{100, "-", nil, 0},
		{200, "-", nil, 0},
		{0, "tw", all[:3], 0},
		{0, "ree", all[:4], 85},
	} {
		seen, omitted := scan(test.from, test.until)
		assert.Equal(t, test.want, seen, "from %d until %q", test.from, test.until)
		assert.Equal(t, test.omitted, omitted, "from %d until %q", test.from, test.until)
	}
}

func TestAScanCountsAllGaps(t *testing.T) {
	whole, out := sparse(t)
	f, err := os.Create(out.Path)
	require.NoError(t, err)
	_, err = f.WriteAt(whole[16*4096:24*4096], 16*4096)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(out.Total))
	require.NoError(t, f.Close())
	at, seen := int64(0), int64(0)
	omitted, err := out.Scan(0, func(offset int64, line []byte) bool {
		assert.Equal(t, string(whole[offset:offset+int64(len(line))]), string(line))
		assert.GreaterOrEqual(t, offset, at)
		at = offset + int64(len(line))
		seen += int64(len(line))
		return true
	})
	require.NoError(t, err)
	assert.EqualValues(t, len(whole)-1000-8*4096-1000, omitted)
	newlines := bytes.Count(whole[:1000], []byte("\n")) + bytes.Count(whole[16*4096:24*4096], []byte("\n")) + bytes.Count(out.Tail, []byte("\n"))
	assert.EqualValues(t, out.Total, seen+int64(newlines)+omitted)
}

func TestAScanGoesOnInMemoryWhenTheFileGoes(t *testing.T) {
	whole := bytes.Repeat([]byte("0123456\n"), 3<<17) // 3 MiB, so that it is not read at once
	path := filepath.Join(t.TempDir(), "kept")
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	out := command.Output{Head: whole[:800], Tail: whole[len(whole)-800:], Total: int64(len(whole)), Path: path}
	var last int64
	lines := int64(0)
	omitted, err := out.Scan(0, func(offset int64, line []byte) bool {
		if offset == 800 {
			require.NoError(t, os.Remove(path))
		}
		require.Equal(t, "0123456", string(line))
		last = offset
		lines++
		return true
	})
	require.NoError(t, err)
	assert.EqualValues(t, len(whole)-8, last)
	assert.NotZero(t, omitted)
	assert.EqualValues(t, len(whole), lines*8+omitted)
}
