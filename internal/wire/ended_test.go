package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
)

// The stream of a command may end long after its last frame, as when its session is ended first. A caller that gives up meanwhile gets the
// result that came, soon.
func TestAResultIsKeptIfTheCallerGivesUpBehindIt(t *testing.T) {
	testenv.Slow(t)
	for _, w := range []*bytes.Buffer{nil, {}} {
		ctx, cancel := context.WithCancelCause(testenv.Context(t))
		defer cancel(nil)
		over := make(chan struct{})
		l := listenPipes()
		server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Path != commands { // It may be asked to stop it, before it has read the frame.
				_, _ = rw.Write([]byte("{}")) // As below.
				return
			}
			const last = `{"result":{"exit_code":3}}`
			_, _ = fmt.Fprintf(rw, "0 %d\n%s", len(last), last) // The client reads it.
			_ = http.NewResponseController(rw).Flush()          // As above.
			cancel(errors.New("given up"))
			<-r.Context().Done()
			close(over)
		})}
		go func() { _ = server.Serve(l) }() // It ends with the test.
		t.Cleanup(func() { _ = server.Close() })
		c := wire.NewClient(l.dial)
		t.Cleanup(c.Disconnect)
		req := command.Request{Script: "exit 3"}
		if w != nil {
			req.Stdout = w
		}
		began := time.Now()
		res, err := c.Session("s").Do(ctx, req)
		require.NoError(t, err)
		assert.Equal(t, 3, res.ExitCode)
		assert.Less(t, time.Since(began), 30*time.Second, "else it waits for more than a minute")
		<-over
	}
}
