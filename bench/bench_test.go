package main

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestTheMedianIsTheMiddle(t *testing.T) {
	for _, test := range []struct {
		name    string
		samples []time.Duration
		median  time.Duration
	}{
		{"none", nil, 0},
		{"one", []time.Duration{7}, 7},
		{"two are averaged", []time.Duration{20, 10}, 15},
		{"order does not matter", []time.Duration{30, 10, 20}, 20},
		{"an outlier moves no median", []time.Duration{10, 10, 10, 10, 9000}, 10},
		{"eleven", []time.Duration{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := append([]time.Duration(nil), test.samples...)
			assert.Equal(t, test.median, median(test.samples), "median")
			assert.Equal(t, before, test.samples, "the samples are left as they were")
		})
	}
}

func TestShow(t *testing.T) {
	assert.Equal(t, "8.43 µs", show(8431))
	assert.Equal(t, "121 µs", show(121_400))
	assert.Equal(t, "1.30 ms", show(1_300_000))
	assert.Equal(t, "97.3 ms", show(97_300_000))
	assert.Equal(t, "12.5 s", show(12_500*time.Millisecond))
}

func TestTargets(t *testing.T) {
	slow := series{Workload: "w", Side: bashName, Samples: []time.Duration{1000}}
	fast := series{Workload: "w", Side: limpetName, Samples: []time.Duration{101}}
	floor := series{Workload: "w", Side: bareName, Samples: []time.Duration{20}}
	var r report
	r.compare([]series{fast, slow, floor}, atLeastFaster(bashName, 10), within(bareName, 7))
	assert.Equal(t, "no", r.Rows[0].Met, "9.9 is not 10")
	assert.Equal(t, "9.90x faster", r.Rows[0].Ratio)
	assert.Equal(t, "yes", r.Rows[1].Met)
	assert.Equal(t, "5.05x the time", r.Rows[1].Ratio)
}

func TestNotSlowerIsAtMostTheOthersTime(t *testing.T) {
	for limpet, met := range map[time.Duration]string{99: "yes", 100: "yes", 101: "no"} {
		var r report
		r.compare([]series{
			{Workload: "w", Side: limpetName, Samples: []time.Duration{limpet}},
			{Workload: "w", Side: bashName, Samples: []time.Duration{100}},
		}, notSlower(bashName))
		assert.Equal(t, met, r.Rows[0].Met, "%d against 100", limpet)
	}
}

// What sleeps is switched away from, each time.
func TestSwitchesAreCounted(t *testing.T) {
	testenv.NeedProc(t)
	before, err := ownSwitches()
	require.NoError(t, err)
	same, err := switchesOf(strconv.Itoa(os.Getpid()))
	require.NoError(t, err)
	assert.Positive(t, same, "of the first thread")
	const times = 20
	for range times {
		time.Sleep(time.Millisecond)
	}
	after, err := ownSwitches()
	require.NoError(t, err)
	assert.GreaterOrEqual(t, after-before, int64(times))
}

// The bash of a side in a session of its own leads it; the other shares the program's.
func TestABarePipeHasASessionOfItsOwnWhereItIsAsked(t *testing.T) {
	testenv.NeedProc(t)
	b, err := newBench(t.Context(), true, "")
	require.NoError(t, err)
	defer b.close()
	for _, session := range []bool{false, true} {
		s := &bareSide{session: session}
		require.NoError(t, s.open(b, t.TempDir()))
		out, err := s.run(t.Context(), `read -r _ _ _ _ _ sid _ </proc/$$/stat; echo "$(($$ == sid))"`)
		assert.NoError(t, err)
		assert.Equal(t, map[bool]string{false: "0\n", true: "1\n"}[session], string(out.stdout), s.name())
		assert.NoError(t, s.close())
	}
}

func TestCommandsOfAbsentToolsAreLeftOut(t *testing.T) {
	stages := []stage{{commands: []string{"wc -l *.go", "go vet .", "cd x && go build .", "echo go", "ls | go run .", "echo $(go env)"}}}
	kept, out := without(stages, func(tool string) bool { return tool == "go" })
	assert.Equal(t, []string{"wc -l *.go", "echo go"}, kept[0].commands)
	assert.Equal(t, []string{"go vet .", "cd x && go build .", "ls | go run .", "echo $(go env)"}, out)
	assert.Len(t, stages[0].commands, 6, "the table is left as it was")
}
