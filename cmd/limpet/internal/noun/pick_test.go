package noun_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
)

func TestAPartOfAnIDMeansIt(t *testing.T) {
	for said, want := range map[string]bool{
		"job-make-abcdefgh": true, "job-make-": true, "make": true, "make-ab": true, "abc": true, "fgh": true, "abcdefgh": true,
		"ake": false, "bcd": false, "job-b": false,
	} {
		assert.Equal(t, want, len(noun.Meant(said, []string{"job-make-abcdefgh"})) == 1, said)
	}
	assert.Len(t, noun.Meant("abc", []string{"job-abcdefgh"}), 1)
}

// Random letters and longer names may begin as a name does.
func TestANameInFullMeansNoOther(t *testing.T) {
	all := []string{"job-cat-wcv6ccf7", "job-wc-f223jta7", "job-make-test-abcdefgh", "job-make-bcdefghi", "job-make-cdefghij", "job-wcdefghi"}
	for said, want := range map[string][]string{
		"wc": {"job-wc-f223jta7"}, "make": {"job-make-bcdefghi", "job-make-cdefghij"}, "make-test": {"job-make-test-abcdefgh"},
		"wcv": {"job-cat-wcv6ccf7"}, "mak": all[2:5], "wcd": {"job-wcdefghi"}, "make-": all[2:5], "none": nil,
	} {
		assert.Equal(t, want, noun.Meant(said, all), said)
	}
}

func TestWhatResemblesAnIDIsNear(t *testing.T) {
	for said, want := range map[string]bool{"psqk": true, "pqsl": true, "xpsql": true, "sql": true, "vim": false, "-x": false} {
		assert.Equal(t, want, len(noun.Near(said, []string{"term-psql-abcdefgh"})) == 1, said)
	}
}
