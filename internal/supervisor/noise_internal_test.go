package supervisor

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// However what is printed is cut into pieces.
func TestNoiseIsTakenOutAndNothingElse(t *testing.T) {
	const (
		group = "bash: cannot set terminal process group (-1): Inappropriate ioctl for device\n"
		jobs  = "bash: no job control in this shell\n"
	)
	for in, want := range map[string]string{
		group + jobs + "hello\n": "hello\n",
		"x\n" + jobs:             "x\n" + jobs,
		"bash: no job":           "bash: no job",
		"bash: x: not found\n":   "bash: x: not found\n",
		"/":                      "/",
		"~/src/":                 "~/src/",
		"":                       "",
		"no newline":             "no newline",
	} {
		for size := 1; size <= len(in)+1; size++ {
			var n noise
			var got []byte
			for rest := []byte(in); len(rest) > 0; rest = rest[min(size, len(rest)):] {
				got = append(got, n.filter(rest[:min(size, len(rest))])...)
			}
			got = append(got, n.rest()...)
			assert.Equal(t, want, string(got), "%q in pieces of %d", in, size)
		}
	}
}

// Bash says its name, which may be a path, in one write.
func TestNoiseMayBeginWithAPath(t *testing.T) {
	var n noise
	for _, piece := range []string{"/bin/bash: ", "no job control in this shell", "\n"} {
		assert.Empty(t, n.filter([]byte(piece)))
	}
	assert.Equal(t, "x", string(n.filter([]byte("x"))))
}

// A prompt that ends in a slash is not held back for what bash might say.
func TestWhatCannotBeNoiseIsNotHeldBack(t *testing.T) {
	for _, in := range []string{"~/src/", "x", "/home/u $ ", "basic"} {
		var n noise
		assert.Equal(t, in, string(n.filter([]byte(in))), in)
	}
}
