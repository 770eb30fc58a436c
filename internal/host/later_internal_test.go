package host

import (
	"bufio"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The other side may say anything.
func TestWhatAnAnswerBeginsWithIsBounded(t *testing.T) {
	for _, said := range []string{
		"", "2", "\n", "x\n", "-1\n{}", "0\n", "2\n{", "2\n{}", "2\n[]", "99999999999999999999\n{}", "16777217\n{}",
		strings.Repeat("1", 1<<20), `13` + "\n" + `{"status":42}`,
	} {
		_, err := readBegun(bufio.NewReader(strings.NewReader(said)))
		assert.Error(t, err, "%.40q", said)
	}
	const said = `{"opened":{"record":{"id":"x"},"made":true},"status":409}`
	from := bufio.NewReader(strings.NewReader("57\n" + said + "rest"))
	require.Len(t, said, 57)
	begun, err := readBegun(from)
	require.NoError(t, err)
	assert.Equal(t, 409, begun.Status)
	assert.True(t, begun.Opened.Made)
	assert.Equal(t, "x", begun.Opened.Record.ID)
	rest, err := from.ReadString(0)
	require.Error(t, err)
	assert.Equal(t, "rest", rest, "what is behind it is left")
}
