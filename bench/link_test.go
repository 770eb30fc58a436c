package main

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every byte arrives, in its order, and none before its time.
func TestALinkTakesTimeAndLosesNothing(t *testing.T) {
	echo, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer echo.Close() // It ends the Accept.
	go func() {
		if c, err := echo.Accept(); err == nil {
			_, _ = io.Copy(c, c) // Until the link ends.
			_ = c.Close()
		}
	}()
	_, port, err := net.SplitHostPort(echo.Addr().String())
	require.NoError(t, err)
	const delay = 20 * time.Millisecond
	l, err := newLink(port, delay)
	require.NoError(t, err)
	c, err := net.Dial("tcp", "127.0.0.1:"+l.port())
	require.NoError(t, err)
	defer c.Close() // The link has closed it.

	want := bytes.Repeat([]byte("0123456789abcde\n"), 64<<10)
	began := time.Now()
	go func() { _, _ = c.Write(want) }() // If it fails, the bytes that do not arrive fail the test.
	first := make([]byte, 1)
	_, err = io.ReadFull(c, first)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(began), 2*delay, "there and back")
	rest := make([]byte, len(want)-1)
	_, err = io.ReadFull(c, rest)
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, append(first, rest...)))

	l.close()
	_, err = c.Read(first)
	assert.Error(t, err, "it is closed")
}
