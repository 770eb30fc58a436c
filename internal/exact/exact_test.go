package exact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/exact"
)

type value struct {
	One  exact.String  `json:"one,omitempty"`
	Many exact.Strings `json:"many,omitempty"`
	All  exact.Strings `json:"all"`
}

func TestStringsKeepTheirBytes(t *testing.T) {
	all := strings.Builder{}
	for c := range 256 {
		all.WriteByte(byte(c))
	}
	for _, v := range []value{
		{},
		{One: "plain\n\"<ä>\u2028\ufffd", Many: exact.Strings{"", "a"}, All: exact.Strings{}},
		{One: "\xff", Many: exact.Strings{"\xc3", "ä", ""}, All: exact.Strings{all.String()}},
	} {
		b, err := json.Marshal(v)
		require.NoError(t, err)
		var read value
		require.NoError(t, json.Unmarshal(b, &read))
		assert.Equal(t, v, read, "%s", b)
	}
}

// A program that knows no more than strings reads those that are UTF-8, and refuses the others.
func TestWhatIsUTF8IsAPlainString(t *testing.T) {
	b, err := json.Marshal(value{One: "ä", Many: exact.Strings{"b"}})
	require.NoError(t, err)
	assert.JSONEq(t, `{"one": "ä", "many": ["b"], "all": null}`, string(b))
	b, err = json.Marshal(exact.String("\xff"))
	require.NoError(t, err)
	assert.JSONEq(t, `{"bytes": "/w=="}`, string(b))
	require.Error(t, json.Unmarshal(b, new(string)))
}

func TestWhatIsNoStringIsRefused(t *testing.T) {
	for _, text := range []string{`1`, `[]`, `{"bytes": 1}`, `{"bytes": "?"}`, `true`, `{`} {
		require.Error(t, json.Unmarshal([]byte(text), new(exact.String)), text)
	}
	require.Error(t, json.Unmarshal([]byte(`["a", 1]`), new(exact.Strings)))
}

func TestBytesAreThoseOfWhatIsNoUTF8(t *testing.T) {
	assert.Nil(t, exact.Bytes("ä"))
	assert.Equal(t, []byte("a\xff"), exact.Bytes("a\xff"))
}
