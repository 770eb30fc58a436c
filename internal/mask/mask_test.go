package mask

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFormsFindTheirExamplesAndNoOthers(t *testing.T) {
	for _, f := range forms {
		assert.NotEmpty(t, f.examples, f.name)
		assert.NotEmpty(t, f.others, f.name)
		for _, example := range f.examples {
			masked, names := Text([]byte(example))
			assert.Contains(t, names, f.name, "%q: %q", example, masked)
		}
		for _, other := range f.others {
			masked, names := Text([]byte(other))
			assert.NotContains(t, names, f.name, "%q: %q", other, masked)
		}
	}
}

func TestTheSecretAloneIsMasked(t *testing.T) {
	for text, want := range map[string]string{
		"git clone https://me:hunter2@example.com/x.git .":                 "git clone https://me:[masked: password in a URL]@example.com/x.git .",
		`curl -H "Authorization: Bearer 0123456789" x`:                     `curl -H "Authorization: Bearer [masked: authorization]" x`,
		"a\nexport API_KEY=abc123; b":                                      "a\nexport API_KEY=[masked: value of a variable]; b",
		"-----BEGIN PRIVATE KEY-----\nAA\n-----END PRIVATE KEY-----\nnext": "-----BEGIN PRIVATE KEY-----[masked: private key]-----END PRIVATE KEY-----\nnext",
		"TOKEN=ghp_" + x(36) + " make":                                     "TOKEN=[masked: GitHub token] make",
		"AKIAABCDEFGHIJKLMNOP AKIAABCDEFGHIJKLMNOP":                        "[masked: AWS key] [masked: AWS key]",
		`{"CLIENT_SECRET": "a b\"c", "x": 1}`:                              `{"CLIENT_SECRET": "[masked: value of a variable]", "x": 1}`,
		"nothing":                                                          "nothing",
	} {
		masked, _ := Text([]byte(text))
		assert.Equal(t, want, string(masked))
	}
}

// What builds and tests print as a rule has nothing that is masked.
func TestOrdinaryOutputIsLeftAlone(t *testing.T) {
	const ordinary = `go: downloading golang.org/x/sys v0.48.0
ok  	example.com/x/token	0.012s	coverage: 81.2% of statements
--- FAIL: TestToken (0.00s)
    token_test.go:12: got "=", want ":="
gcc -O2 -DHAVE_TOKEN=1 -DMAX_TOKENS=512 -I/usr/include -o build/parser.o -c parser.c
make[1]: Entering directory '/src'
npm warn deprecated sk-plugin@1.2.3: use task-runner
h1:UAHTKs8Yj1Rr8wQ6gA2Eg8cK+9kDy5Qm7nPnYxLlJpE=
"integrity": "sha512-abcDEF0123456789abcDEF0123456789abcDEF0123456789abcDEF0123456789abcDEF0123456789ab==",
commit 3f786850e387550fdab836ed7e6dc881de23001b
Get:1 http://deb.debian.org/debian bookworm/main amd64 tmux amd64 3.3a-3 [455 kB]
2026-11-27T12:00:00Z INFO  server listening addr=127.0.0.1:8080 id=7b3f9d2e-8d5c-4d0e-9a57-0f4b8f7f3c11
sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
Authorization: see docs/auth.md
data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4
ssh -p 22 me@example.com:/srv https://example.com:8443/path?q=a@b
`
	masked, names := Text([]byte(ordinary))
	assert.Empty(t, names)
	assert.Equal(t, ordinary, string(masked))
}

// Whatever is cut off, no part of a secret is left that was in what is looked at.
func TestASecretIsMaskedWhereverTheTextIsCut(t *testing.T) {
	secret := "ghp_" + x(36)
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("K", 64)+"\n", 40) + "-----END PRIVATE KEY-----\n"
	for _, hidden := range []string{secret, key} {
		for at := 4096 - len(hidden) - 2; at < 4098; at += 97 {
			before := strings.Repeat("ab\n", 4096)
			text := before[:at] + "\n" + hidden + "\n" + strings.Repeat("z\n", 20000) + hidden + "\n" + before[:at]
			head, tail, omitted, names := Ends([]byte(text), 4096)
			assert.NotEmpty(t, names)
			assert.LessOrEqual(t, len(head), 4096)
			assert.LessOrEqual(t, len(tail), 4096)
			assert.EqualValues(t, len(text), int64(len(head)+len(tail))+omitted)
			for _, part := range [][]byte{head, tail} {
				assert.False(t, bytes.Contains(part, []byte("KKKKKKKK")), "%d", at)
				assert.False(t, bytes.Contains(part, []byte("a1B2c3D4")), "%d", at)
			}
		}
	}
}

func TestAnEnvironmentIsMaskedByItsNames(t *testing.T) {
	for entry, want := range map[string]string{
		"DB_PASSWORD=a b":    "DB_PASSWORD=[masked: value of a variable]",
		"PATH=/bin":          "PATH=/bin",
		"TOKEN=":             "TOKEN=",
		"URL=http://a:bcd@b": "URL=http://a:[masked: password in a URL]@b",
	} {
		masked, names := Assignment(entry)
		assert.Equal(t, want, masked)
		assert.Equal(t, entry != want, len(names) > 0, entry)
	}
}

func BenchmarkText(b *testing.B) {
	text := []byte(strings.Repeat("gcc -O2 -DX=1 -I/usr/include -o build/parser.o -c parser.c: ok 12 of 34\n", 170))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Text(text)
	}
}
