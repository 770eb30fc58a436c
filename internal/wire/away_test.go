package wire_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
)

// cuttable makes connections that can be cut. Then none is made until it is mended.
type cuttable struct {
	dial func(ctx context.Context) (net.Conn, error)

	mu     sync.Mutex
	conns  []net.Conn
	mended chan struct{} // closed when connections are made
}

func (c *cuttable) connect(ctx context.Context) (net.Conn, error) {
	for {
		c.mu.Lock()
		mended := c.mended
		c.mu.Unlock()
		select {
		case <-mended:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		conn, err := c.dial(ctx)
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		if c.mended == mended { // It was not cut meanwhile.
			c.conns = append(c.conns, conn)
			c.mu.Unlock()
			return conn, nil
		}
		c.mu.Unlock()
		_ = conn.Close() // Nothing was written.
	}
}

func (c *cuttable) cut() (mend func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mended = make(chan struct{})
	for _, conn := range c.conns {
		_ = conn.Close() // That is what is tried.
	}
	c.conns = nil
	return sync.OnceFunc(func() { close(c.mended) })
}

// client returns a client over such connections, which may be away for so long.
func (s *served) cuttable(t *testing.T, away time.Duration) (*wire.Client, *cuttable) {
	t.Helper()
	c := &cuttable{dial: s.dial, mended: make(chan struct{})}
	close(c.mended)
	client := wire.NewClient(c.connect)
	client.Away = away
	t.Cleanup(client.Disconnect)
	return client, c
}

// A client comes back when its command was given an early end of input. It is told, though the command has ended well; so is each that sends more.
func TestAnInputThatWasCutIsTold(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, script string
		ended        bool // when the client comes back
	}{
		{"before the end", "head -c 3 >$DIR/got; cat >>$DIR/got; echo >$DIR/over; until [ -e $DIR/go ]; do sleep 0.01; done", false},
		{"behind the end", "head -c 3 >$DIR/got; cat >>$DIR/got; echo >$DIR/over", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, "socket")
			client, link := s.cuttable(t, 50*time.Millisecond)
			dir := testenv.TempDir(t)
			stdin, more := io.Pipe()
			defer more.Close()
			type came struct {
				res command.Result
				err error
			}
			over := make(chan came, 1)
			go func() {
				res, err := client.Session("s").Do(testenv.Context(t), command.Request{Script: row.script, Env: []string{"DIR=" + dir}, Stdin: stdin})
				over <- came{res, err}
			}()
			_, err := io.WriteString(more, "abc")
			require.NoError(t, err)
			testenv.Await(t, "the input", func() bool {
				b, err := os.ReadFile(dir + "/got")
				return err == nil && string(b) == "abc"
			})
			mend := link.cut()
			testenv.AwaitFile(t, dir+"/over")
			if row.ended {
				testenv.Await(t, "the end of the command", func() bool { return s.list(t)[0].State == wire.Ended })
			}
			mend()
			const told = "reading the command's stdin: the client that sends it was away for 50ms: the command was given 3 bytes and then the end of its input, which may be too early"
			if !row.ended {
				go func() { _, _ = io.WriteString(more, "defg") }() // The client may know by now, and read no more of it.
				require.NoError(t, os.WriteFile(dir+"/go", nil, 0o600))
			}
			got := <-over
			require.ErrorContains(t, got.err, told)
			assert.Zero(t, got.res.ExitCode, "it has ended well")
			b, err := os.ReadFile(dir + "/got")
			require.NoError(t, err)
			assert.Equal(t, "abc", string(b))
			list := s.list(t)
			require.Len(t, list, 1)
			status, said := s.raw(t, "POST", commands+"/"+list[0].ID+"/stdin?offset=3&eof=1", "defg")
			assert.NotEqual(t, http.StatusOK, status)
			assert.Contains(t, said, "was given 3 bytes and then the end of its input")
		})
	}
}

// list has the commands that are known.
func (s *served) list(t *testing.T) (list []wire.Command) {
	t.Helper()
	_, said := s.raw(t, "GET", commands, "")
	require.NoError(t, json.Unmarshal([]byte(said), &list))
	return list
}

// A client that comes back in time goes on.
func TestAClientThatComesBackGoesOnWithItsInput(t *testing.T) {
	t.Parallel()
	s := serve(t, "socket")
	client, link := s.cuttable(t, time.Hour)
	dir := testenv.TempDir(t)
	stdin, more := io.Pipe()
	over := make(chan error, 1)
	go func() {
		res, err := client.Session("s").Do(testenv.Context(t), command.Request{Script: "head -c 3; echo >" + dir + "/begun; cat; exit 3", Stdin: stdin})
		if err == nil && (res.Stdout.String() != "abcdefg" || res.ExitCode != 3) {
			err = errors.New(res.Stdout.String())
		}
		over <- err
	}()
	_, err := io.WriteString(more, "abc")
	require.NoError(t, err)
	testenv.AwaitFile(t, dir+"/begun")
	mend := link.cut()
	mend()
	_, err = io.WriteString(more, "defg")
	require.NoError(t, err)
	require.NoError(t, more.Close())
	require.NoError(t, <-over)
}

// Behind its end nothing is taken of an input, and the client is told.
func TestAPieceBehindTheEndOfAnInputIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, "socket")
	dir := testenv.TempDir(t)
	status, said := s.raw(t, "POST", commands, `{"id":"`+someID+`","script":"cat >`+dir+`/got; until [ -e `+dir+`/go ]; do sleep 0.01; done","stdin":true}`)
	require.Equal(t, http.StatusOK, status, said)
	stdin := commands + "/" + someID + "/stdin?offset="
	_, said = s.raw(t, "POST", stdin+"0&eof=1", "abc")
	assert.JSONEq(t, `{"next":3}`, said)
	status, said = s.raw(t, "POST", stdin+"0&eof=1", "abc")
	assert.Equal(t, http.StatusOK, status, "it may come twice")
	assert.JSONEq(t, `{"next":3}`, said)
	status, said = s.raw(t, "POST", stdin+"1", "bcd")
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, said, "the piece goes to 4, and the input was said to end at 3")
	require.NoError(t, os.WriteFile(dir+"/go", nil, 0o600))
	_, said = s.raw(t, "GET", commands+"/"+someID+"/output?out=0", "")
	assert.NotContains(t, said, `"error"`)
}
