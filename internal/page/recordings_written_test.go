package page_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// A recording that is being written has in the list and on the page what there is.
func TestARecordingIsPlayedWhileItIsWritten(t *testing.T) {
	testenv.Slow(t)
	c := withRecordings(t)
	f, err := os.OpenFile(c.file("one.cast"), os.O_WRONLY|os.O_CREATE, 0o600)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, f.Close()) })
	adds := func(text string) {
		_, err := f.WriteString(text)
		require.NoError(t, err)
	}
	length := func(want int64) {
		testenv.Await(t, "the length", func() bool {
			all, _ := c.list()
			return len(all) == 1 && all[0].LengthMS != nil && *all[0].LengthMS == want
		})
	}
	adds(castHead + `[1,"o","one"]` + "\n" + `[2,"o","t`)
	p := c.plays("one.cast")
	assert.True(t, p.Cut)
	assert.Len(t, p.events, 1)
	length(1000)
	adds(`wo"]` + "\n")
	p = c.plays("one.cast")
	assert.False(t, p.Cut)
	assert.Equal(t, []string{`["o",1,"one"]`, `["o",2,"two"]`}, p.events)
	length(2000)
	require.NoError(t, f.Truncate(int64(len(castHead))))
	assert.Empty(t, c.plays("one.cast").events)
	length(0)
}

// longRecording returns a recording that is larger than the kernel's buffers of a connection that nobody reads: 4 MiB as a rule at the side that
// sends, and 64 KiB at that of slowly.
func longRecording() (recording string, events int) {
	event := `[1,"o","` + strings.Repeat("x", 1000) + `"]` + "\n"
	events = 8 << 20 / len(event)
	return castHead + strings.Repeat(event, events), events
}

// slowly asks for a recording by a connection that takes little, and reads its head.
func (c casts) slowly(name string) *bufio.Reader {
	c.t.Helper()
	conn, err := net.Dial("tcp", c.addr)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = conn.Close() }) // It may be closed.
	require.NoError(c.t, conn.(*net.TCPConn).SetReadBuffer(64<<10))
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", recordingPath(name), c.addr, token)
	require.NoError(c.t, err)
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(c.t, err)
	c.t.Cleanup(func() { _ = answer.Body.Close() }) // It may have been read.
	in := bufio.NewReader(answer.Body)
	head, err := in.ReadString('\n')
	require.NoError(c.t, err)
	assert.Contains(c.t, head, `"kind":"recording"`)
	return in
}

// A file that shrinks while a browser reads it ends there.
func TestARecordingThatShrinksEnds(t *testing.T) {
	c := withRecordings(t)
	recording, events := longRecording()
	c.writes("one.cast", recording)
	in := c.slowly("one.cast")
	require.NoError(t, os.Truncate(c.file("one.cast"), int64(len(castHead)+100)))
	rest, err := io.ReadAll(in)
	require.NoError(t, err)
	all := strings.Split(strings.TrimSuffix(string(rest), "\n"), "\n")
	assert.Contains(t, all[len(all)-1], `"kind":"over"`)
	assert.Less(t, len(all), events)
}

// A browser that reads nothing holds up nobody: others play the same recording, and it goes on when it reads.
func TestASlowBrowserHoldsUpNobodyWhoPlays(t *testing.T) {
	testenv.Slow(t)
	c := withRecordings(t)
	recording, events := longRecording()
	c.writes("one.cast", recording)
	slow := c.slowly("one.cast")
	assert.Len(t, c.plays("one.cast").events, events)
	assert.Equal(t, []string{"one.cast"}, c.names())
	metrics, err := io.ReadAll(c.ask("/metrics", nil).Body)
	require.NoError(t, err)
	assert.Contains(t, string(metrics), "\nlimpet_serve_viewers 1\n", "the slow one is not at its end")
	rest, err := io.ReadAll(slow)
	require.NoError(t, err)
	assert.Equal(t, events+1, strings.Count(string(rest), "\n"))
}
