package page

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/session"
)

// metricsPath has what there is to count, for Prometheus.
const metricsPath = "/metrics"

// plain is an answer that is text, and no JSON: of the version of the format that all Prometheus since 2014 read.
type plain []byte

const plainType = "text/plain; version=0.0.4; charset=utf-8"

// started is when this program was started, but for the milliseconds that it needs to get here.
var started = time.Now()

// What a session may be besides what session.State says.
const (
	stateMute  = "unreachable" // its process does not answer
	stateEnded = "ended"
)

// states are those of sessions, as a label.
var states = []string{string(session.Unused), string(session.Idle), string(session.Busy), stateMute, stateEnded}

// counts is what is counted while the program runs. It is guarded by the Handler's mu.
type counts struct {
	succeeded, failed int // commands whose end was seen

	// seen has the last event that was counted, by the names of sessions: a feed that is opened again begins with those before. It has an element
	// for each name that a person has looked at.
	seen map[string]lastSeen
}

// lastSeen is an event, by its number among those of a keeper.
type lastSeen struct {
	keeper string
	seq    int64
}

// event counts one.
func (c *counts) event(name, keeper string, e session.Event) {
	if last := c.seen[name]; last.keeper == keeper && e.Seq <= last.seq {
		return
	}
	c.seen[name] = lastSeen{keeper, e.Seq}
	switch {
	case e.Kind != session.EndEvent:
	case e.ExitCode != 0 || e.Error != "":
		c.failed++
	default:
		c.succeeded++
	}
}

// listMetrics writes what is known now.
func (h *Handler) listMetrics(ctx context.Context) (any, error) {
	sessions, err := h.sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	waiting, err := h.sessions.Questions(ctx)
	if err != nil {
		return nil, err
	}
	byState := make(map[string]int)
	var jobs, terminals, passwords int
	var m metrics
	commands := m.family("limpet_session_commands_total", "counter", "Commands that were run in a session that is there now, or wait for their turn.")
	for _, one := range sessions {
		switch {
		case !one.Alive:
			byState[stateEnded]++
		case one.Info == nil:
			byState[stateMute]++
		default:
			byState[string(one.Info.State)]++
			jobs += one.Info.Jobs
			terminals += one.Info.Terminals
			commands.sample(float64(one.Info.Commands), "session", one.Record.Name)
		}
	}
	all := m.family("limpet_sessions", "gauge", "Sessions by name, by state; of those that have ended, the ones that are remembered.")
	for _, state := range states {
		all.sample(float64(byState[state]), "state", state)
	}
	m.family("limpet_jobs_running", "gauge", "Jobs that run in sessions whose process answers.").sample(float64(jobs))
	m.family("limpet_terminals_running", "gauge", "Terminals that run in sessions whose process answers.").sample(float64(terminals))
	for _, q := range waiting {
		if q.Password != nil {
			passwords++
		}
	}
	asked := m.family("limpet_questions_waiting", "gauge", "Questions that wait for a person.")
	asked.sample(float64(len(waiting)-passwords), "kind", "approval")
	asked.sample(float64(passwords), "kind", "password")

	h.mu.Lock()
	succeeded, failed, viewers := h.counts.succeeded, h.counts.failed, h.viewers
	h.mu.Unlock()
	ends := m.family("limpet_commands_seen_total", "counter", "Commands whose end this limpet serve has seen: those of sessions that somebody has looked at on the page.")
	ends.sample(float64(succeeded), "result", "success")
	ends.sample(float64(failed), "result", "failure")
	m.family("limpet_serve_viewers", "gauge", "Streams of events and terminals that browsers have open.").sample(float64(viewers))
	m.family("limpet_serve_sent_bytes_total", "counter", "Bytes that were sent to browsers and other clients.").sample(float64(h.sent.Load()))
	m.family("process_start_time_seconds", "gauge", "When this limpet serve was started, in seconds since 1970.").sample(float64(started.UnixMilli()) / 1000)
	return plain(m.text.Bytes()), nil
}

// metrics is a text in Prometheus' format.
type metrics struct{ text bytes.Buffer }

// family begins the samples of a name.
func (m *metrics) family(name, kind, help string) *family {
	fmt.Fprintf(&m.text, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	return &family{m, name}
}

type family struct {
	m    *metrics
	name string
}

var escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// sample writes a value, with pairs of a label and its value.
func (f *family) sample(value float64, labels ...string) {
	pairs := make([]string, 0, len(labels)/2)
	for i := 0; i < len(labels); i += 2 {
		pairs = append(pairs, fmt.Sprintf(`%s="%s"`, labels[i], escapeLabel.Replace(labels[i+1])))
	}
	of := ""
	if len(pairs) > 0 {
		of = "{" + strings.Join(pairs, ",") + "}"
	}
	fmt.Fprintf(&f.m.text, "%s%s %v\n", f.name, of, value)
}
