package ipc_test

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/ipc"
)

func TestOnlyASealedRecordOfTheCommandParses(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       ipc.Record
		ok         bool
	}{
		{"plain", "id 0 himBH /tmp id\n", ipc.Record{Status: 0, Flags: "himBH", Dir: "/tmp"}, true},
		{"255", "id 255 h / id\n", ipc.Record{Status: 255, Flags: "h", Dir: "/"}, true},
		{"spaces in the directory", "id 1 h /a  b /c id\n", ipc.Record{Status: 1, Flags: "h", Dir: "/a  b /c"}, true},
		{"newline in the directory", "id 1 h /a\nb id\n", ipc.Record{Status: 1, Flags: "h", Dir: "/a\nb"}, true},
		{"percent signs", "id 1 h /100%s%n%% id\n", ipc.Record{Status: 1, Flags: "h", Dir: "/100%s%n%%"}, true},
		{"another id in the directory", "id 1 h /other 0 h /x other\n id\n", ipc.Record{Status: 1, Flags: "h", Dir: "/other 0 h /x other\n"}, true},
		{"no UTF-8", "id 1 h /\xff\x01 id\n", ipc.Record{Status: 1, Flags: "h", Dir: "/\xff\x01"}, true},
		{"no directory", "id 1 h  id\n", ipc.Record{Status: 1, Flags: "h"}, true},
		{"a stale tail behind the seal", "id 3 h /a id\nlonger/path id\n", ipc.Record{Status: 3, Flags: "h", Dir: "/a"}, true},
		{"nothing", "", ipc.Record{}, false},
		{"another's", "other 0 h / other\n", ipc.Record{}, false},
		{"begun by nobody", "0 h / id\n", ipc.Record{}, false},
		{"ended by another", "id 0 h / other\n", ipc.Record{}, false},
		{"no newline", "id 0 h / id", ipc.Record{}, false},
		{"half written", "id 0 h /lo", ipc.Record{}, false},
		{"behind what a trap printed", "noise\nid 0 h / id\n", ipc.Record{Flags: "h", Dir: "/"}, true},
		{"too few fields", "id 0 id\n", ipc.Record{}, false},
		{"256", "id 256 h / id\n", ipc.Record{}, false},
		{"negative", "id -1 h / id\n", ipc.Record{}, false},
		{"no number", "id x h / id\n", ipc.Record{}, false},
		{"zeros", "id 0000 h / id\n", ipc.Record{}, false},
		{"NUL bytes", strings.Repeat("\x00", 100), ipc.Record{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := ipc.ParseRecord([]byte(test.text), "id")
			assert.Equal(t, test.ok, ok)
			assert.Equal(t, test.want, got)
		})
	}
}

func TestIDsAreUnguessableWords(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		id := ipc.NewID()
		assert.Regexp(t, "^[0-9a-f]{24}$", id)
		assert.False(t, seen[id])
		seen[id] = true
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte("id 0 h /x id\n"), "id")
	f.Add([]byte("id 0 h /x id\n/stale id\n"), "id")
	f.Add([]byte("id 0 h /a\nb c id\n"), "id")
	f.Fuzz(func(t *testing.T, b []byte, id string) {
		if id == "" || strings.ContainsAny(id, " \n") {
			return // No ID is like that.
		}
		rec, ok := ipc.ParseRecord(b, id)
		if !ok {
			assert.Zero(t, rec)
			return
		}
		// What parses is sealed at both ends, and says nothing that is not there.
		assert.Contains(t, string(b), id+" ")
		assert.Contains(t, string(b), " "+rec.Flags+" "+rec.Dir+" "+id+"\n")
		assert.True(t, rec.Status >= 0 && rec.Status <= 255)
	})
}

func TestRecordsSurviveTheRoundTrip(t *testing.T) {
	for _, dir := range []string{"/", "/a b", "/a\nb", "/%s", "/id 0 h /x", "/\xff", ""} {
		text := "0123 " + strconv.Itoa(7) + " himBH " + dir + " 0123\n"
		rec, ok := ipc.ParseRecord([]byte(text+"stale 0123\n"), "0123")
		require.True(t, ok, "%q", dir)
		assert.Equal(t, ipc.Record{Status: 7, Flags: "himBH", Dir: dir}, rec)
	}
}

// FuzzQuote has bash itself say what a quoted word is.
func FuzzQuote(f *testing.F) {
	bash, err := exec.LookPath("bash")
	require.NoError(f, err)
	for _, s := range []string{"", "a", "a b", "'", `"`, `\`, "\n", "\t\r\x01\x7f", "\xff\xc3(", "$x`y`$(z)", "!!", "~", "-n", "a\\\nb", "ä€😀", "\x1b[0m", "#", "=", "*?[]{}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.IndexByte(s, 0) >= 0 || len(s) > 4<<10 {
			return // Bash cannot carry it.
		}
		cmd := exec.Command(bash, "--norc")
		cmd.Env = []string{"LC_ALL=C.UTF-8"}
		cmd.Stdin = strings.NewReader("printf %s " + ipc.Quote(s) + "\n")
		out, err := cmd.Output()
		require.NoError(t, err)
		assert.Equal(t, s, string(out))
	})
}
