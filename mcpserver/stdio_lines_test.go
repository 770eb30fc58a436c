package mcpserver_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/mcpserver"
	"github.com/limpet-sh/limpet/session"
)

// The SDK answers 1.5 as 1, and large numbers as others: their client would wait for ever.
func TestEachRequestIsAnsweredUnderItsID(t *testing.T) {
	sessions, err := session.New(nil)
	require.NoError(t, err)
	server, err := mcpserver.New(sessions, nil)
	require.NoError(t, err)
	in, toServer := pipe(t)
	fromServer, out := pipe(t)
	served := make(chan error, 1)
	go func() { served <- server.ServeStdio(testenv.Context(t), in, out) }()
	answers := bufio.NewScanner(fromServer)
	for _, row := range []struct {
		id     string
		served bool
	}{
		{"0", true}, {"-3", true}, {"9007199254740991", true}, {"-9007199254740991", true}, {`""`, true}, {`"1764400000123456789"`, true},
		{"1.5", false}, {"9007199254740993", false}, {"-9007199254740993", false}, {"1764400000123456789", false}, {"99999999999999999999999", false},
	} {
		for _, line := range []string{`{"jsonrpc":"2.0","id":%s,"method":"ping"}`, ` [{"jsonrpc":"2.0","id":%s,"method":"ping"}]`} {
			_, err := fmt.Fprintf(toServer, line+"\n", row.id)
			require.NoError(t, err)
			require.True(t, answers.Scan(), row.id)
			var answer struct {
				ID     json.RawMessage
				Result any
				Error  struct{ Message string }
			}
			text := answers.Bytes()
			if text[0] == '[' {
				text = text[1 : len(text)-1]
			}
			require.NoError(t, json.Unmarshal(text, &answer), "%s", text)
			assert.Equal(t, row.id, string(answer.ID))
			assert.Equal(t, row.served, answer.Result != nil, row.id)
			if !row.served {
				assert.Contains(t, answer.Error.Message, "nothing was done: the id "+row.id+" ")
			}
		}
	}
	require.NoError(t, toServer.Close())
	require.NoError(t, <-served)
	require.NoError(t, fromServer.Close())
	require.NoError(t, server.Close())
	require.NoError(t, sessions.Close())
}
