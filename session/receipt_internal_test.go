package session

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
)

// A command may leave any number of processes behind, with names of any length: neither fills the memory in which events are remembered.
func TestAReceiptIsBoundedAndCounted(t *testing.T) {
	long := strings.Repeat("é", 1<<20) + "x"
	res := command.Result{Denied: "x" + long, Restart: &command.Restart{Reason: long}, Receipt: command.Receipt{Pipeline: make([]int, 1000)}}
	for i := range 1000 {
		res.Receipt.Leftover = append(res.Receipt.Leftover, command.Process{PID: i, Command: long})
		res.Receipt.NotKept = append(res.Receipt.NotKept, long)
	}
	r := receiptOf(res)
	assert.Len(t, r.Pipeline, mostEntries)
	assert.Len(t, r.Leftover, mostEntries)
	assert.Len(t, r.NotKept, mostEntries)
	for _, text := range []string{r.Denied, r.Restart, r.NotKept[0], r.Leftover[0].Command} {
		assert.LessOrEqual(t, len(text), mostReceiptText+len("…"))
		assert.True(t, utf8.ValidString(text), "no rune is cut in two")
	}
	lines := r.Lines()
	require.Len(t, lines, 4)
	assert.True(t, strings.HasSuffix(lines[0], ", and 980 more"), "processes")
	assert.True(t, strings.HasSuffix(lines[1], ", and 980 more"), "what is not kept")
	least := 2*mostEntries*mostReceiptText + 2*mostReceiptText - 100
	assert.Greater(t, Event{Receipt: r}.size(), least, "it counts as what is remembered")

	var e events
	for range 1000 {
		e.put(Event{Kind: EndEvent, Receipt: r})
	}
	assert.LessOrEqual(t, e.bytes, mostEventBytes)
	assert.Less(t, len(e.list), mostEventBytes/least+1)
}

// An event of an older limpet has no receipt, and one of a newer limpet may have more in it.
func TestReceiptsOfOtherLimpetsAreRead(t *testing.T) {
	var old, other Event
	require.NoError(t, json.Unmarshal([]byte(`{"seq":1,"kind":"end","exit_code":2}`), &old))
	assert.Nil(t, old.Receipt)
	assert.Empty(t, old.Receipt.Lines())
	require.NoError(t, json.Unmarshal([]byte(`{"seq":1,"kind":"end","receipt":{"denied":"there is no network","later":[1]}}`), &other))
	assert.Equal(t, []string{"perhaps because there is no network"}, other.Receipt.Lines())
	b, err := json.Marshal(Event{Kind: BeginEvent})
	require.NoError(t, err)
	assert.NotContains(t, string(b), "receipt", "only an end has one")
}
