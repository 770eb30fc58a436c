package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// gitValue is one value of git's configuration: the name of its variable without the
// section, in lower case, and what it is.
type gitValue struct{ name, text string }

// gitValues reads a file of git's configuration. A file that cannot be opened has none: git
// gives up on it too, or takes it for missing.
func gitValues(path string) ([]gitValue, error) {
	const most = 1 << 20
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil
	}
	defer f.Close() // Read only.
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, nil
	}
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && len(text) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	if err != nil {
		return nil, &Error{Code: ErrProtect, Detail: fmt.Sprintf("cannot protect what %s names: %v", path, err), Hint: "make it shorter, or set FS.Git=GitWritable to accept"}
	}
	return parseGitConfig(text), nil
}

// parseGitConfig reads by characters, as git does (git-config(1), Syntax; its config.c,
// git_parse_source). Where git gives up on the file it goes on behind the line: a value too
// many does no harm.
func parseGitConfig(text []byte) (values []gitValue) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	p := gitParser{rest: string(bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))) + "\n"}
	for p.rest != "" {
		switch c := p.rest[0]; {
		case isGitSpace(c):
			p.rest = p.rest[1:]
		case c == '#' || c == ';':
			p.skipLine()
		case c == '[':
			p.section()
		default:
			values = append(values, p.variable()...)
		}
	}
	return values
}

func isGitSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// gitParser has what is left to read. All of it ends with a newline.
type gitParser struct{ rest string }

func (p *gitParser) skipLine() { _, p.rest, _ = strings.Cut(p.rest, "\n") }

// section skips the name of one, which may have a ] in quotes.
func (p *gitParser) section() {
	quoted := false
	for i := 0; p.rest[i] != '\n'; i++ {
		switch c := p.rest[i]; {
		case quoted && c == '\\' && p.rest[i+1] != '\n':
			i++
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			p.rest = p.rest[i+1:]
			return
		}
	}
	p.skipLine()
}

// variable reads a name and its value. One without a value is true, which is no path. There
// are two values if it depends on git what it is, and none if git does not understand it.
func (p *gitParser) variable() []gitValue {
	end := strings.IndexFunc(p.rest, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-'
	})
	name := strings.ToLower(p.rest[:end])
	rest, ok := strings.CutPrefix(strings.TrimLeft(p.rest[end:], " \t"), "=")
	p.rest = rest
	if ok {
		if text, older, ok := p.value(); ok && text == older {
			return []gitValue{{name, text}}
		} else if ok {
			return []gitValue{{name, text}, {name, older}}
		}
	}
	p.skipLine()
	return nil
}

// value reads to the end of the line, or of the one that continues it. Older is what git
// before 2.45 makes of it: a blank of a tab. It is not ok if git does not understand it.
func (p *gitParser) value() (value, older string, ok bool) {
	var text, blanks []byte
	quoted, trimmed := false, -1 // to what is left without the blanks at the end
	done := func() (string, string, bool) {
		if trimmed >= 0 {
			text, blanks = text[:trimmed], blanks[:trimmed]
		}
		return string(text), string(blanks), true
	}
	for {
		c := p.rest[0]
		if c == '\n' && quoted {
			return "", "", false
		}
		if c == '\n' || !quoted && (c == '#' || c == ';') {
			p.skipLine()
			return done()
		}
		p.rest = p.rest[1:]
		if isGitSpace(c) && !quoted {
			if trimmed < 0 {
				trimmed = len(text)
			}
			if len(text) > 0 {
				text, blanks = append(text, c), append(blanks, ' ')
			}
			continue
		}
		trimmed = -1
		if c == '"' {
			quoted = !quoted
			continue
		}
		if c == '\\' {
			c = p.rest[0]
			i := strings.IndexByte("tbn\\\"\n", c)
			if i < 0 {
				return "", "", false
			}
			if p.rest = p.rest[1:]; p.rest == "" {
				return done() // The file ends here.
			}
			if c == '\n' {
				continue
			}
			c = "\t\b\n\\\""[i]
		}
		text, blanks = append(text, c), append(blanks, c)
	}
}
