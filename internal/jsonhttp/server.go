// Package jsonhttp is what limpet's protocols have in common: HTTP with JSON bodies, bounded in size and in time,
// and a client that tells a program that has ended from one that does not answer.
package jsonhttp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// patience is the time that a client has to send what comes with a request, and to take an answer that is
// no stream.
const patience = 30 * time.Second

// ErrTooLarge means that what came with a request is too large.
var ErrTooLarge = errors.New("the request is too large")

// Write answers with a value.
func Write(w http.ResponseWriter, status int, value any) {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(patience)) // A connection has deadlines.
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	Encode(w, value)
	_ = control.SetWriteDeadline(time.Time{}) // As above.
}

// Encode writes a value.
func Encode(w io.Writer, value any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // It is for programs.
	_ = enc.Encode(value)    // Who went away misses nothing.
}

// Body reads what came with a request, at once and whole. The error is ErrTooLarge for more than most bytes.
func Body(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	var b bytes.Buffer
	const usual = 512 << 10 // A larger one grows as it comes: who announces much may send nothing.
	b.Grow(int(min(max(r.ContentLength, 0), most, usual)) + bytes.MinRead)
	err := BodyInto(w, r, most, &b)
	return b.Bytes(), err
}

// BodyInto is Body by a buffer, which has a body of another request no more.
func BodyInto(w http.ResponseWriter, r *http.Request, most int64, b *bytes.Buffer) error {
	b.Reset()
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(patience)) // A connection has deadlines.
	_, err := b.ReadFrom(http.MaxBytesReader(w, r.Body, most))
	_ = control.SetReadDeadline(time.Time{}) // As above.
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		b.Reset()
		return fmt.Errorf("%w: more than %d bytes", ErrTooLarge, most)
	}
	return err
}

// Decode reads what came with a request into a value, which stays as it is if nothing came.
func Decode(w http.ResponseWriter, r *http.Request, most int64, value any) error {
	b, err := Body(w, r, most)
	if err != nil {
		return err
	}
	return Unmarshal(b, value)
}

// Unmarshal is Decode of a body that was read.
func Unmarshal(b []byte, value any) error {
	if len(b) == 0 {
		return nil
	}
	if err := json.Unmarshal(b, value); err != nil {
		return fmt.Errorf("what came with it is not what it should be: %w", err)
	}
	return nil
}

// Number is a parameter in the address; otherwise is what it is without.
func Number(r *http.Request, name string, otherwise int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s=%.40q: wants a number", name, text)
	}
	return n, nil
}

// Relay answers with the answer of another program, as it comes, and reports whether that came to its end. It does not wait for more
// before it sends what there is. If it reports false the caller must abort the answer (http.ErrAbortHandler).
func Relay(w http.ResponseWriter, answer *http.Response) (whole bool) {
	for name, values := range answer.Header {
		if name == "Content-Type" || strings.HasPrefix(name, "Limpet-") {
			w.Header()[name] = values
		}
	}
	w.WriteHeader(answer.StatusCode)
	control := http.NewResponseController(w)
	if answer.ContentLength < 0 && control.Flush() != nil { // A stream: its header says that something is there.
		return false
	}
	const piece = 64 << 10
	b := make([]byte, piece)
	for {
		n, err := answer.Body.Read(b)
		if n > 0 {
			if _, err := w.Write(b[:n]); err != nil {
				return false
			}
			if control.Flush() != nil {
				return false
			}
		}
		if err != nil {
			for name, values := range answer.Trailer { // It is known now.
				if strings.HasPrefix(name, "Limpet-") {
					w.Header()[http.TrailerPrefix+name] = values
				}
			}
			return errors.Is(err, io.EOF) // Not io.ErrUnexpectedEOF.
		}
	}
}
