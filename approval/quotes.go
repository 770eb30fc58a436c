package approval

import "strings"

// unquoteDouble returns what a literal in double quotes is.
func unquoteDouble(text string) string {
	if !strings.Contains(text, `\`) {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\\n", text[i+1]) >= 0 {
			if i++; text[i] == '\n' {
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// unquoteDollar returns what the text in $'..' is. It reports false if it has escapes that depend on the locale, or end
// the text.
func unquoteDollar(text string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b.WriteByte(text[i])
			continue
		}
		if i++; i == len(text) {
			return "", false
		}
		switch c := text[i]; c {
		case 'a', 'b', 'e', 'E', 'f', 'n', 'r', 't', 'v':
			b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v"[strings.IndexByte("abeEfnrtv", c)])
		case '\\', '\'', '"', '?':
			b.WriteByte(c)
		case 'x':
			n, used := digits(text[i+1:], 16, 2)
			if used == 0 || n == 0 || n > 0x7f {
				return "", false
			}
			b.WriteByte(byte(n))
			i += used
		case 'u', 'U':
			most := 4
			if c == 'U' {
				most = 8
			}
			n, used := digits(text[i+1:], 16, most)
			if used == 0 || n == 0 || n > 0x7f {
				return "", false
			}
			b.WriteByte(byte(n))
			i += used
		default:
			n, used := digits(text[i:], 8, 3)
			if used == 0 || n == 0 || n > 0x7f {
				return "", false
			}
			b.WriteByte(byte(n))
			i += used - 1
		}
	}
	return b.String(), true
}

func digits(text string, base, most int) (n, used int) {
	for used < len(text) && used < most {
		d := strings.IndexByte("0123456789abcdef", text[used]|0x20)
		if text[used] >= '0' && text[used] <= '9' {
			d = int(text[used] - '0')
		}
		if d < 0 || d >= base {
			break
		}
		n, used = n*base+d, used+1
	}
	return n, used
}
