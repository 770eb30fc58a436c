package conformance_test

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/conformance"
)

func file(text string) fstest.MapFS {
	return fstest.MapFS{"a.txt": &fstest.MapFile{Data: []byte(text)}}
}

func TestParse(t *testing.T) {
	rows, err := conformance.Parse(file("# A comment.\n" +
		"=== one\necho a\n\necho b\n--- needs 5.1\n--- stateful\n" +
		"=== two\n--- piped\n" +
		"=== three\nreturn 3\n--- differs persistent: source-frame in stdout, status\n"))
	require.NoError(t, err)
	assert.Equal(t, []conformance.Row{
		{Name: "one", Script: "echo a\n\necho b", File: "a.txt", Line: 2, Needs: "5.1", Stateful: true},
		{Name: "two", File: "a.txt", Line: 8, Piped: true},
		{Name: "three", Script: "return 3", File: "a.txt", Line: 10, Differs: map[conformance.Side]conformance.Difference{
			conformance.Persistent: {Reason: "source-frame", In: conformance.Stdout | conformance.Status},
		}},
	}, rows)
}

func TestParseRefusesWhatIsNoDirective(t *testing.T) {
	for name, text := range map[string]string{
		"typing error":  "--- statefull",
		"version":       "--- needs bash",
		"side":          "--- differs sideways: source-frame in stdout",
		"reason":        "--- differs persistent: because in stdout",
		"aspect":        "--- differs persistent: source-frame in smell",
		"no aspect":     "--- differs persistent: source-frame",
		"second name":   "=== one",
		"after a mark":  "--- stateful\necho",
		"second reason": "--- differs oneshot: source-frame in stdout\n--- differs oneshot: xtrace-depth in stdout",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := conformance.Parse(file("=== one\necho\n" + text + "\n"))
			assert.ErrorContains(t, err, "a.txt:")
		})
	}
}
