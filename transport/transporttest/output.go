package transporttest

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/shell"
)

// 27. stdout and stderr come apart, and merged in true order on request.
func streams(t *testing.T, s suite) {
	const script = "for i in {1..100}; do echo out $i; echo err $i >&2; /bin/echo more $i; done"
	var out, errs, merged strings.Builder
	for i := 1; i <= 100; i++ {
		fmt.Fprintf(&out, "out %d\nmore %d\n", i, i)
		fmt.Fprintf(&errs, "err %d\n", i)
		fmt.Fprintf(&merged, "out %d\nerr %d\nmore %d\n", i, i, i)
	}
	x := s.start(t)
	res := x.run(script)
	assert.Equal(t, out.String(), res.Stdout.String())
	assert.Equal(t, errs.String(), res.Stderr.String())

	var live bytes.Buffer
	res, err := x.do(command.Request{Script: script, MergeStderr: true, Stdout: &live})
	require.NoError(t, err)
	assert.Equal(t, merged.String(), res.Stdout.String())
	assert.Equal(t, merged.String(), live.String())
	assert.Zero(t, res.Stderr.Total)

	var liveOut, liveErr bytes.Buffer
	_, err = x.do(command.Request{Script: script, Stdout: &liveOut, Stderr: &liveErr})
	require.NoError(t, err)
	assert.Equal(t, out.String(), liveOut.String())
	assert.Equal(t, errs.String(), liveErr.String())
}

// 30. Head, tail and the number of omitted bytes; earlier output can be paged
// and searched; carriage-return progress frames collapse on request.
func longOutput(t *testing.T, s suite) {
	const limit, lines, width = 4096, 100_000, 10 // "line" and five digits and a newline
	x := s.start(t, func(o *shell.Options) { o.OutputLimit, o.SpoolLimit = limit, 64<<20 })
	script := fmt.Sprintf(`awk 'BEGIN { for (i = 0; i < %d; i++) printf "line%%05d\n", i }'`, lines)
	res := x.run(script)
	out := res.Stdout
	assert.EqualValues(t, lines*width, out.Total)
	assert.LessOrEqual(t, len(out.Head)+len(out.Tail), limit)
	assert.True(t, bytes.HasPrefix(out.Head, []byte("line00000\nline00001\n")))
	assert.True(t, bytes.HasSuffix(out.Tail, []byte("line99998\nline99999\n")))
	assert.EqualValues(t, lines*width, int64(len(out.Head)+len(out.Tail))+out.Omitted())
	assert.Contains(t, out.String(), fmt.Sprintf("%d bytes omitted", out.Omitted()))

	page := make([]byte, width*3)
	x.want("another\n", "echo another") // What was kept is not the next command's.
	for _, first := range []int{0, 400, 5000, 50_000, 99_997} {
		n, err := out.ReadAt(page, int64(first*width))
		if err != io.EOF {
			require.NoError(t, err)
		}
		assert.Equal(t, fmt.Sprintf("line%05d\nline%05d\nline%05d\n", first, first+1, first+2), string(page[:n]))
	}
	found, err := out.Search(regexp.MustCompile("^line7777[0-3]$"), 3)
	require.NoError(t, err)
	require.Len(t, found, 3)
	assert.Equal(t, command.Match{Offset: 77770 * width, Line: "line77770"}, found[0])

	// Without a spool the middle is gone, and said to be.
	y := s.start(t, func(o *shell.Options) { o.OutputLimit = limit })
	out = y.run(script).Stdout
	assert.Empty(t, out.Path)
	_, err = out.ReadAt(page, 50_000*width)
	assert.ErrorIs(t, err, command.ErrOmitted)

	res = x.run(`for i in {1..100}; do printf '\r%3d%%' $i; done; printf '\ndone\r\n'`)
	assert.Equal(t, "100%\ndone\n", string(command.Collapse(res.Stdout.Bytes())))
}

// wholeWriter checks that every chunk is whole UTF-8.
type wholeWriter struct {
	all    bytes.Buffer
	broken int
}

func (w *wholeWriter) Write(p []byte) (int, error) {
	if !utf8.Valid(p) {
		w.broken++
	}
	return w.all.Write(p)
}

// 31. UTF-8 is whole at chunk and cut borders; bytes that are no UTF-8 are
// flagged; binary is no crash.
func wholeRunes(t *testing.T, s suite) {
	for limit := range int64(8) {
		x := s.start(t, func(o *shell.Options) { o.OutputLimit = 1000 + limit })
		out := x.run("for i in {1..1000}; do printf 'aä€𝄞'; done").Stdout
		assert.True(t, utf8.Valid(out.Head), "limit %d", limit)
		assert.True(t, utf8.Valid(out.Tail), "limit %d", limit)
		assert.False(t, out.Binary())
		assert.EqualValues(t, 10_000, out.Total)
	}
	x := s.start(t)
	var live wholeWriter
	// One byte at a time, and slow enough for chunks to end anywhere.
	res, err := x.do(command.Request{
		Script: `LC_ALL=C; s=$(printf 'ä€𝄞'); for i in {1..20}; do for ((c = 0; c < ${#s}; c++)); do printf %s "${s:c:1}"; done; sleep 0.01; done; printf 'x\360\235'; sleep 0.1; printf '\204\236'`,
		Stdout: &live,
	})
	require.NoError(t, err)
	assert.Equal(t, strings.Repeat("ä€𝄞", 20)+"x𝄞", live.all.String())
	assert.Equal(t, live.all.String(), res.Stdout.String())
	assert.Zero(t, live.broken, "chunks that are not whole")

	for _, binary := range []string{`printf 'a\377\376b'`, `printf 'a\0b'`, "head -c 3000000 /dev/urandom", `printf '\303'`} {
		out := x.run(binary).Stdout
		assert.True(t, out.Binary(), binary)
	}
	assert.Equal(t, []byte("a\xff\xfeb\x00"), x.run(`printf 'a\377\376b\0'`).Stdout.Bytes())
	x.want("fine ä\n", "echo fine ä")
}
