package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/sessions"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/session"
)

func TestWhoWaitsForItsTurn(t *testing.T) {
	const mine, others = "limpet run, process 1", "limpet run, process 2"
	for name, row := range map[string]struct {
		running, holder, script, id string
		want                        bool
	}{
		"nothing runs":                         {want: false, script: "make"},
		"another script of somebody":           {want: true, running: "sleep 1", holder: others, script: "make"},
		"another script, nobody said whose":    {want: true, running: "sleep 1", script: "make"},
		"its own":                              {want: false, running: "make", holder: mine, script: "make"},
		"the same of somebody else":            {want: true, running: "make", holder: others, script: "make"},
		"the same, an older keeper":            {want: false, running: "make", script: "make"},
		"its own, asked for by a process ago":  {want: false, running: "make", holder: others, script: "make", id: "one"},
		"another one, before an id":            {want: true, running: "sleep 1", holder: others, script: "make", id: "one"},
		"its own, which is no UTF-8":           {want: false, running: "echo \ufffd", holder: mine, script: "echo \xff"},
		"another one of a process of that pid": {want: true, running: "sleep 1", holder: mine, script: "make"},
	} {
		k := &keptShell{caller: mine}
		assert.Equal(t, row.want, k.waitsBehind(session.Info{Running: row.running, Holder: row.holder}, command.Request{Script: row.script, ID: row.id}), name)
	}
}

// Another machine may say anything.
func TestForWhomASessionRunsSomethingIsOneLine(t *testing.T) {
	assert.Equal(t, "make … (for me) …)", sessions.Held(session.Info{Running: "make\nlimpet: no", Holder: "me)\nlimpet: all is well"}))
}
