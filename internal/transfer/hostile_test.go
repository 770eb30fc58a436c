package transfer_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/transfer"
	"github.com/limpet-sh/limpet/internal/wire"
)

// liar is another machine that answers as it likes. What it does not answer, an honest one with one directory does.
type liar map[string]func(w http.ResponseWriter, r *http.Request)

func (l liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = jsonhttp.Body(w, r, 4<<20) // As all handlers.
	op := strings.TrimPrefix(r.URL.Path, transfer.Path)
	if answer := l[op]; answer != nil {
		answer(w, r)
		return
	}
	switch op {
	case "stat":
		wire.Answer(w, transfer.Named{There: true, Entry: transfer.Entry{Kind: transfer.Dir, Mode: 0o755}, Root: "/x"}, nil)
	case "list":
		wire.Answer(w, transfer.Page{Entries: []transfer.Entry{}}, nil)
	case "read":
		fmt.Fprintf(w, "end              %08x\n{}", 2)
	default:
		wire.Answer(w, struct{}{}, nil)
	}
}

// says is an answer that is always the same.
func says(value any) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { wire.Answer(w, value, nil) }
}

// raw is an answer of some bytes.
func raw(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) }
}

func entries(all ...transfer.Entry) func(http.ResponseWriter, *http.Request) {
	return says(transfer.Page{Entries: all})
}

func file(name string, size int64) transfer.Entry {
	return transfer.Entry{Name: transfer.Bytes(name), Kind: transfer.File, Size: size, Mode: 0o4777}
}

// frame is one of a stream.
func frame(offset int64, b string) string { return fmt.Sprintf("%016x %08x\n%s", offset, len(b), b) }

func ending(size int64, sum []byte) string {
	b, _ := json.Marshal(transfer.End{Size: size, Sum: sum}) // It is made of numbers and bytes.
	return fmt.Sprintf("%-16s %08x\n%s", "end", len(b), b)
}

// Whatever another machine says when it is read from, nothing is written outside of the destination, no file there is one that it did
// not have, and there is an error.
func TestAMachineThatLiesWritesNothing(t *testing.T) {
	link := transfer.Entry{Name: "l", Kind: transfer.Link, Target: "/etc"}
	hello := sha256.Sum256([]byte("hello"))
	one := entries(file("f", 5))
	for name, l := range map[string]liar{
		"a name that leads up":          {"list": entries(file("..", 1))},
		"a name with a slash":           {"list": entries(file("../x", 1))},
		"a name with another":           {"list": entries(file("a/b", 1))},
		"an absolute name":              {"list": entries(file("/etc/x", 1))},
		"an empty name":                 {"list": entries(file("", 1))},
		"a dot":                         {"list": entries(file(".", 1))},
		"a zero byte":                   {"list": entries(file("a\x00b", 1))},
		"a name that is too long":       {"list": entries(file(strings.Repeat("x", 256), 1))},
		"a name twice":                  {"list": entries(link, transfer.Entry{Name: "l", Kind: transfer.Dir})},
		"names in no order":             {"list": entries(file("b", 1), file("a", 1))},
		"a negative size":               {"list": entries(file("f", -1))},
		"a link to nothing":             {"list": entries(transfer.Entry{Name: "l", Kind: transfer.Link})},
		"a link with a zero byte":       {"list": entries(transfer.Entry{Name: "l", Kind: transfer.Link, Target: "a\x00"})},
		"a list without an end":         {"list": says(transfer.Page{Entries: []transfer.Entry{{Name: "d", Kind: transfer.Link, Target: "x"}}, More: true})},
		"an empty list without an end":  {"list": says(transfer.Page{More: true})},
		"directories without an end":    {"list": entries(transfer.Entry{Name: "d", Kind: transfer.Dir, Mode: 0o700})},
		"a list that is too long":       {"list": entries(make([]transfer.Entry, 1001)...)},
		"a list that is no list":        {"list": raw(`{"entries": 7}`)},
		"an answer that is no JSON":     {"list": raw("\x00\xff")},
		"an answer that is too large":   {"list": raw(`{"entries":[` + strings.Repeat(" ", 3<<20) + `]}`)},
		"a name that is no base64":      {"list": raw(`{"entries":[{"name":"../../x","kind":"file"}]}`)},
		"what is neither":               {"list": entries(transfer.Entry{Name: "x", Kind: "door", What: "\x1b]0;title\a"})},
		"another sum":                   {"list": one, "read": raw(frame(0, "hello") + ending(5, make([]byte, 32)))},
		"no sum":                        {"list": one, "read": raw(frame(0, "hello") + ending(5, nil))},
		"more than was announced":       {"list": one, "read": raw(frame(0, "hello") + frame(5, "!") + ending(6, hello[:]))},
		"more in one":                   {"list": one, "read": raw(frame(0, "hello!") + ending(5, hello[:]))},
		"less than was announced":       {"list": one, "read": raw(frame(0, "hell") + ending(5, hello[:]))},
		"another size":                  {"list": one, "read": raw(frame(0, "hello") + ending(6, hello[:]))},
		"no end":                        {"list": one, "read": raw(frame(0, "hello"))},
		"another offset":                {"list": one, "read": raw(frame(1, "ello") + ending(5, hello[:]))},
		"a gap":                         {"list": one, "read": raw(frame(0, "h") + frame(2, "llo") + ending(5, hello[:]))},
		"an offset twice":               {"list": one, "read": raw(frame(0, "hello") + frame(0, "hello") + ending(5, hello[:]))},
		"a negative offset":             {"list": one, "read": raw("-000000000000001 00000005\nhello")},
		"a chunk that is too large":     {"list": one, "read": raw("0000000000000000 00050000\n" + strings.Repeat("x", 0x50000))},
		"no frames":                     {"list": one, "read": raw("hello")},
		"an end that is too large":      {"list": one, "read": raw("end              7fffffff\n")},
		"an end that is none":           {"list": one, "read": raw("end              00000002\n[]")},
		"something behind the end":      {"list": one, "read": raw(frame(0, "hello") + ending(5, hello[:]) + "x")},
		"an error":                      {"list": one, "read": raw(fmt.Sprintf("%-16s %08x\n%s", "end", 16, `{"error":"oops"}`))},
		"nothing, and that for ever":    {"list": one, "read": hang},
		"an answer that does not come":  {"list": hang},
		"a root that is too long":       {"stat": says(transfer.Named{There: true, Entry: transfer.Entry{Kind: transfer.Dir}, Root: transfer.Bytes(strings.Repeat("x", 9000))})},
		"a file of a negative size":     {"stat": says(transfer.Named{There: true, Entry: transfer.Entry{Kind: transfer.File, Size: -1}, Root: "/x", Path: "y"})},
		"no answer to whether it there": {"stat": raw("7")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			above := testenv.TempDir(t)
			dest := filepath.Join(above, "dest")
			require.NoError(t, os.Mkdir(dest, 0o755))
			r := remote(t, l)
			r.Patience = 2 * time.Second
			err := transfer.New(r, &transfer.Local{}, nil).Copy(testenv.Context(t), "d/.", dest)
			require.Error(t, err)
			t.Log(err)
			outside, err := os.ReadDir(above)
			require.NoError(t, err)
			assert.Len(t, outside, 1)
			require.NoError(t, filepath.WalkDir(dest, func(path string, d os.DirEntry, err error) error {
				require.NoError(t, err)
				assert.False(t, d.Type().IsRegular(), path)
				return nil
			}))
		})
	}
}

// A list that goes on and on ends as others do, though each part of it could be one of a directory.
func TestAListWithoutAnEndIsAnError(t *testing.T) {
	transfer.BoundEntries(t, 20_000)
	page := 0
	l := liar{"list": func(w http.ResponseWriter, _ *http.Request) {
		all := make([]transfer.Entry, 1000)
		for i := range all {
			all[i] = transfer.Entry{Name: transfer.Bytes(fmt.Sprintf("%09d", page*len(all)+i)), Kind: transfer.Other}
		}
		page++
		wire.Answer(w, transfer.Page{Entries: all, More: true}, nil)
	}}
	err := transfer.New(remote(t, l), &transfer.Local{}, nil).Copy(testenv.Context(t), "d", testenv.TempDir(t))
	require.ErrorContains(t, err, "it has more than 20000 entries")
}

// hang answers nothing more until the other side has gone away.
func hang(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).Flush() // The header has come.
	<-r.Context().Done()
}

// What it says when it is written to is no more to be believed.
func TestAMachineThatLiesAboutWhatItHasIsAnError(t *testing.T) {
	there := says(transfer.Named{There: true, Entry: transfer.Entry{Kind: transfer.Dir}, Root: "/x"})
	for name, l := range map[string]liar{
		"fewer answers":           {"prepare": says([]transfer.Prepared{})},
		"a part that is too long": {"prepare": says([]transfer.Prepared{{Part: true}}), "begin": says(transfer.State{Offset: 1 << 40})},
		"a negative part":         {"prepare": says([]transfer.Prepared{{Part: true}}), "begin": says(transfer.State{Offset: -1})},
		"nothing is written":      {"prepare": says([]transfer.Prepared{{}}), "write": says(struct{}{})},
		"it is not done":          {"prepare": says([]transfer.Prepared{{}}), "write": says(map[string]int64{"next": 1 << 40})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l["stat"] = there
			source := filepath.Join(testenv.TempDir(t), "f")
			write(t, source, random(t, 1<<20), 0o600)
			err := transfer.New(&transfer.Local{}, remote(t, l), nil).Copy(testenv.Context(t), source, "x")
			require.Error(t, err)
			t.Log(err)
		})
	}
}

// A copy that is stopped while the other side says nothing ends at once.
func TestACopyIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(testenv.Context(t))
	asked := make(chan struct{})
	l := liar{"list": func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		hang(w, r)
	}}
	r := remote(t, l)
	go func() {
		<-asked
		cancel()
	}()
	began := time.Now()
	require.ErrorIs(t, transfer.New(r, &transfer.Local{}, nil).Copy(ctx, "d", testenv.TempDir(t)), context.Canceled)
	assert.Less(t, time.Since(began), 5*time.Second)
}
