package approval

import "strings"

// reader is a rule that allows a program whose command line it knows as a whole.
type reader struct {
	name, reason string
	programs     string // with spaces between
	options      optionSet
	// most bounds the operands: of some programs the second is a file that they write. 0: none; -1: any number.
	most int
	// check looks at the words in its own way, behind the options, and returns why it does not know them. With own, it does so instead.
	check func(c *call, options []option, operands []value) string
	own   func(c *call) string
	yes   []string // scripts that are allowed
	no    []string // scripts that are not
}

// readerTables are all rules that allow.
var readerTables = [][]reader{textReaders, fileReaders, systemReaders, shellReaders, ownReaders}

// readers are the rules by the names of programs.
var readers = func() map[string]*reader {
	all := make(map[string]*reader)
	for _, list := range readerTables {
		for i := range list {
			for name := range strings.FieldsSeq(list[i].programs) {
				if all[name] != nil {
					panic("approval: two rules for " + name)
				}
				all[name] = &list[i]
			}
		}
	}
	return all
}()

func firstField(text string) string {
	first, _, _ := strings.Cut(text, " ")
	return first
}

// allows returns why a command is not allowed, and nothing if it is.
func (r *reader) allows(c *call) string {
	if r.own != nil {
		return r.own(c)
	}
	options, operands, why := r.options.parse(c.args)
	if why != "" {
		return why
	}
	if r.most >= 0 {
		n := len(operands)
		for _, v := range operands {
			if v.many {
				n = r.most + 1
			}
		}
		if n > r.most {
			return "it may have more operands than are known to change nothing"
		}
	}
	if r.check != nil {
		return r.check(c, options, operands)
	}
	return ""
}
