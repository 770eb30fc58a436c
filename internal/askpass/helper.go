package askpass

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/socket"
)

// A program that has a Server is executed again as the helper, and is entered here.
func init() {
	if len(os.Args) > 0 && filepath.Base(os.Args[0]) == helperName {
		os.Exit(help())
	}
}

// help is the helper, and returns its exit code.
func help() int {
	prompt := strings.Join(os.Args[1:], " ")
	secret, err := askTerminal(prompt)
	if errors.Is(err, errNoTerminal) {
		secret, err = askServer(filepath.Dir(os.Args[0]), request{Prompt: prompt, Hint: os.Getenv("SSH_ASKPASS_PROMPT")})
	}
	defer clear(secret)
	if err == nil {
		// In one piece: others may write to the same pipe.
		line := append(secret, '\n')
		defer clear(line)
		_, err = os.Stdout.Write(line)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "limpet: no password: %v\n", err)
		return 1
	}
	return 0
}

// askServer asks the server whose directory this is.
func askServer(dir string, req request) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), requestPatience)
	defer cancel()
	conn, err := socket.Dial(ctx, dir, socketName)
	if err != nil {
		return nil, errClosed
	}
	defer conn.Close() // Nothing was written that it could lose.
	if err := socket.CheckPeer(conn); err != nil {
		return nil, err
	}
	line, err := json.Marshal(req)
	if err == nil {
		_, err = conn.Write(append(line, '\n'))
	}
	var reply [mostRequest]byte
	n := 0
	for err == nil && n < len(reply) {
		var more int
		more, err = conn.Read(reply[n:])
		n += more
	}
	switch {
	case !errors.Is(err, io.EOF), n == 0:
		return nil, errClosed
	case reply[0] != replyYes:
		return nil, errors.New(string(reply[1:n]))
	}
	secret := append([]byte(nil), reply[1:n]...)
	clear(reply[:])
	return secret, nil
}

var errNoTerminal = errors.New("there is no terminal")

// askTerminal asks on the terminal that the program has which started the helper, as ssh and git would have done themselves: an
// expect script, say, answers there. Sudo has looked for one itself, and found none or wants none. The error is errNoTerminal if
// there is none.
func askTerminal(prompt string) ([]byte, error) {
	if proc.Name(os.Getppid()) == "sudo" {
		return nil, errNoTerminal
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, errNoTerminal
	}
	defer tty.Close() // The answer is known.
	fd := int(tty.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return nil, errNoTerminal
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() { // It ends with the program.
		<-signals
		_ = term.Restore(fd, before) // The terminal may be gone.
		os.Exit(1)
	}()
	if _, err := io.WriteString(tty, prompt); err != nil {
		return nil, err
	}
	switch kindOf(request{Prompt: prompt, Hint: os.Getenv("SSH_ASKPASS_PROMPT")}, proc.Name(os.Getppid())) {
	case command.AskNothing:
		return nil, nil
	case command.AskConfirm, command.AskName: // It may be seen.
		line, err := bufio.NewReader(tty).ReadBytes('\n')
		return bytes.TrimRight(line, "\r\n"), err
	}
	secret, err := term.ReadPassword(fd)
	_, _ = io.WriteString(tty, "\n") // As above.
	return secret, err
}
