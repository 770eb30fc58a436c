package terminal_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

const secret = "hunter2-and-more"

// unseen asserts that a secret is nowhere: not in what was printed, nor on the screen, nor
// in what is written down of terminals.
func unseen(t *testing.T, r *terminal.Registry, term *terminal.Terminal, recording string) {
	t.Helper()
	assert.NotContains(t, output(t, term), secret)
	s, err := term.Screen()
	require.NoError(t, err)
	list, err := term.Scrollback()
	require.NoError(t, err)
	assert.NotContains(t, s.Text()+strings.Join(list, "\n"), secret)
	entries, err := os.ReadDir(r.Dir())
	require.NoError(t, err)
	require.Greater(t, len(entries), 2, "the record, the log and the lock")
	files := []string{recording}
	for _, entry := range entries {
		files = append(files, filepath.Join(r.Dir(), entry.Name()))
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.False(t, bytes.Contains(b, []byte(secret)), file)
	}
}

func TestASecretThatIsTypedIsNowhereToBeSeen(t *testing.T) {
	testenv.Slow(t)
	for _, test := range []struct{ name, program, line string }{
		{"bash's read", "bash", `read -rsp 'secret: ' x; printf '%s\n' "$x" >got`},
		{"python's getpass", "python3", `python3 -c 'import getpass; open("got", "w").write(getpass.getpass("secret: ") + "\n")'`},
		// It has nothing but its terminal to read from.
		{"from /dev/tty", "bash", `{ stty -echo; printf 'secret: '; read -r x; stty echo; printf '%s\n' "$x" >&3; } </dev/tty >/dev/tty 3>got`},
	} {
		t.Run(test.name, func(t *testing.T) {
			installed(t, test.program)
			r, dir := desk(t)
			recording := filepath.Join(dir, "cast")
			term := startSpec(t, r, terminal.Spec{Line: test.line + "; read -r y; echo typed $y", Record: recording})
			w := wait(t, term, terminal.WaitOptions{Prompt: true})
			require.Equal(t, terminal.WaitPrompt, w.Reason)
			assert.Equal(t, "secret:", w.Match)
			send(t, term, secret, "Enter")
			assert.Equal(t, secret, testenv.AwaitFile(t, filepath.Join(dir, "got")), "it has got something else")
			send(t, term, "what may be seen", "Enter") // The recording and the log are real.
			ended(t, term)
			assert.Contains(t, output(t, term), "typed what may be seen")
			b, err := os.ReadFile(recording)
			require.NoError(t, err)
			assert.Contains(t, string(b), "typed what may be seen")
			unseen(t, r, term, recording)
		})
	}
}

func TestSSHKeygenIsGivenPassphrases(t *testing.T) {
	testenv.Slow(t)
	keygen := installed(t, "ssh-keygen")
	r, dir := desk(t)
	const old = "the-old-one"
	out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", old, "-f", filepath.Join(dir, "key")).CombinedOutput()
	require.NoError(t, err, "%s", out)
	recording := filepath.Join(dir, "cast")
	term := startSpec(t, r, terminal.Spec{Argv: []string{keygen, "-p", "-f", "key"}, Record: recording})
	for _, answer := range []struct{ asked, typed string }{
		{"Enter old passphrase", old}, {"Enter new passphrase", secret}, {"Enter same passphrase again", secret},
	} {
		wait(t, term, terminal.WaitOptions{PromptPattern: answer.asked + `.*: $`})
		send(t, term, answer.typed, "Enter")
	}
	info := ended(t, term)
	require.Equal(t, terminal.Succeeded, info.State, output(t, term))
	assert.Contains(t, output(t, term), "has been saved with the new passphrase")
	assert.NotContains(t, output(t, term), old)
	unseen(t, r, term, recording)
	out, err = exec.Command(keygen, "-y", "-P", secret, "-f", filepath.Join(dir, "key")).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
