package askpass

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/socket"
)

// request is what a helper sends, as one line of JSON.
type request struct {
	Prompt string `json:"prompt"`
	Hint   string `json:"hint,omitempty"` // the value of SSH_ASKPASS_PROMPT
}

// The first byte of a reply. The rest is the secret, or the reason.
const (
	replyYes = 'y'
	replyNo  = 'n'
)

// The bounds of a conversation.
const (
	mostRequest     = 16 << 10
	mostSecret      = 1023 // what sudo and ssh take (SUDO_CONV_REPL_MAX; readpass.c)
	requestPatience = 10 * time.Second
	replyPatience   = 10 * time.Second
)

// asked is the last question that a person was asked, and what came of it.
type asked struct {
	by      proc.ID
	prompt  string
	refused error // nil if it was answered
}

var (
	errHungUp    = errors.New("the program does not wait any more")
	errNotOurs   = errors.New("the process that asks does not descend from this shell, or its parent has ended")
	errIsAnother = errors.New("the processes that asked have changed meanwhile")
	errNoSecret  = fmt.Errorf("an answer is one line of at most %d bytes", mostSecret)
)

// timeoutError says that nobody answered.
type timeoutError time.Duration

func (e timeoutError) Error() string { return "nobody answered within " + time.Duration(e).String() }

// serve answers one connection.
func (s *Server) serve(conn *net.UnixConn) {
	ctx, cancel := context.WithCancelCause(s.life)
	watched := make(chan struct{})
	watch := func() { close(watched) }
	defer func() {
		cancel(nil)
		_ = conn.Close() // The reply was sent, or cannot be.
		<-watched
	}()
	// Close must not wait for a client that sends nothing.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetReadDeadline(time.Now()) })
	defer stop()
	_ = conn.SetReadDeadline(time.Now().Add(requestPatience)) // A connection can have one.
	r := bufio.NewReader(io.LimitReader(conn, mostRequest))
	line, err := r.ReadBytes('\n')
	var req request
	if err == nil {
		err = json.Unmarshal(line, &req)
	}
	if err != nil || ctx.Err() != nil {
		watch()
		return // It is no helper.
	}
	_ = conn.SetReadDeadline(time.Time{}) // As above.
	go func() {
		defer watch()
		_, _ = conn.Read(make([]byte, 1)) // The helper says no more: this is its end, or ours.
		cancel(errHungUp)
	}()
	secret, err := s.answer(ctx, conn, req)
	defer clear(secret)
	_ = conn.SetWriteDeadline(time.Now().Add(replyPatience)) // As above.
	if err != nil {
		_, _ = conn.Write(append([]byte{replyNo}, err.Error()...)) // It may have hung up.
		return
	}
	if _, err := conn.Write([]byte{replyYes}); err == nil {
		_, _ = conn.Write(secret) // As above.
	}
}

// answer asks the person what a helper asks.
func (s *Server) answer(ctx context.Context, conn net.Conn, req request) ([]byte, error) {
	if err := socket.CheckPeer(conn); err != nil {
		return nil, err
	}
	pid, err := socket.PeerPID(conn)
	if err != nil {
		return nil, err
	}
	chain, err := s.chain(pid)
	if err != nil {
		return nil, err
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	q := question(req, chain)
	by := chain[0].id
	same := s.last.by == by && s.last.prompt == req.Prompt
	if same && s.last.refused != nil { // ssh asks three times.
		return nil, s.last.refused
	}
	q.Again = same
	limited, cancel := context.WithTimeoutCause(ctx, s.opts.Timeout, timeoutError(s.opts.Timeout))
	defer cancel()
	secret, err := s.opts.Ask(limited, q)
	if err == nil && limited.Err() != nil { // It came late.
		err = context.Cause(limited)
	}
	if err == nil {
		err = check(secret)
	}
	if err == nil {
		if now, gone := s.chain(pid); gone != nil || !slices.Equal(chain, now) {
			err = errIsAnother
		}
	}
	s.last = asked{by: by, prompt: req.Prompt, refused: err}
	if err != nil {
		clear(secret)
		return nil, err
	}
	if q.Kind == command.AskConfirm {
		clear(secret)
		return []byte("yes"), nil // The word that ssh wants (sshconnect.c, readpass.c).
	}
	return secret, nil
}

// check refuses what a program would not get as it is.
func check(secret []byte) error {
	if len(secret) > mostSecret || bytes.ContainsAny(secret, "\n\r\x00") {
		return errNoSecret
	}
	return nil
}

// question is what a person is to be asked.
func question(req request, chain []member) command.PasswordQuestion {
	q := command.PasswordQuestion{Prompt: req.Prompt, Program: recognise(chain[0].id.PID)}
	for _, m := range chain {
		q.Chain = append(q.Chain, command.AskingProcess{PID: m.id.PID, Command: m.command})
	}
	q.Kind = kindOf(req, q.Program)
	return q
}

// kindOf says what a program wants. What is taken for a password though it is none is only not shown while it is typed; what is taken
// for a confirmation yields a yes, and nothing that was typed.
func kindOf(req request, program string) command.PasswordKind {
	prompt := strings.TrimSpace(req.Prompt)
	switch {
	case req.Hint == "none":
		return command.AskNothing
	case req.Hint == "confirm":
		return command.AskConfirm
	// Of the key of a host ssh asks without a hint (sshconnect.c, confirm).
	case strings.HasSuffix(prompt, "(yes/no)?"), strings.HasSuffix(prompt, "(yes/no/[fingerprint])?"):
		return command.AskConfirm
	case strings.HasPrefix(program, "git") && strings.HasPrefix(prompt, "Username"):
		return command.AskName
	}
	return command.AskPassword
}
