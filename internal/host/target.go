package host

import (
	"errors"
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// ErrTarget means that a text does not say where a machine is.
var ErrTarget = errors.New("is no target")

// remedyOfTarget is what to do about that.
const remedyOfTarget = "use exec:ARGV, where ARGV reaches a POSIX sh over there, as in \"exec:limactl shell dev sh\""

// Target says where a machine is, and how it is reached.
type Target struct {
	said string
	argv []string
}

// String is what was said.
func (t Target) String() string { return t.said }

// ParseTarget reads a target:
//
//	exec:ARGV    a command whose standard input and output reach a POSIX sh over there. It is words as bash has them, in
//	             quotes where that is needed, without expansions
//
// The error is ErrTarget.
func ParseTarget(said string) (Target, error) {
	t := Target{said: said}
	scheme, rest, ok := strings.Cut(said, ":")
	if !ok || scheme != "exec" {
		return t, fmt.Errorf("%q %w; %s", said, ErrTarget, remedyOfTarget)
	}
	var err error
	if t.argv, err = words(rest); err != nil {
		return t, fmt.Errorf("%q %w: %w; %s", said, ErrTarget, err, remedyOfTarget)
	}
	return t, nil
}

// words are those of a simple command, as bash would take them.
func words(text string) ([]string, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, err
	}
	if len(file.Stmts) != 1 {
		return nil, errors.New("it wants one command")
	}
	stmt := file.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || len(call.Assigns) > 0 || len(stmt.Redirs) > 0 || stmt.Background || stmt.Negated {
		return nil, errors.New("it wants words alone: write sh -c '...' for more")
	}
	var argv []string
	for _, word := range call.Args {
		text, err := literal(word.Parts, false)
		if err != nil {
			return nil, err
		}
		argv = append(argv, text)
	}
	return argv, nil
}

// literal is the text of a word without expansions. In quotes a backslash means less.
func literal(parts []syntax.WordPart, quoted bool) (string, error) {
	var b strings.Builder
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			for i := 0; i < len(part.Value); i++ {
				if part.Value[i] == '\\' && i+1 < len(part.Value) && (!quoted || strings.IndexByte("$`\"\\", part.Value[i+1]) >= 0) {
					i++
				}
				b.WriteByte(part.Value[i])
			}
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", errors.New("it can have no $'...'")
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			text, err := literal(part.Parts, true)
			if err != nil {
				return "", err
			}
			b.WriteString(text)
		default:
			return "", errors.New("nothing is expanded there: quote it, or write sh -c '...'")
		}
	}
	return b.String(), nil
}
