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
