package page

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/limpet-sh/limpet/internal/asciicast"
	"github.com/limpet-sh/limpet/terminal"
)

// The owner plays recordings of terminals: the files *.cast in [Options.Recordings]. GET /api/recordings lists them, and GET /api/recordings/NAME
// answers with one as a stream, one JSON value a line: a recordingHead, then events as
//
//	["o", 1.5, "text"]      a program has printed text after 1.5 s
//	["r", 1.5, "80x24"]     the terminal has that size from then on
//	["m", 1.5, "label"]     a marker
//
// and at last a recordingEnd. What was typed ("i") and events of other kinds are left out. The stream has what was in the file when it was opened,
// and does not wait for more.

// recordingsPath is that of the list, and before the name of a recording.
const recordingsPath = "/api/recordings"

const (
	// recordingSuffix is at the end of the name of a recording.
	recordingSuffix = ".cast"

	// mostRecordings bounds the list of recordings.
	mostRecordings = 500

	// mostRecording is the largest recording that is played, in bytes. The page keeps all of it in memory.
	mostRecording = 32 << 20
)

var errNoRecording = errors.New("there is no recording of that name")

// recordings are those of a directory.
type recordings struct {
	mu    sync.Mutex
	known map[string]recordingJSON // by name, as they were listed last
}

// recordingJSON is one recording of the list.
type recordingJSON struct {
	Name     string    `json:"name"`
	Bytes    int64     `json:"bytes"`
	Modified time.Time `json:"modified"`
	LengthMS *int64    `json:"length_ms,omitempty"` // nil if it is not known
}

type recordingsJSON struct {
	Recordings []recordingJSON `json:"recordings"` // the one that was written last comes first
	More       int             `json:"more"`       // older ones, which are left out
}

// recordingHead is the first line of a recording.
type recordingHead struct {
	Kind    string     `json:"kind"` // recording
	Cols    int        `json:"cols"`
	Rows    int        `json:"rows"`
	Title   string     `json:"title,omitempty"`
	Command string     `json:"command,omitempty"`
	Started *time.Time `json:"started,omitempty"`
}

// recordingEnd is the last line of a recording.
type recordingEnd struct {
	Kind  string `json:"kind"`            // over
	Cut   bool   `json:"cut"`             // the last line of the file is not whole, as while it is being written
	Error string `json:"error,omitempty"` // why what follows in the file is left out
}

// serveRecordings answers with the list of recordings, or with one. It is for the owner alone: see needOf.
func (h *Handler) serveRecordings(w http.ResponseWriter, r *http.Request, as rights, rest string) {
	if rest == "" {
		h.answered(w, r, as, r.URL.Path, h.listRecordings)
		return
	}
	h.serveRecording(w, r, as, strings.TrimPrefix(rest, "/"))
}

func (h *Handler) listRecordings(ctx context.Context) (any, error) {
	dir, err := h.opts.Recordings.Open(".")
	if err != nil {
		return nil, fmt.Errorf("listing recordings: %w", err)
	}
	names, err := dir.Readdirnames(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, fmt.Errorf("listing recordings: %w", err)
	}
	var list []recordingJSON
	for _, name := range names {
		if !isRecordingName(name) {
			continue
		}
		st, err := h.opts.Recordings.Lstat(name)
		if err != nil || !st.Mode().IsRegular() { // It may be gone.
			continue
		}
		list = append(list, recordingJSON{Name: name, Bytes: st.Size(), Modified: st.ModTime()})
	}
	slices.SortFunc(list, func(a, b recordingJSON) int {
		if c := b.Modified.Compare(a.Modified); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	out := recordingsJSON{Recordings: []recordingJSON{}, More: max(len(list)-mostRecordings, 0)}
	h.recordings.mu.Lock()
	before := h.recordings.known
	h.recordings.mu.Unlock()
	known := make(map[string]recordingJSON)
	for _, one := range list[:len(list)-out.More] {
		if last, ok := before[one.Name]; ok && last.Bytes == one.Bytes && last.Modified.Equal(one.Modified) {
			one = last
		} else if ctx.Err() == nil {
			one.LengthMS = h.lengthOf(one.Name)
		}
		if ctx.Err() == nil {
			known[one.Name] = one
		}
		out.Recordings = append(out.Recordings, one)
	}
	h.recordings.mu.Lock()
	h.recordings.known = known
	h.recordings.mu.Unlock()
	return out, nil
}

// lengthOf returns the length of a recording in ms; nil if it is not known.
func (h *Handler) lengthOf(name string) *int64 {
	f, size, err := openRecording(h.opts.Recordings, name)
	if err != nil {
		return nil
	}
	defer f.Close() // It was read only.
	if _, _, err := asciicast.Read(io.NewSectionReader(f, 0, size)); err != nil {
		return nil
	}
	length, err := asciicast.Length(f, size)
	if err != nil {
		return nil
	}
	ms := length.Milliseconds()
	return &ms
}

// isRecordingName reports whether a file of a directory may be a recording, by its name. JSON has no other names than those of UTF-8.
func isRecordingName(name string) bool {
	return strings.HasSuffix(name, recordingSuffix) && name == filepath.Base(name) && filepath.IsLocal(name) && utf8.ValidString(name)
}

// openRecording opens a recording by its name, which may be any text, and returns its size. It opens regular files of the directory alone, and no
// symbolic link. The error is errNoRecording if there is none.
func openRecording(dir *os.Root, name string) (f *os.File, size int64, err error) {
	if !isRecordingName(name) {
		return nil, 0, errNoRecording
	}
	named, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !named.Mode().IsRegular() {
		return nil, 0, errNoRecording
	}
	if err != nil {
		return nil, 0, fmt.Errorf("opening the recording: %w", err)
	}
	f, err = dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) // It may be a fifo by now, which is not waited for.
	if err != nil {
		return nil, 0, fmt.Errorf("opening the recording: %w", err)
	}
	opened, err := f.Stat()
	if err == nil && !os.SameFile(named, opened) {
		err = errors.New("opening the recording: another file has its name now: try again")
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, opened.Size(), nil
}

// serveRecording answers with a recording. It reads the file as fast as the browser takes what is sent, and keeps none of it.
func (h *Handler) serveRecording(w http.ResponseWriter, r *http.Request, as rights, name string) {
	f, size, err := openRecording(h.opts.Recordings, name)
	switch {
	case errors.Is(err, errNoRecording):
		refuse(w, http.StatusNotFound, err.Error())
		return
	case err != nil:
		refuse(w, http.StatusBadGateway, err.Error())
		return
	}
	defer f.Close() // It was read only.
	if size > mostRecording {
		refuse(w, http.StatusUnprocessableEntity, fmt.Sprintf("the recording has %d bytes, and the page plays at most %d: play it at a terminal, by asciinema", size, mostRecording))
		return
	}
	head, events, err := asciicast.Read(io.NewSectionReader(f, 0, size))
	if err != nil {
		refuse(w, http.StatusUnprocessableEntity, "it is no recording that can be played: "+err.Error())
		return
	}
	if err := h.sit(as); err != nil {
		refuse(w, statusOf(err), err.Error())
		return
	}
	defer h.rise(as)
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := lines{w: w, rc: http.NewResponseController(w)}
	defer context.AfterFunc(r.Context(), out.hurry)()
	out.value(toRecordingHead(head))
	end := recordingEnd{Kind: "over"}
	var at time.Duration
	for e, err := range events {
		if out.err != nil || r.Context().Err() != nil {
			return // Nobody is there to be answered.
		}
		if err != nil {
			end.Cut = errors.Is(err, io.ErrUnexpectedEOF)
			end.Error = err.Error()
			break
		}
		at = max(at, e.At) // No event is before the one that was written before it.
		if line := encodeEvent(at, e); line != nil {
			out.line(line)
		}
	}
	out.value(end)
	out.flush()
}

func toRecordingHead(head asciicast.Header) recordingHead {
	size := terminal.Size{Cols: int(head.Cols), Rows: int(head.Rows)}.Clamp()
	out := recordingHead{Kind: "recording", Cols: size.Cols, Rows: size.Rows, Title: cut(head.Title, mostBrief), Command: cut(head.Command, mostBrief)}
	if !head.Started.IsZero() {
		out.Started = &head.Started
	}
	return out
}

// encodeEvent returns the line of an event; nil for one that is left out.
func encodeEvent(at time.Duration, e asciicast.Event) []byte {
	data := e.Data
	switch e.Code {
	case asciicast.Output:
	case asciicast.Marker:
		data = cut(data, mostBrief)
	case asciicast.Resize:
		cols, rows, err := e.Size()
		if err != nil {
			return nil
		}
		size := terminal.Size{Cols: int(cols), Rows: int(rows)}.Clamp() // A page that made a larger one would need gigabytes.
		data = fmt.Sprintf("%dx%d", size.Cols, size.Rows)
	default: // What was typed, among others: passwords are.
		return nil
	}
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)                          // It is for terminals.
	_ = enc.Encode([]any{e.Code, at.Seconds(), data}) // Numbers and texts cannot fail.
	return bytes.TrimSuffix(line.Bytes(), []byte("\n"))
}
