package saved

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestADeclarationThatIsTooLargeIsLeftOutAndNamed(t *testing.T) {
	const most, total = 40, 200
	large := strings.Repeat("x", most)
	for name, row := range map[string]struct {
		state, kept string
		names       []string
	}{
		"none": {"declare -- a=\"1\"\n\x00f () \n", "declare -- a=\"1\"\n\x00f () \n", nil},
		"one of three": {
			"declare -- a=\"1\"\ndeclare -- b=\"" + large + "\"\ndeclare -- c=\"3\"\n\x00",
			"declare -- a=\"1\"\ndeclare -- c=\"3\"\n\x00", []string{"b"},
		},
		"the last of a part": {
			"declare -- a=\"1\"\ndeclare -- b=\"" + large + "\"\n\x00alias x='y'\n\x00",
			"declare -- a=\"1\"\n\x00alias x='y'\n\x00", []string{"b"},
		},
		"lines and quotes in it": {
			"declare -- a=$'" + strings.Repeat("x\\'\\ny", most/4) + "'\ndeclare -x c=\"3\"\n\x00",
			"declare -x c=\"3\"\n\x00", []string{"a"},
		},
		"two": {
			"declare -- a=\"" + large + "\"\ndeclare -ar b=([0]=\"" + large + "\")\n\x00", "\x00", []string{"a", "b"},
		},
	} {
		kept, names, err := withoutLarge(strings.NewReader(row.state), most, total)
		require.NoError(t, err, name)
		assert.Equal(t, row.kept, string(kept), name)
		assert.Equal(t, row.names, names, name)
	}
	_, _, err := withoutLarge(strings.NewReader(strings.Repeat("declare -- a=\"1\"\n", total)), most, total)
	assert.ErrorContains(t, err, "more than 200 bytes")
}
