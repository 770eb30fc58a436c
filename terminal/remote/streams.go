package remote

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/terminal"
)

// getAttach passes on what a viewer reads. It reads on when the client has taken the last.
func getAttach(t *terminal.Terminal, w http.ResponseWriter, r *http.Request) (any, error) {
	if r.URL.Query().Get("offset") == "now" {
		q := r.URL.Query()
		q.Set("offset", strconv.FormatInt(math.MaxInt64, 10))
		r.URL.RawQuery = q.Encode()
	}
	offset, err := jsonhttp.Number(r, "offset", 0)
	if err != nil {
		return nil, err
	}
	v, err := t.Attach(offset)
	if err != nil {
		return nil, err
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set(headOffset, strconv.FormatInt(v.Offset(), 10))
	h.Set(headEnd, strconv.FormatInt(v.Snapshot(), 10))
	flush := http.NewResponseController(w).Flush
	err = flush() // The header, which is waited for.
	for err == nil {
		var c terminal.Chunk
		if c, err = v.Next(r.Context()); err != nil {
			break
		}
		if _, err = fmt.Fprintf(w, "%d %d %d\n", c.Offset, c.Missed, len(c.Data)); err == nil {
			_, err = w.Write(c.Data)
		}
		if err == nil {
			err = flush()
		}
	}
	trailer(w, headError, err)
	return nil, nil
}

// getRecord streams a recording.
func getRecord(t *terminal.Terminal, w http.ResponseWriter, r *http.Request) (any, error) {
	q := r.URL.Query()
	to := &flushing{w: w, flush: http.NewResponseController(w).Flush}
	w.Header().Set("Content-Type", "application/x-asciicast")
	res, err := t.Record(r.Context(), to, terminal.RecordOptions{FromStart: q.Get("from_start") != "", Title: q.Get("title")})
	if err != nil && !to.begun {
		return nil, err
	}
	w.Header().Set(http.TrailerPrefix+headRecorded, line(res))
	trailer(w, headError, err)
	return nil, nil
}

// trailer says behind a stream what went wrong with it.
func trailer(w http.ResponseWriter, name string, err error) {
	if err != nil && !errors.Is(err, io.EOF) {
		w.Header().Set(http.TrailerPrefix+name, line(pack(err)))
	}
}

// line is a value as JSON for a header.
func line(value any) string {
	var b strings.Builder
	jsonhttp.Encode(&b, value)
	return strings.TrimSpace(b.String())
}

// flushing sends each line as it comes.
type flushing struct {
	w     io.Writer
	flush func() error
	begun bool
}

func (f *flushing) Write(p []byte) (int, error) {
	f.begun = true
	n, err := f.w.Write(p)
	if err == nil {
		err = f.flush()
	}
	return n, err
}
