package ipc

import (
	"fmt"

	"github.com/limpet-sh/limpet/internal/script"
)

// While a builtin runs with redirections, bash keeps what they hide at the first descriptors
// that are free from 10 on, and takes it back from there. A script that runs in an eval and
// opens descriptor 10 would lose, or be given, bash's own streams. But what a duplicated
// descriptor hides goes above the one that it was duplicated from (bash 5.2, redir.c,
// add_undo_redirect). So the files of a script that deals with descriptors are opened high up
// first, and duplicated.
const (
	asideIn = asideFD + iota
	asideOut
	asideErr
	asideNull
	asideEnd
)

// asideFD is the first of the descriptors that a [Call] with Aside needs.
const asideFD = 200

// AsideEnd is more than the last of the descriptors that a [Call] with Aside needs: what bash
// puts aside is below it too.
const AsideEnd = asideEnd + 5

// openAside is the command that opens the files of the script. Behind "builtin" it would
// be undone.
func (d *dir) openAside(c Call) string {
	in := "</dev/null"
	if c.Stdin {
		in = c.input()
	}
	err := fmt.Sprintf(">&%d", asideOut)
	if c.stderr != "" {
		err = ">>" + script.Quote(c.stderr)
	}
	return fmt.Sprintf(`\exec %d%s %d>>%s %d%s %d</dev/null; `, asideIn, in, asideOut, script.Quote(c.stdout), asideErr, err, asideNull)
}

// asideRedirections hide the descriptors by which bash knows its input behind /dev/null: closed,
// they would be put aside from 10 on.
func asideRedirections(c Call) string {
	text := fmt.Sprintf(" <&%d >&%d 2>&%d", asideIn, asideOut, asideErr)
	if c.Stdin {
		text += fmt.Sprintf(" %d<&%d %d<&%d", InputFD, asideNull, commandFD, asideNull)
	}
	return text
}

// closeAside stands before the script, which has the files as its streams by then.
var closeAside = fmt.Sprintf(`\exec %d<&- %d<&- %d<&- %d<&-; `, asideIn, asideOut, asideErr, asideNull)
