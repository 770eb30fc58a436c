package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/statedir"
)

// tokenVariable has the token of limpet mcp --http, for who has it from elsewhere.
const tokenVariable = "LIMPET_MCP_TOKEN"

// What a token is.
const (
	shortestToken = 16      // characters; what limpet makes has 52
	longestToken  = 4 << 10 // bytes, of its file
)

// token is what clients have to know, and the place where it is, for people.
type token struct{ secret, place string }

// takeToken takes the token out of the environment, where nothing that limpet starts shall
// find it. It returns nil if there is none.
func takeToken() *string {
	secret, ok := os.LookupEnv(tokenVariable)
	if !ok {
		return nil
	}
	_ = os.Unsetenv(tokenVariable) // The name is a good one.
	return &secret
}

// token finds the token: what the environment said, or what is in a file, which is made if
// it is not there.
func (f *mcpFlags) token(cmd *cobra.Command, said *string) (token, error) {
	if said != nil {
		secret, err := checkToken(*said)
		if err != nil {
			return token{}, usagef(cmd, "%s: %w", tokenVariable, err)
		}
		return token{secret, tokenVariable}, nil
	}
	path := absolute(f.tokenFile)
	if f.tokenFile == "" {
		var err error
		if path, err = statedir.Default("mcp-token"); err != nil {
			return token{}, fmt.Errorf("no place for the token: %w; set HOME or XDG_STATE_HOME, name a --token-file, or have the token in %s", err, tokenVariable)
		}
		if err := private.MkdirAll(filepath.Dir(path)); err != nil {
			return token{}, fmt.Errorf("making a place for the token: %w", err)
		}
	}
	secret, err := readToken(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = makeToken(path); err == nil || errors.Is(err, fs.ErrExist) { // Another limpet was faster.
			secret, err = readToken(path)
		}
	}
	if err != nil {
		return token{}, fmt.Errorf("the token's file %s: %w", path, bare(err))
	}
	return token{secret, path}, nil
}

// bare is an error without the name of a file.
func bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// makeToken makes a file with a new token. It is there whole or not at all, and
// fs.ErrExist says that there is one.
func makeToken(path string) error {
	f, err := private.CreateTemp(filepath.Dir(path), ".mcp-token-*") // With mode 0600.
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // It has another name, or is of no use.
	_, err = f.WriteString(rand.Text() + rand.Text() + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	// A rename would replace one that came meanwhile.
	return os.Link(f.Name(), path)
}

// readToken reads the token, if nobody else can.
func readToken(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // A fifo is not waited for.
	if err != nil {
		return "", err
	}
	defer f.Close() // Read only.
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	const others = 0o077
	owner, ok := st.Sys().(*syscall.Stat_t)
	switch {
	case !st.Mode().IsRegular():
		return "", errors.New("that is no file")
	case ok && int(owner.Uid) != os.Geteuid() && owner.Uid != 0:
		return "", errors.New("it belongs to another user, who knows the token: name another --token-file, or remove it")
	case st.Mode().Perm()&others != 0:
		return "", fmt.Errorf("others can get at it, as its mode is %04o: chmod 600 it; if they may have read it, remove it, and a new one is made", st.Mode().Perm())
	}
	b, err := io.ReadAll(io.LimitReader(f, longestToken+1))
	if err != nil {
		return "", err
	}
	return checkToken(string(b))
}

// checkToken returns the token without blanks around it, or why it is none. The error does
// not show it.
func checkToken(text string) (string, error) {
	secret := strings.TrimSpace(text)
	switch {
	case secret == "":
		return "", errors.New("the token is empty: without it, one is made")
	case len(secret) < shortestToken:
		return "", fmt.Errorf("the token is too short: it has %d characters, and wants %d or more; without it, one is made", len(secret), shortestToken)
	case len(text) > longestToken:
		return "", fmt.Errorf("the token is too long: it may have %d bytes", longestToken)
	case strings.ContainsFunc(secret, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("the token has characters that no HTTP header can have: it wants visible ASCII, without blanks")
	}
	return secret, nil
}
