package remote

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"syscall"

	"github.com/limpet-sh/limpet/internal/errtext"
	"github.com/limpet-sh/limpet/terminal"
)

// What is wrong with a connection, for errors.Is.
var (
	// ErrGone means that the program that had the terminals is gone, or serves them no
	// more. What became of them is in their records.
	ErrGone = errors.New("the program that had the terminal is gone, or lets nobody reach it any more")

	// ErrUnreachable means that the program that has the terminals lives, but does not
	// serve them, or does not answer.
	ErrUnreachable = errors.New("the program that has the terminal cannot be asked")

	// ErrOlder means that the program that has the terminals is of a version that does not
	// know what it was asked for.
	ErrOlder = errors.New("the limpet that has the terminals is of a version that cannot do this")
)

// What a program answers to what it does not know. Those of all versions say it by this text alone.
const (
	unknownBegins = "there is no "
	unknownEnds   = " here; this is version "
)

func unknown(r *http.Request) wireError {
	return wireError{Error: unknownBegins + r.Method + " " + r.URL.Path + unknownEnds + strconv.Itoa(version) + " of the protocol"}
}

// IsOlder reports whether an error is that of a program in between which does not know what it was asked for: ErrOlder.
func IsOlder(err error) bool { return err != nil && isUnknown(err.Error()) }

// isUnknown reports whether a text is that of unknown.
func isUnknown(text string) bool {
	return strings.HasPrefix(text, unknownBegins) && strings.Contains(text, unknownEnds)
}

// sentinels are the errors that keep their identity, by their names in the protocol.
var sentinels = []struct {
	name   string
	err    error
	status int
}{
	{"not_found", terminal.ErrNotFound, http.StatusNotFound},
	{"ended", terminal.ErrEnded, http.StatusConflict},
	{"running", terminal.ErrRunning, http.StatusConflict},
	{"elsewhere", terminal.ErrElsewhere, http.StatusConflict},
	{"nothing_to_run", terminal.ErrNothingToRun, http.StatusBadRequest},
	{"no_program", terminal.ErrNoProgram, http.StatusBadRequest},
	{"size", terminal.ErrSize, http.StatusBadRequest},
	{"too_many", terminal.ErrTooMany, http.StatusConflict},
	{"not_read", terminal.ErrNotRead, http.StatusConflict},
	{"line_too_long", terminal.ErrLineTooLong, http.StatusBadRequest},
	{"closed", terminal.ErrClosed, http.StatusServiceUnavailable},
	{"interrupted", terminal.ErrInterrupted, http.StatusConflict},
	{"canceled", context.Canceled, http.StatusConflict},
	{"deadline", context.DeadlineExceeded, http.StatusConflict},
	{"ENOSPC", syscall.ENOSPC, http.StatusInsufficientStorage},
	{"EDQUOT", syscall.EDQUOT, http.StatusInsufficientStorage},
}

// wireError is an error on its way.
type wireError struct {
	Error  string   `json:"error"` // the whole text
	Is     []string `json:"is,omitempty"`
	Op     string   `json:"op,omitempty"` // that and the rest of a terminal.Error
	ID     string   `json:"id,omitempty"`
	Text   string   `json:"text,omitempty"`
	Remedy string   `json:"remedy,omitempty"`

	Written int `json:"written,omitempty"` // of a write: bytes that were typed all the same
}

func pack(err error) wireError {
	w := wireError{Error: err.Error()}
	if e, ok := errors.AsType[*terminal.Error](err); ok && e.Error() == w.Error {
		w.Op, w.ID, w.Text, w.Remedy = e.Op, e.ID, e.Err.Error(), e.Remedy
	}
	for _, s := range sentinels {
		if errors.Is(err, s.err) && (s.status != http.StatusInsufficientStorage || errtext.NoRoom(err)) {
			w.Is = append(w.Is, s.name)
		}
	}
	return w
}

func (w wireError) status() int {
	for _, s := range sentinels {
		for _, name := range w.Is {
			if s.name == name {
				return s.status
			}
		}
	}
	return http.StatusBadRequest
}

func (w wireError) unpack() error {
	f := &failure{text: w.Error}
	for _, s := range sentinels {
		for _, name := range w.Is {
			if s.name == name {
				f.is = append(f.is, s.err)
			}
		}
	}
	if isUnknown(w.Error) {
		f.is = append(f.is, ErrOlder)
	}
	if w.Op == "" {
		return f
	}
	f.text = w.Text
	return &terminal.Error{Op: w.Op, ID: w.ID, Err: f, Remedy: w.Remedy}
}

// failure is an error of another program.
type failure struct {
	text string
	is   []error
}

func (f *failure) Error() string   { return f.text }
func (f *failure) Unwrap() []error { return f.is }

// MarshalError writes an error as the protocol has it, for who passes one on by another
// way. Nil is "null".
func MarshalError(err error) []byte {
	if err == nil {
		return []byte("null")
	}
	b, _ := json.Marshal(pack(err)) // It is made of texts.
	return b
}

// UnmarshalError reads what MarshalError writes. The second error says that it is none.
func UnmarshalError(b []byte) (said, err error) {
	var w *wireError
	if err := json.Unmarshal(b, &w); err != nil || w == nil {
		return nil, err
	}
	return w.unpack(), nil
}
