package host

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The other side may say anything.
func TestWhatAnAnswerBeginsWithIsBounded(t *testing.T) {
	for _, said := range []string{
		"", "2", "\n", "x\n", "-1\n{}", "0\n", "2\n{", "2\n[]", "99999999999999999999\n{}", "16777217\n{}", strings.Repeat("1", 1<<20),
	} {
		_, err := readOpened(bufio.NewReader(strings.NewReader(said)))
		assert.Error(t, err, "%.40q", said)
	}
	const said = `{"record":{"id":"x"},"made":true}`
	from := bufio.NewReader(strings.NewReader("33\n" + said + "409\nrest"))
	require.Len(t, said, 33)
	o, err := readOpened(from)
	require.NoError(t, err)
	assert.True(t, o.Made)
	assert.Equal(t, "x", o.Record.ID)
	status, err := readNumber(from)
	require.NoError(t, err)
	assert.Equal(t, 409, status)
	rest, err := from.ReadString(0)
	require.Error(t, err)
	assert.Equal(t, "rest", rest, "what is behind it is left")
}

// What opens a session, or runs what it was not told an id of, is not asked for again by itself, whatever the session is called.
func TestWhatMayBeSentTwice(t *testing.T) {
	for _, c := range []struct {
		method, path string
		may          bool
	}{
		{http.MethodPut, "/v1/kept/build", false},
		{http.MethodPut, "/v1/kept/commands", false},
		{http.MethodPut, "/v1/kept/follow", false},
		{http.MethodPost, "/v1/kept/build/run", false},
		{http.MethodPost, "/v1/kept/commands/run", false},
		{http.MethodPost, "/v1/kept/run/run", false},
		{http.MethodGet, "/v1/kept/commands", true},
		{http.MethodPost, "/v1/sessions/build/commands", true},
		{http.MethodPost, "/v1/sessions/build/commands/x/input", true},
		{http.MethodPost, "/v1/sessions/build/follow", true},
		{http.MethodPost, "/v1/sessions/build/terminals/term-x/input", false},
		{http.MethodPost, "/v1/sessions/build/jobs/stop", false},
	} {
		r, err := http.NewRequest(c.method, "http://there"+c.path, nil)
		require.NoError(t, err)
		assert.Equal(t, c.may, mayBeSentTwice(r), "%s %s", c.method, c.path)
	}
}
