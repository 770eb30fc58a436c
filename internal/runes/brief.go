package runes

import "strings"

// Brief is the first line of a text, of at most so many characters, with an ellipsis for
// what is left out.
func Brief(text string, most int) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	switch all := []rune(line); {
	case len(all) > most:
		return string(all[:most]) + "…"
	case rest != "":
		return line + " …"
	}
	return line
}
