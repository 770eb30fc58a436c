package approval

import "strings"

var sedOptions = optionSet{short: "nErusze:l:b", long: "quiet silent expression= regexp-extended posix sandbox separate unbuffered null-data line-length= debug"}

// sedAllows knows scripts that only edit what they print.
func sedAllows(c *call) string {
	options, operands, why := sedOptions.parse(c.args)
	if why != "" {
		return why
	}
	var scripts []value
	for _, o := range options {
		if o.name == "e" || o.name == "expression" {
			scripts = append(scripts, o.arg)
		}
	}
	if len(scripts) == 0 && len(operands) > 0 {
		scripts = operands[:1]
	}
	if len(scripts) == 0 && len(options) == 1 && (options[0].name == "version" || options[0].name == "help") {
		return ""
	}
	if len(scripts) == 0 {
		return "the script of sed is not known"
	}
	for _, v := range scripts {
		if !v.known || v.many || v.home {
			return "the script of sed is not known"
		}
		s := sedScript{text: v.text}
		if !s.commands() {
			return "in sed's script, something is not known to edit alone"
		}
	}
	return ""
}

// sedScript reads a script of sed. Each method reports false for what it does not know.
type sedScript struct {
	text  string
	i     int
	depth int
}

func (s *sedScript) peek() byte {
	if s.i < len(s.text) {
		return s.text[s.i]
	}
	return 0
}

func (s *sedScript) skip(set string) {
	for s.i < len(s.text) && strings.IndexByte(set, s.text[s.i]) >= 0 {
		s.i++
	}
}

func (s *sedScript) commands() bool {
	for {
		s.skip(" \t\n;")
		if s.i == len(s.text) {
			return s.depth == 0
		}
		if !s.address() {
			return false
		}
		if s.skip(" \t"); s.peek() == ',' {
			s.i++
			s.skip(" \t")
			if c := s.peek(); c == '+' || c == '~' {
				s.i++
			}
			at := s.i
			if !s.address() || s.i == at {
				return false
			}
		}
		s.skip(" \t")
		if s.peek() == '!' {
			s.i++
			s.skip(" \t")
		}
		if !s.command() {
			return false
		}
	}
}

func (s *sedScript) address() bool {
	switch c := s.peek(); {
	case c >= '0' && c <= '9':
		s.skip("0123456789")
		if s.peek() == '~' {
			s.i++
			s.skip("0123456789")
		}
	case c == '$':
		s.i++
	case c == '/':
		s.i++
		if !s.pattern('/') {
			return false
		}
		s.skip("I")
	case c == '\\' && s.i+1 < len(s.text) && strings.IndexByte("|,:#@%!", s.text[s.i+1]) >= 0:
		s.i += 2
		if !s.pattern(s.text[s.i-1]) {
			return false
		}
		s.skip("I")
	}
	return true
}

// pattern reads up to the delimiter. Brackets with a delimiter in them, or with a backslash before one, may be read in two ways.
func (s *sedScript) pattern(end byte) bool {
	bracket := false
	for ; s.i < len(s.text); s.i++ {
		switch c := s.text[s.i]; {
		case c == '\n':
			return false
		case c == '\\':
			if s.i++; s.i == len(s.text) || s.text[s.i] == '\n' || bracket && (s.text[s.i] == end || strings.IndexByte("[]", s.text[s.i]) >= 0) {
				return false
			}
		case c == end:
			s.i++
			return !bracket
		case c == '[':
			if bracket = true; strings.HasPrefix(s.text[s.i+1:], "]") || strings.HasPrefix(s.text[s.i+1:], "^]") {
				return false
			}
		case c == ']':
			bracket = false
		}
	}
	return false
}

func (s *sedScript) command() bool {
	c := s.peek()
	s.i++
	switch c {
	case '{':
		s.depth++
		return true
	case '}':
		s.depth--
		if s.depth < 0 {
			return false
		}
		return s.end()
	case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z':
		return s.end()
	case 'q', 'Q', 'l':
		s.skip(" ")
		s.skip("0123456789")
		return s.end()
	case 's':
		return s.substitute()
	case 'y':
		d := s.peek()
		s.i++
		return s.delimiter(d) && s.replacement(d) && s.replacement(d) && s.end()
	case 'b', 't', 'T', ':':
		// Labels end at a semicolon for some, and at the line for others.
		s.skip(" ")
		s.skip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
		return s.i == len(s.text) || s.peek() == ';' && c != ':' || s.peek() == '\n' || s.peek() == ';'
	}
	return false
}

func (s *sedScript) delimiter(d byte) bool {
	return d != 0 && d != '\n' && d != '\\' && d != ' ' && d < 0x80 && !isLetter(d)
}

func (s *sedScript) substitute() bool {
	d := s.peek()
	s.i++
	if !s.delimiter(d) || !s.pattern(d) || !s.replacement(d) {
		return false
	}
	s.skip("gpiI0123456789")
	return s.end()
}

func (s *sedScript) replacement(end byte) bool {
	for ; s.i < len(s.text); s.i++ {
		switch s.text[s.i] {
		case '\\':
			s.i++
		case '\n':
			return false
		case end:
			s.i++
			return true
		}
	}
	return false
}

// end reads what ends a command.
func (s *sedScript) end() bool {
	s.skip(" \t")
	switch s.peek() {
	case ';', '\n':
		s.i++
		return true
	case '}':
		return true
	}
	return s.i >= len(s.text)
}
