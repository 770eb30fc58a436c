package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/terminal"
)

// describeTerm says in one line how a terminal is:
//
//	running for 12.3s, 80x24, 4711 bytes of output
//	exit 3, after 1.2s, 4711 bytes of output
func describeTerm(info terminal.Info) string {
	output := fmt.Sprintf("%d bytes of output", info.Bytes)
	if !info.State.Ended() {
		return fmt.Sprintf("%s for %v, %s, %s", info.State, age(info.Elapsed()), sizeText(info.Size), output) + asksText(info)
	}
	return fmt.Sprintf("%s, after %v, %s", endOf(info), age(info.Elapsed()), output)
}

// asksText says what a terminal waits for; "" if that is nothing, or what its program always does.
func asksText(info terminal.Info) string {
	w := info.Asks()
	if w == nil {
		return ""
	}
	return "; " + printable(w.String())
}

// endOf says how a terminal has ended.
func endOf(info terminal.Info) string {
	switch {
	case info.Exit == nil:
		return string(info.State) + ": " + printable(info.Why)
	case info.State == terminal.Cancelled:
		return string(info.State) + ": " + info.Exit.String()
	}
	return info.Exit.String()
}

// codeOfTerm is the exit code of a terminal that has ended, as a shell's wait has it.
func codeOfTerm(info terminal.Info) int {
	switch {
	case info.Exit == nil || info.Exit.Signal == 0 && info.Exit.Code < 0:
		return codeFailed
	case info.Exit.Signal != 0:
		return codeSignal + int(info.Exit.Signal)
	}
	return info.Exit.Code
}

// commandOf is what runs on a terminal, as a person would have typed it.
func commandOf(info terminal.Info) string {
	if info.Line != "" {
		return info.Line
	}
	return strings.Join(info.Argv, " ")
}

func sizeText(s terminal.Size) string { return fmt.Sprintf("%dx%d", s.Cols, s.Rows) }

// parseSize reads COLSxROWS.
func parseSize(cmd *cobra.Command, what, text string) (terminal.Size, error) {
	cols, rows, ok := strings.Cut(text, "x")
	c, err1 := strconv.Atoi(cols)
	r, err2 := strconv.Atoi(rows)
	most := terminal.MaxSize
	if !ok || err1 != nil || err2 != nil || c < 1 || r < 1 || c > most.Cols || r > most.Rows {
		return terminal.Size{}, usagef(cmd, "%s %q: wants COLUMNSxROWS, as in 120x40, from 1x1 to %s", what, text, sizeText(most))
	}
	return terminal.Size{Cols: c, Rows: r}, nil
}
