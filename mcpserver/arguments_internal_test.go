package mcpserver

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A number that can be no seconds is milliseconds. Up to ten times too many may be either,
// and are refused, as seconds, unless they are whole thousands.
func TestATimeoutThatIsTooLongIsMilliseconds(t *testing.T) {
	for _, row := range []struct {
		arguments string
		want      float64
	}{
		{`{"timeout": 30}`, 30},
		{`{"timeout": 3600}`, 3600},
		{`{"timeout": 3601}`, 3601}, // It is refused, as those are that follow.
		{`{"timeout": "7200"}`, 7200},
		{`{"timeout": 14400}`, 14400},
		{`{"timeout": 5000}`, 5},
		{`{"timeout": "30000"}`, 30},
		{`{"timeout": 36000}`, 36},
		{`{"timeout": 36001}`, 36.001},
		{`{"timeout": 60000}`, 60},
		{`{"timeout": "120000"}`, 120},
		{`{"timeout_ms": 500}`, 0.5},
		{`{"timeout_ms": 7200000}`, 7200},
		{`{"timeout_seconds": 7200}`, 7200}, // It is refused as well.
		{`{"timeout_seconds": 600000}`, 600},
		{`{"timeout": 50000, "timeout_seconds": 50, "timeout_ms": 50000}`, 50},
		{`{"timeout": 7200, "background": true}`, 7200},
		{`{"timeout": 59000, "background": true}`, 59000},
		{`{"timeout": 60000, "background": true}`, 60},
		{`{"timeout": "600000", "run_in_background": "true"}`, 600},
		{`{"timeout": 604801, "is_background": true}`, 604801},
		{`{"timeout_seconds": 600000, "background": true}`, 600000},
		{`{"timeout": 600000, "background": false}`, 600},
		{`{"timeout": 86400, "background": true}`, 86400},
		{`{"timeout_seconds": 86400, "run_in_background": "true"}`, 86400},
		{`{"timeout_ms": 500, "background": true}`, 0.5},
	} {
		in := runIn{}
		wrong := schemasOf[runIn]().decode(json.RawMessage(row.arguments[:1]+`"command": "ls", `+row.arguments[1:]), &in, 3600)
		require.Empty(t, wrong, row.arguments)
		assert.InDelta(t, row.want, in.TimeoutSeconds, 0, row.arguments)
	}
}

func TestEachAliasIsUnderstoodBySomeTool(t *testing.T) {
	understood := make(map[string]bool)
	for _, s := range []schemas{
		schemasOf[runIn](), schemasOf[readIn](), schemasOf[jobWriteIn](), schemasOf[jobLogIn](), schemasOf[sessionIn](), schemasOf[sendIn](), schemasOf[createIn](),
		schemasOf[jobWaitIn](), schemasOf[checkpointIn](),
	} {
		for _, spellings := range s.spellings {
			for _, as := range spellings {
				understood[as.name] = true
			}
		}
	}
	for _, a := range aliases {
		assert.True(t, understood[a.name], a.name)
	}
}
