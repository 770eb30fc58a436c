package supervisor

import (
	"bytes"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

// noise takes out what an interactive bash says at its start when it is on no
// terminal of its own. It is about bash, and not about the job.
type noise struct {
	held []byte // may be the beginning of such a line
	over bool   // the job has said something else
}

var (
	noiseLine = lazyregexp.New(`^(?:\S*/)?bash: (?:cannot set terminal process group \(-?\d+\): Inappropriate ioctl for device|no job control in this shell)\r?\n$`)

	// noiseStart is what the beginning of such a line looks like, up to where nothing
	// else does.
	noiseStarts = [][]byte{[]byte("bash: cannot set terminal process group ("), []byte("bash: no job control in this shell")}
)

// noiseMax is longer than any of these lines.
const noiseMax = 256

// filter returns what of p, and of what was held before, is the job's.
func (n *noise) filter(p []byte) []byte {
	if n.over {
		return p
	}
	n.held = append(n.held, p...)
	for len(n.held) > 0 {
		i := bytes.IndexByte(n.held, '\n')
		if i < 0 && n.possible() {
			return nil
		}
		if i < 0 || !noiseLine().Match(n.held[:i+1]) {
			return n.rest()
		}
		n.held = n.held[i+1:]
	}
	return nil
}

// possible reports whether what is held may become such a line.
func (n *noise) possible() bool {
	name := n.held
	if slash := bytes.LastIndexByte(name, '/'); slash >= 0 && bytes.IndexByte(name[:slash], ' ') < 0 {
		name = name[slash+1:]
	}
	if len(name) == 0 {
		return false // A path, or a prompt. Bash says its name at once.
	}
	for _, start := range noiseStarts {
		if bytes.HasPrefix(start, name) || bytes.HasPrefix(name, start) && len(n.held) < noiseMax {
			return true
		}
	}
	return false
}

// rest returns what is held: no more of the line is to come.
func (n *noise) rest() []byte {
	held := n.held
	n.held, n.over = nil, true
	return held
}
