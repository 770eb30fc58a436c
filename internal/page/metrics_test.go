package page_test

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
)

var (
	helpLine   = regexp.MustCompile(`^# HELP ([a-z][a-z0-9_]*) [A-Z].*\.$`)
	typeLine   = regexp.MustCompile(`^# TYPE ([a-z][a-z0-9_]*) (counter|gauge)$`)
	sampleLine = regexp.MustCompile(`^([a-z][a-z0-9_]*)(?:\{([a-z_]+="(?:[^"\\\n]|\\["\\n])*")\})? ([-+.0-9e]+)$`)
)

// metrics asks for the metrics, and reads them as Prometheus does: each name has its HELP and TYPE before its samples, once, all samples of
// a name are together, and none is there twice.
func (p *served) metrics() map[string]float64 {
	p.t.Helper()
	answer := p.ask("/metrics", nil)
	require.Equal(p.t, http.StatusOK, answer.StatusCode)
	assert.Equal(p.t, "text/plain; version=0.0.4; charset=utf-8", answer.Header.Get("Content-Type"))
	text, err := io.ReadAll(answer.Body)
	require.NoError(p.t, err)
	require.True(p.t, strings.HasSuffix(string(text), "\n"))
	got := make(map[string]float64)
	kinds := make(map[string]string)
	now := "" // the name whose samples come
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		if m := helpLine.FindStringSubmatch(line); m != nil {
			now = m[1]
			require.NotContains(p.t, kinds, now, line)
			kinds[now] = ""
			continue
		}
		if m := typeLine.FindStringSubmatch(line); m != nil {
			require.Equal(p.t, now, m[1])
			require.Empty(p.t, kinds[now], line)
			kinds[now] = m[2]
			assert.Equal(p.t, m[2] == "counter", strings.HasSuffix(now, "_total"), line)
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		require.NotNil(p.t, m, "%q", line)
		require.Equal(p.t, now, m[1], line)
		require.NotEmpty(p.t, kinds[now], line)
		value, err := strconv.ParseFloat(m[3], 64)
		require.NoError(p.t, err, line)
		key := m[1]
		if m[2] != "" {
			key += "{" + m[2] + "}"
		}
		require.NotContains(p.t, got, key)
		got[key] = value
	}
	return got
}

func TestMetricsSayWhatIsKnown(t *testing.T) {
	testenv.Slow(t)
	s := newStand()
	s.questions = []questions.Open{asksToRun("one", "rm a"), asksToRun("two", "rm b"), asksForPassword("three", "p")}
	began := time.Now()
	p := serve(t, s)
	s.puts(
		session.Event{Seq: 1, Kind: session.BeginEvent}, session.Event{Seq: 2, Kind: session.OutputEvent, Text: make([]byte, 100<<10)}, session.Event{Seq: 3, Kind: session.EndEvent},
		session.Event{Seq: 4, Kind: session.EndEvent, ExitCode: 1}, session.Event{Seq: 5, Kind: session.EndEvent, Error: "timeout"},
	)
	before := p.metrics()
	assert.Zero(t, before[`limpet_commands_seen_total{result="success"}`], "nobody has looked at the session")
	assert.Zero(t, before["limpet_serve_viewers"])
	for range 2 { // The second one sees what the first one has seen, which is counted once.
		w := p.stream("")
		for w.next().Seq < 5 {
		}
		require.NoError(t, w.body.Close())
	}
	w := p.stream("")
	w.next()
	var got map[string]float64
	testenv.Await(t, "the viewers who have left", func() bool { // An answer is shared for a second.
		got = p.metrics()
		return got["limpet_serve_viewers"] == 1
	})
	for name, want := range map[string]float64{
		`limpet_sessions{state="new"}`: 0, `limpet_sessions{state="idle"}`: 1, `limpet_sessions{state="busy"}`: 0,
		`limpet_sessions{state="unreachable"}`: 1, `limpet_sessions{state="ended"}`: 1,
		`limpet_session_commands_total{session="build"}`: 0,
		"limpet_jobs_running":                            1, "limpet_terminals_running": 2,
		`limpet_questions_waiting{kind="approval"}`: 2, `limpet_questions_waiting{kind="password"}`: 1,
		`limpet_commands_seen_total{result="success"}`: 1, `limpet_commands_seen_total{result="failure"}`: 2,
		"limpet_serve_viewers": 1,
	} {
		value, there := got[name]
		assert.True(t, there, name)
		assert.Equal(t, want, value, name)
	}
	assert.Greater(t, got["limpet_serve_sent_bytes_total"], before["limpet_serve_sent_bytes_total"]+200<<10, "the output twice, as base64")
	assert.InDelta(t, float64(began.Unix()), got["process_start_time_seconds"], 600)
	assert.LessOrEqual(t, got["process_start_time_seconds"], float64(began.UnixMilli())/1000)
	assert.Len(t, got, 15)
}
