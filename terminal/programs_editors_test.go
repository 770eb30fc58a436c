package terminal_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/keys"
)

func TestVimEditsAFile(t *testing.T) {
	vim := installed(t, "vim", "vim.tiny")
	r, dir := desk(t)
	term := bash(t, r)
	send(t, term, "echo before", "Enter")
	see(t, term, `(?m)^before\n> $`)
	send(t, term, vim+" -Nu NONE -n file", "Enter")
	s := see(t, term, `(?m)^~\n.*"file" \[New\]`)
	assert.True(t, s.Alternate)
	assert.NotContains(t, s.Text(), "before")

	const inserting = "-- INSERT --"
	send(t, term, "i", "one", "Enter", "three")
	see(t, term, `^one\nthree\n~(?s).*`+inserting)
	send(t, term, "Esc")
	w := wait(t, term, terminal.WaitOptions{Text: inserting, Gone: true})
	assert.Equal(t, terminal.WaitGone, w.Reason)
	send(t, term, "Up", "o", "tvo")
	see(t, term, `^one\ntvo\nthree\n(?s).*`+inserting)
	send(t, term, "Left", "Left", "Delete", "w", "End", "!", "Down", "Home", "#")
	see(t, term, `^one\ntwo!\n#three\n`)
	send(t, term, "Esc")
	wait(t, term, terminal.WaitOptions{Text: inserting, Gone: true})

	send(t, term, ":set ls=2", "Enter")
	s = until(t, term, "its status line", func(s terminal.Snapshot) bool { return strings.HasPrefix(s.Line(s.Rows-2), "file [+]") })
	assert.True(t, s.Cells[22][0].Style.Reverse, "it is not in reverse video")
	for _, size := range []terminal.Size{{Cols: 120, Rows: 40}, {Cols: 30, Rows: 9}} {
		require.NoError(t, term.Resize(size))
		s = until(t, term, "the status line at the new place", func(s terminal.Snapshot) bool {
			return s.Size == size && strings.HasPrefix(s.Line(size.Rows-2), "file [+]") && s.Cells[size.Rows-2][size.Cols-1].Style.Reverse
		})
		assert.Equal(t, "#three", s.Line(2))
		assert.Equal(t, "~", s.Line(size.Rows-3))
	}

	send(t, term, ":wq", "Enter")
	s = see(t, term, `(?m)^> $`)
	assert.False(t, s.Alternate)
	b, err := os.ReadFile(filepath.Join(dir, "file"))
	require.NoError(t, err)
	assert.Equal(t, "one\ntwo!\n#three\n", string(b))
	assert.Contains(t, s.Text(), "before\n> ", "what was there is there again")
	assert.NotContains(t, s.Text(), "two!")
	send(t, term, "echo status $?", "Enter")
	see(t, term, `(?m)^status 0\n> $`)
}

// Vim takes a paste for what it is: it indents nothing, and no letter of it is a command.
func TestAPasteIntoVimIsText(t *testing.T) {
	vim := installed(t, "vim", "vim.tiny")
	r, dir := desk(t)
	term := start(t, r, vim, "-Nu", "NONE", "-n", "-c", "set autoindent", "file")
	s := see(t, term, `(?m)^~\n.*"file" \[New\]`)
	if !s.Modes.BracketedPaste {
		t.Skip("this vim does not ask for marks around a paste")
	}
	const text = "  if x:\n    dd\n  :q!\n"
	require.NoError(t, term.Send(keys.Text("i"), keys.Paste(text)))
	see(t, term, `(?m)^  :q!\n`)
	send(t, term, "Esc")
	wait(t, term, terminal.WaitOptions{Text: "-- INSERT --", Gone: true})
	send(t, term, "ZZ")
	assert.Equal(t, terminal.Succeeded, ended(t, term).State)
	b, err := os.ReadFile(filepath.Join(dir, "file"))
	require.NoError(t, err)
	assert.Equal(t, text+"\n", string(b)) // It ends its last line, which is empty.
}

func TestNanoWritesAFile(t *testing.T) {
	nano := installed(t, "nano")
	r, dir := desk(t)
	term := bash(t, r)
	send(t, term, "echo before; "+nano+" --ignorercfiles file", "Enter")
	s := see(t, term, `^ *GNU nano.* file`)
	assert.True(t, s.Alternate)
	assert.True(t, s.Cells[0][2].Style.Reverse, "the title is not in reverse video")
	send(t, term, "hellx wörld", "Home", "Right", "Right", "Right", "Right", "Delete", "o", "End", "!")
	see(t, term, `(?m)^hello wörld!$`)
	send(t, term, "Ctrl-O")
	see(t, term, `(?m)^File Name to Write.*: file`)
	send(t, term, "Enter")
	see(t, term, `\[ Wrote 1 line \]`)
	b, err := os.ReadFile(filepath.Join(dir, "file"))
	require.NoError(t, err)
	assert.Equal(t, "hello wörld!\n", string(b))
	send(t, term, "Ctrl-X")
	s = see(t, term, `(?m)^before\n> $`)
	assert.False(t, s.Alternate)
}
