package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFramesAreStrict(t *testing.T) {
	for text, want := range map[string]error{
		"1 0 0 3\nabc":                      nil,
		"2 17 4 0\n":                        nil,
		"0 2\n{}":                           nil,
		"":                                  io.ErrUnexpectedEOF,
		"1 0 0 3\nab":                       io.ErrUnexpectedEOF,
		"1 0 0 3":                           io.ErrUnexpectedEOF,
		"3 0 0 3\nabc":                      errFrame,
		"0 0 0 3\nabc":                      errFrame,
		"1 0 3\nabc":                        errFrame,
		"1  0 0 3\nabc":                     errFrame,
		"1 -1 0 3\nabc":                     errFrame,
		"1 +1 0 3\nabc":                     errFrame,
		"1 01 0 3\nabc":                     errFrame,
		"1 0 0 0x3\nabc":                    errFrame,
		"1 0 0 65537\n":                     errFrame,
		"1 5 6 3\nabc":                      errFrame,
		"1 9223372036854775807 0 3\nabc":    errFrame,
		"1 9223372036854775808 0 3\nabc":    errFrame,
		"0 67108865\n":                      errFrame,
		"\n":                                errFrame,
		strings.Repeat("1", 100) + " 0 0 3": errFrame,
		"HTTP/1.1 200 OK\r\n":               errFrame,
	} {
		_, err := readFrame(bufio.NewReader(strings.NewReader(text)))
		require.ErrorIs(t, err, want, "%q", text)
	}
}

func FuzzFrame(f *testing.F) {
	f.Add([]byte("1 0 0 3\nabc2 17 4 0\n0 2\n{}"))
	f.Add([]byte("1 0 0 65536\nabc"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bufio.NewReader(bytes.NewReader(b))
		var again bytes.Buffer
		for {
			one, err := readFrame(r)
			if err != nil {
				break
			}
			require.LessOrEqual(t, len(one.data), len(b))
			require.NoError(t, one.writeTo(&again))
		}
		assert.True(t, bytes.HasPrefix(b, again.Bytes()), "what was read is written as it was")
	})
}

// What comes with a request, and with an answer.
func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"id":"0123456789abcdef","script":"true","ladder":[{"signal":2,"grace_ns":5}]}`))
	f.Add([]byte(`{"result":{"exit_code":1,"restart":{"reason":"x","error":{"text":"a"}}},"error":{"text":"a","kind":"session","of":{"op":"x"},"wraps":[{"text":"b","is":["closed"]}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var req request
		if json.Unmarshal(b, &req) == nil {
			value := req.value()
			_ = value.Validate()
			require.True(t, requestOf(req.ID, value).same(request{Script: req.Script, Dir: req.Dir, Env: req.Env, Unset: req.Unset}))
		}
		var said last
		if json.Unmarshal(b, &said) == nil {
			res := said.Result.value()
			_ = res.Restart.String()
			if err := said.Error.unpack(); err != nil {
				_ = err.Error()
			}
		}
	})
}
