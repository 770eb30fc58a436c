package approval

import (
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

// awkWords are what a program may call or name besides its variables. getline, system, close, fflush, ENVIRON, PROCINFO, SYMTAB and
// functions of its own are not among them.
var awkWords = map[string]bool{
	"BEGIN": true, "END": true, "if": true, "else": true, "for": true, "while": true, "do": true, "in": true, "next": true, "exit": true, "delete": true, "break": true, "continue": true,
	"print": true, "printf": true, "length": true, "substr": true, "index": true, "split": true, "sub": true, "gsub": true, "match": true, "toupper": true, "tolower": true, "sprintf": true,
	"int": true, "sqrt": true, "exp": true, "log": true, "sin": true, "cos": true, "atan2": true, "rand": true, "srand": true, "strftime": true, "systime": true, "gensub": true, "asort": true, "asorti": true,
}

var awkForbidden = map[string]bool{
	"getline": true, "system": true, "close": true, "fflush": true, "ENVIRON": true, "PROCINFO": true, "SYMTAB": true, "FUNCTAB": true, "function": true, "func": true, "nextfile": true, "switch": true,
	"include": true, "load": true, "namespace": true, "ARGV": true, "ARGC": true, "ARGIND": true,
}

// awkClass is a class within brackets, whose last bracket does not end them.
var awkClass = lazyregexp.New(`^\[:[a-z]+:\]`)

var awkOptions = optionSet{short: "F:v:", first: true}

// awkAllows knows programs that only print, to their output.
func awkAllows(c *call) string {
	_, operands, why := awkOptions.parse(c.args)
	if why != "" {
		return why
	}
	if len(operands) == 0 || !operands[0].known || operands[0].many || operands[0].home {
		return "the program of awk is not known"
	}
	for _, v := range operands[1:] {
		if v.text != "" && v.mayBeOption() {
			return "an option behind awk's program is one to some"
		}
	}
	if why := awkProgram(operands[0].text); why != "" {
		return "in awk's program, " + why
	}
	return ""
}

// isInet reports whether a path may be one for which gawk opens a connection: /inet/tcp/PORT/HOST/PORT, also with inet4, inet6 and udp.
func isInet(p string) bool {
	parts := strings.Split(strings.ReplaceAll(p, hidden, "*"), "/")
	if len(parts) > 0 && parts[0] == "*" { // It may be all that is before the protocol.
		parts = append([]string{"", "inet"}, parts[1:]...)
	}
	may := func(part string, names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return component(part, name) })
	}
	return len(parts) > 5 && parts[0] == "" && may(parts[1], "inet", "inet4", "inet6") && may(parts[2], "tcp", "udp")
}

// awkProgram returns why a program is not known to print alone. It reads tokens, and refuses what may be read in two ways.
func awkProgram(text string) string {
	const unclear = "a / may begin a pattern or divide"
	printing := false
	before := byte(0) // of the last token: a: a value, w: a keyword or function, else its last character
	for i := 0; i < len(text); {
		switch ch := text[i]; {
		case ch == ' ' || ch == '\t':
			i++
			continue
		case ch == '\n' || ch == ';' || ch == '{' || ch == '}':
			printing = printing && (ch == '\n' || ch == '{') // A statement goes on in the next line behind a comma.
			before = ch
			i++
		case ch == '\\': // It joins two lines, and is no token: what stands before it decides still what a / is.
			if !strings.HasPrefix(text[i:], "\\\n") {
				return "a backslash is not known"
			}
			i += 2
		case ch == '#':
			for i < len(text) && text[i] != '\n' {
				i++
			}
			if text[i-1] == '\\' {
				return "a comment ends in a backslash"
			}
		case ch == '"':
			end := awkString(text, i+1)
			if end < 0 {
				return "a text has no end, or a line break"
			}
			i, before = end, 'a'
		case ch == '/':
			switch before {
			case 'a', ']':
				i++
				before = '/'
				continue
			case ')', '+', '-', 'w':
				return unclear
			}
			end := awkPattern(text, i+1)
			if end < 0 {
				return "a pattern has no end, or brackets with a /"
			}
			i, before = end, 'a'
		case ch >= '0' && ch <= '9' || ch == '.':
			for i < len(text) && (text[i] >= '0' && text[i] <= '9' || text[i] == '.') {
				i++
			}
			before = 'a'
		case isLetter(ch):
			start := i
			for i < len(text) && (isLetter(text[i]) || text[i] >= '0' && text[i] <= '9') {
				i++
			}
			word := text[start:i]
			rest := strings.TrimLeft(text[i:], " \t")
			switch {
			case awkForbidden[word]:
				return word + " is not known to change nothing"
			case awkWords[word]:
				printing = printing || word == "print" || word == "printf"
				if before = 'w'; word == "print" || word == "printf" || word == "if" || word == "else" || word == "do" || word == "in" || word == "BEGIN" || word == "END" {
					before = ';' // A / behind it begins a pattern.
				}
			case strings.HasPrefix(rest, "(") && strings.HasPrefix(text[i:], "("):
				return word + " is no function that is known"
			default:
				before = 'a'
			}
		case ch == '|':
			if !strings.HasPrefix(text[i:], "||") {
				return "a | runs a command"
			}
			i, before = i+2, '|'
		case ch == '>':
			if printing {
				return "a > behind print writes a file"
			}
			i, before = i+1, '>'
		case strings.IndexByte("$()[]<=!~&+-*%^?:,", ch) >= 0:
			if ch == '&' && !strings.HasPrefix(text[i:], "&&") && before != '&' {
				return "a & is not known"
			}
			i, before = i+1, ch
		default:
			return "the character " + string(rune(ch)) + " is not known"
		}
	}
	return ""
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' }

func awkString(text string, i int) int {
	for ; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i++; i < len(text) && text[i] == '\n' {
				return -1
			}
		case '\n':
			return -1
		case '"':
			return i + 1
		}
	}
	return -1
}

// awkPattern returns where a pattern ends, behind its /; -1: awk programs may differ about that. Of brackets they know classes, or do not; some take a /
// in brackets for the end, a bracket within brackets for another one, and a backslash there for itself.
func awkPattern(text string, i int) int {
	bracket := false
	for ; i < len(text); i++ {
		switch text[i] {
		case '\\':
			if i++; i < len(text) && (text[i] == '\n' || bracket && strings.IndexByte("[]/", text[i]) >= 0) {
				return -1
			}
		case '\n':
			return -1
		case '[':
			if bracket {
				class := awkClass().FindString(text[i:])
				if class == "" {
					return -1
				}
				i += len(class) - 1
				continue
			}
			if bracket = true; strings.HasPrefix(text[i+1:], "]") || strings.HasPrefix(text[i+1:], "^]") {
				return -1
			}
		case ']':
			bracket = false
		case '/':
			if bracket {
				return -1
			}
			return i + 1
		}
	}
	return -1
}
