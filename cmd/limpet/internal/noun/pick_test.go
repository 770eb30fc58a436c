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
		assert.Equal(t, want, noun.Abbreviates(said, "job-make-abcdefgh"), said)
	}
	assert.True(t, noun.Abbreviates("abc", "job-abcdefgh"))
}

func TestWhatResemblesAnIDIsNear(t *testing.T) {
	for said, want := range map[string]bool{"psqk": true, "pqsl": true, "xpsql": true, "sql": true, "vim": false, "-x": false} {
		assert.Equal(t, want, len(noun.Near(said, []string{"term-psql-abcdefgh"})) == 1, said)
	}
}
