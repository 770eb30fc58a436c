package keys_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/terminal/keys"
)

func TestInputsComeBackFromJSON(t *testing.T) {
	inputs := []keys.Input{{}, keys.Text(""), keys.Text("é\x00\n<&>"), keys.Text("\xff\x80"), keys.Paste(""), keys.Paste("a\nb")}
	for _, name := range keys.Names() {
		for _, mods := range []string{"", "Ctrl-", "Alt-", "Shift-", "Ctrl-Alt-Shift-"} {
			if key, err := keys.Key(mods + name); err == nil {
				inputs = append(inputs, key)
			}
		}
	}
	for _, in := range inputs {
		b, err := json.Marshal(in)
		require.NoError(t, err)
		var again keys.Input
		require.NoError(t, json.Unmarshal(b, &again), "%s", b)
		assert.Equal(t, in, again, "%s", b)
	}
}

func TestInputsInJSONAreReadable(t *testing.T) {
	for want, in := range map[string]keys.Input{`{"text":"ls"}`: keys.Text("ls"), `{"paste":""}`: keys.Paste("")} {
		b, err := json.Marshal(in)
		require.NoError(t, err)
		assert.Equal(t, want, string(b))
	}
	up, err := keys.Key("C-S-Up")
	require.NoError(t, err)
	b, err := json.Marshal(up)
	require.NoError(t, err)
	assert.Equal(t, `{"key":"Ctrl-Shift-Up"}`, string(b))
}

func TestWhatIsNoInputIsAnError(t *testing.T) {
	for _, text := range []string{`{"key":"Ctrl-Foo"}`, `{"key":"Up","text":"x"}`, `{"paste":"","text":"x"}`, `"ls"`, `[]`} {
		var in keys.Input
		assert.ErrorContains(t, json.Unmarshal([]byte(text), &in), "keys: ", text)
	}
}
