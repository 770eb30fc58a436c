package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/conformance"
)

// TestNormaliseMakesTheTwoSidesEqual holds each rule to its purpose: what
// bash -c says, and what a persistent shell says to the same script.
func TestNormaliseMakesTheTwoSidesEqual(t *testing.T) {
	for _, pair := range [][2]string{
		{"bash: line 3: x: not found\n", "bash: x: not found\n"},
		{"environment: line 3: x: not found\n", "bash: x: not found\n"},
		{"./lib.sh: line 3: x: not found\n", "bash: x: not found\n"},
		{"./lib.sh: line 1: syntax error\n", "bash: ./lib.sh: line 1: syntax error\n"},
		{"bash: -c: line 3: syntax error\n", "bash: eval: line 3: syntax error\n"},
	} {
		assert.Equal(t, conformance.Normalise(pair[0]), conformance.Normalise(pair[1]))
	}
}

func TestNormaliseLeavesTheRestAlone(t *testing.T) {
	for _, stderr := range []string{
		"",
		"nothing of bash's",
		"a bash: line 3: in the middle\n",
		"bash: eval: line 3: syntax error\n", // The number is a part of the answer.
		"lib.sh: line 3: x\n",
		"+ echo bash: line 3: x\n",
		"\xff\xfe\x00\n\n",
	} {
		assert.Equal(t, stderr, conformance.Normalise(stderr))
	}
}
