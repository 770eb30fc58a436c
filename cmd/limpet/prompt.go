package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// morePrompt asks for the rest of a statement, as bash's PS2 does.
const morePrompt = "> "

// maxPromptDir is how much of the directory a prompt shows. A line editor wants
// room to the right of it.
const maxPromptDir = 40

// prompt says where the shell is, and how the last command ended if it failed:
//
//	~/src $
//	~/src [130] $
func prompt(dir, home string, status int) string {
	text := promptDir(dir, home)
	if status != 0 {
		text += fmt.Sprintf(" [%d]", status)
	}
	return text + " $ "
}

func promptDir(dir, home string) string {
	if rest, ok := strings.CutPrefix(dir, home); ok && home != "" && (rest == "" || rest[0] == filepath.Separator) {
		dir = "~" + rest
	}
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?' // A directory's name must not give orders to a terminal.
	}, dir))
	if len(runes) > maxPromptDir {
		const dots = "..."
		runes = append([]rune(dots), runes[len(runes)-maxPromptDir+len(dots):]...)
	}
	return string(runes)
}

// homeOf returns what the shell takes for the home directory, so that the
// prompt's ~ means the same as the user's.
func homeOf(env []string) string {
	home := ""
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, "HOME="); ok {
			home = value
		}
	}
	return strings.TrimRight(home, string(os.PathSeparator))
}
