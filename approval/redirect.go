package approval

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// harmlessFiles can be written: nothing stays there.
var harmlessFiles = map[string]bool{"/dev/null": true, "/dev/stdout": true, "/dev/stderr": true, "/dev/fd/1": true, "/dev/fd/2": true}

func (w *walker) redirection(r *syntax.Redirect) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		w.ask(KindRedirection, r, ruleAssignment, "it opens a descriptor that stays in the session, and sets a variable to it")
	}
	v := w.redirected(r.Word)
	if r.Hdoc != nil {
		w.expansions(r.Hdoc.Parts, true)
	}
	ask := func(rule, reason string) { w.ask(KindRedirection, r, rule, reason) }
	switch r.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
	case syntax.RdrIn:
		if w.fails(v) {
			from, to := w.node(r)
			w.addAt(KindRedirection, from, to, Allow, ruleConnection, opensConnection+noNetwork)
			return
		}
		if reason, v := w.path(v, false); v != Allow {
			from, to := w.node(r)
			w.addAt(KindRedirection, from, to, v, ruleOfPath(v), reason)
		}
		if isNetwork(v) {
			ask("ask.network", opensConnection)
		} else if !v.known && v.text == "" && !v.noDash {
			ask(ruleRead, "it is not known which file it reads, or whether it is a connection below /dev/tcp")
		}
	case syntax.DplIn, syntax.DplOut:
		if v.known && !v.many && (isNumber(v.text) || v.text == "-" || isNumber(strings.TrimSuffix(v.text, "-"))) {
			if w.s.live != nil {
				if changed, is := w.s.live.open[v.text]; is {
					from, to := w.node(r)
					w.changed(changed, from, to)
				}
			}
			if strings.HasSuffix(v.text, "-") || len(v.text) > 1 {
				ask(ruleWrite, "it moves or closes a descriptor")
			}
			return
		}
		w.writes(r, v)
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll, syntax.RdrInOut:
		w.writes(r, v)
	default:
		ask(ruleWrite, "this kind of redirection is not known")
		w.writes(r, v)
	}
}

// redirectsInput reports whether the standard input may be another behind a redirection.
func redirectsInput(r *syntax.Redirect) bool {
	return r.Op != syntax.RdrOut && r.Op != syntax.AppOut && r.Op != syntax.DplOut || r.N != nil && r.N.Value == "0"
}

// redirected returns the file of a redirection. A pattern has no known value: bash opens the file that matches it.
func (w *walker) redirected(word *syntax.Word) value {
	var values []value
	w.handing(true, func() { values = w.words([]*syntax.Word{word}) })
	if len(values) != 1 {
		return value{pattern: hidden}
	}
	if w.posix {
		return w.value(word) // There blanks of a variable are a part of the name.
	}
	return values[0]
}

// writes is for a file that a redirection opens for writing.
func (w *walker) writes(r *syntax.Redirect, v value) {
	from, to := w.node(r)
	if v.known && !v.many && !v.home && harmlessFiles[v.text] {
		w.addAt(KindRedirection, from, to, Allow, ruleNull, "nothing stays there")
		return
	}
	if w.fails(v) {
		w.addAt(KindRedirection, from, to, Allow, ruleConnection, opensConnection+noNetwork)
		return
	}
	if isNetwork(v) {
		w.addAt(KindRedirection, from, to, Ask, "ask.network", opensConnection)
		return
	}
	reason, verdict := w.path(v, true)
	switch {
	case verdict == Deny:
		w.addAt(KindRedirection, from, to, Deny, ruleOfPath(verdict), reason)
	case writing[r.Op] && w.refuses(v):
		w.addAt(KindRedirection, from, to, Allow, ruleRefused, "it writes a file"+butReadOnly)
	case verdict == Ask:
		w.addAt(KindRedirection, from, to, Ask, ruleWrite, reason)
	default:
		w.addAt(KindRedirection, from, to, Ask, ruleWrite, "it writes a file")
	}
}

const opensConnection = "bash opens a connection for a path below /dev/tcp or /dev/udp"

// writing are the redirections that write a file and do nothing else.
var writing = map[syntax.RedirOperator]bool{syntax.RdrOut: true, syntax.AppOut: true, syntax.RdrClob: true, syntax.RdrAll: true, syntax.AppAll: true}

func isNetwork(v value) bool {
	p := clean(v.text)
	return strings.HasPrefix(p, "/dev/tcp") || strings.HasPrefix(p, "/dev/udp") || strings.HasPrefix(v.text, "/dev/") && !v.known && !strings.HasPrefix(v.text, "/dev/fd/")
}
