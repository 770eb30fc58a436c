// Package asciicast writes and reads recordings of terminals, in version 2 of the
// format of asciinema: https://docs.asciinema.org/manual/asciicast/v2/
//
// A recording is lines of JSON, a header and then events:
//
//	{"version":2,"width":80,"height":24,"timestamp":1504467315}
//	[0.248848,"o","hello\r\n"]
//	[1.500000,"r","100x30"]
//	[2.143733,"m","a marker"]
package asciicast

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// version is the one that is written and read.
const version = 2

// What a terminal has of which nobody knows the size: so it is with most programs.
const (
	defaultCols = 80
	defaultRows = 24
)

// maxLine bounds a line of a recording, in bytes: whoever reads one needs no more
// memory than that.
const maxLine = 1 << 20

// Header says what was recorded. Every field may be left zero.
type Header struct {
	Cols, Rows     uint16            // the size at the start, in characters; 0: 80 and 24
	Started        time.Time         // kept to the second; zero: unknown
	Title, Command string            // empty: none
	Env            map[string]string // TERM and SHELL, say: it is read by whoever reads the recording, so no secrets
}

// Code tells the events apart.
type Code string

// The codes of version 2. Players leave out those that they do not know.
const (
	Output Code = "o" // the program has printed Data
	Input  Code = "i" // Data was typed; a [Writer] has no method for it, as passwords are typed
	Resize Code = "r" // Data is the new size: see [Event.Size]
	Marker Code = "m" // Data is the label of this place, or empty
)

// Event is a line of a recording.
type Event struct {
	At   time.Duration // since the start
	Code Code
	Data string
}

// Size returns what a [Resize] says.
func (e Event) Size() (cols, rows uint16, err error) {
	width, height, _ := strings.Cut(e.Data, "x")
	const base, bits = 10, 16
	c, err1 := strconv.ParseUint(width, base, bits)
	r, err2 := strconv.ParseUint(height, base, bits)
	if e.Code != Resize || err1 != nil || err2 != nil || c == 0 || r == 0 {
		return 0, 0, fmt.Errorf(`asciicast: event %q with %q is no size: it must be "r" with COLSxROWS, such as "80x24"`, e.Code, e.Data)
	}
	return uint16(c), uint16(r), nil
}

// header is the first line.
type header struct {
	Version   int               `json:"version"`
	Width     uint16            `json:"width"`
	Height    uint16            `json:"height"`
	Timestamp json.Number       `json:"timestamp,omitempty"` // Some write a fraction.
	Command   string            `json:"command,omitempty"`
	Title     string            `json:"title,omitempty"`
	Env       map[string]string `json:"env,omitempty"`
}
