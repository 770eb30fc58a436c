package keeper

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What an older limpet reads is a Spec as it knows it, whatever the paths are.
func TestTheRecordOfAnyPathCanBeReadByOlderLimpets(t *testing.T) {
	for _, s := range []Spec{{Dir: "/ä", InitFiles: []string{"a"}, Args: []string{"x"}, Login: true}, {Dir: "/\xff", Audit: "/b"}, {InitFiles: []string{"a", "\xc3"}}, {}} {
		b, err := json.Marshal(Record{Spec: s})
		require.NoError(t, err)
		var old struct{ Spec plainSpec }
		require.NoError(t, json.Unmarshal(b, &old), "%s", b)
		var now Record
		require.NoError(t, json.Unmarshal(b, &now))
		assert.Equal(t, s, now.Spec, "%s", b)
	}
}
