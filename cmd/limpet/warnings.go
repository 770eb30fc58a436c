package main

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// warnings shows what the library warns of, a line each:
//
//	limpet: the runtime directory was deleted under a live session (recreated=true)
//
// What is below a warning is for operators of a server, and is not shown.
type warnings struct {
	console *console
	group   string   // what WithGroup opened, as in "a.b."
	fields  []string // what WithAttrs said, as in "key=value"
}

var _ slog.Handler = warnings{}

func (w warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (w warnings) Handle(_ context.Context, rec slog.Record) error {
	fields := slices.Clone(w.fields)
	rec.Attrs(func(attr slog.Attr) bool {
		fields = appendFields(fields, w.group, attr)
		return true
	})
	text := strings.TrimPrefix(rec.Message, "limpet: ") // The console says that too.
	if len(fields) > 0 {
		text += " (" + strings.Join(fields, " ") + ")"
	}
	w.console.notef("%s", text)
	return nil
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	w.fields = slices.Clone(w.fields)
	for _, attr := range attrs {
		w.fields = appendFields(w.fields, w.group, attr)
	}
	return w
}

func (w warnings) WithGroup(name string) slog.Handler {
	if name != "" {
		w.group += name + "."
	}
	return w
}

// appendFields adds the attribute; of a group, its members.
func appendFields(fields []string, group string, attr slog.Attr) []string {
	value := attr.Value.Resolve()
	if value.Kind() == slog.KindGroup {
		if attr.Key != "" {
			group += attr.Key + "."
		}
		for _, member := range value.Group() {
			fields = appendFields(fields, group, member)
		}
		return fields
	}
	if attr.Equal(slog.Attr{}) {
		return fields // slog.Handler wants it ignored.
	}
	return append(fields, group+attr.Key+"="+readable(value))
}

// readable returns the value as one short word, or in quotes. Bash may have
// written it: it must not give orders to a terminal.
func readable(value slog.Value) string {
	text := value.String()
	if err, ok := value.Any().(error); ok {
		text = explain(err)
	}
	text = shorten(oneLine(text))
	if text == "" || strings.ContainsFunc(text, func(r rune) bool {
		return r == ' ' || r == '"' || r == '=' || r == unicode.ReplacementChar || !unicode.IsPrint(r)
	}) {
		return strconv.Quote(text)
	}
	return text
}

// oneLine puts the lines behind one another.
func oneLine(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "; ")
}

// harmless is a text without what a terminal would obey, as another machine may have made it, and no longer than anybody reads.
func harmless(text string) string {
	const most = 64 << 10
	if len(text) > most {
		text = text[:most] + "..."
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == '\n' || r == '\t' || unicode.IsPrint(r) && (r != utf8.RuneError || size > 1) {
			b.WriteString(text[:size])
		} else {
			b.WriteString(strings.Trim(strconv.Quote(text[:size]), `"`))
		}
		text = text[size:]
	}
	return b.String()
}

// shorten leaves out the middle of a long text: the beginning says what it is
// about, and the end often what came of it.
func shorten(text string) string {
	const longest = 400
	if len(text) <= longest {
		return text
	}
	head, tail := text[:longest/2], text[len(text)-longest/2:]
	return strings.ToValidUTF8(head, "") + " ... " + strings.ToValidUTF8(tail, "")
}
