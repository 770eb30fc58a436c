package ipc

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOnlyASealedRecordOfTheCommandParses(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       Record
		ok         bool
	}{
		{"plain", "<i><d><0><himBH></tmp><i><d>", Record{Options: "himBH", Dir: "/tmp"}, true},
		{"255", "<i><d><255><h></><i><d>", Record{Status: 255, Options: "h", Dir: "/"}, true},
		{"spaces in the directory", "<i><d><1><h></a  b /c><i><d>", Record{Status: 1, Options: "h", Dir: "/a  b /c"}, true},
		{"newline in the directory", "<i><d><1><h></a\nb><i><d>", Record{Status: 1, Options: "h", Dir: "/a\nb"}, true},
		{"angle brackets in the directory", "<i><d><1><h></a><b><i><d>", Record{Status: 1, Options: "h", Dir: "/a><b"}, true},
		{"percent signs", "<i><d><1><h></100%s%n%%><i><d>", Record{Status: 1, Options: "h", Dir: "/100%s%n%%"}, true},
		{"another record in the directory", "<i><d><1><h></<x><y><0><h></><x><y>><i><d>", Record{Status: 1, Options: "h", Dir: "/<x><y><0><h></><x><y>"}, true},
		{"no UTF-8", "<i><d><1><h></\xff\x01><i><d>", Record{Status: 1, Options: "h", Dir: "/\xff\x01"}, true},
		{"no directory", "<i><d><1><h><><i><d>", Record{Status: 1, Options: "h"}, true},
		{"a stale tail behind the seal", "<i><d><3><h></a><i><d>longer/path><i><d>", Record{Status: 3, Options: "h", Dir: "/a"}, true},
		{"nothing", "", Record{}, false},
		{"another's", "<x><y><0><h></><x><y>", Record{}, false},
		{"begun by nobody", "<0><h></><i><d>", Record{}, false},
		{"ended by another", "<i><d><0><h></><x><y>", Record{}, false},
		{"a trace of the command that writes it", "+ builtin printf '<%s>' i d 0 h / i d\n", Record{}, false},
		{"half a seal", "<i><d><0><h></><i>", Record{}, false},
		{"half written", "<i><d><0><h></lo", Record{}, false},
		{"behind what a trap printed", "noise\n<i><d><0><h></><i><d>", Record{Options: "h", Dir: "/"}, true},
		{"too few fields", "<i><d><0><i><d>", Record{}, false},
		{"256", "<i><d><256><h></><i><d>", Record{}, false},
		{"negative", "<i><d><-1><h></><i><d>", Record{}, false},
		{"no number", "<i><d><x><h></><i><d>", Record{}, false},
		{"zeros", "<i><d><0000><h></><i><d>", Record{}, false},
		{"NUL bytes", strings.Repeat("\x00", 100), Record{}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, ok := ParseRecord([]byte(test.text), "id")
			assert.Equal(t, test.ok, ok)
			assert.Equal(t, test.want, got)
		})
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte("<i><d><0><h></x><i><d>"), "id")
	f.Add([]byte("<i><d><0><h></x><i><d>/stale><i><d>"), "id")
	f.Add([]byte("<i><d><0><h></a\nb c><i><d>"), "id")
	f.Fuzz(func(t *testing.T, b []byte, id string) {
		if len(id) < 2 || strings.ContainsAny(id, "<> \n") {
			return // No ID is like that.
		}
		rec, ok := ParseRecord(b, id)
		if !ok {
			assert.Zero(t, rec)
			return
		}
		// What parses is sealed at both ends, and says nothing that is not there.
		seal := "<" + id[:len(id)/2] + "><" + id[len(id)/2:] + ">"
		assert.Contains(t, string(b), seal+"<")
		assert.Contains(t, string(b), "><"+rec.Options+"><"+rec.Dir+">"+seal)
		assert.True(t, rec.Status >= 0 && rec.Status <= 255)
	})
}

func TestRecordsSurviveTheRoundTrip(t *testing.T) {
	for _, dir := range []string{"/", "/a b", "/a\nb", "/%s", "/id 0 h /x", "/\xff", ""} {
		text := "<01><23><" + strconv.Itoa(7) + "><himBH><" + dir + "><01><23>"
		rec, ok := ParseRecord([]byte(text+"stale><01><23>"), "0123")
		require.True(t, ok, "%q", dir)
		assert.Equal(t, Record{Status: 7, Options: "himBH", Dir: dir}, rec)
	}
}
