package ipc

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Record is bash's report that a command is done.
//
// On disk it is one line, "ID STATUS FLAGS DIR ID\n". It is sealed by the ID
// at both ends: the record is overwritten in place, so whatever a reader finds
// that was not written whole, and for this command, does not parse. A DEBUG trap
// of the user's may have printed something in front of it.
type Record struct {
	Status int    // $?
	Flags  string // $-
	Dir    string // $PWD; may hold any byte but NUL
	NoDir  string // why bash could not go to the command's own directory, if so: nothing ran
}

// recordMax is larger than any record: an ID twice, a status, flags and a
// path of PATH_MAX bytes.
const recordMax = 8 << 10

// idBytes of randomness make an ID that no command can guess.
const idBytes = 12

// NewID returns an unguessable name for one command.
func NewID() string {
	var b [idBytes]byte
	_, _ = rand.Read(b[:]) // Never fails: crypto/rand aborts the program instead.
	return hex.EncodeToString(b[:])
}

// ParseRecord finds the sealed record of the command id in what the status
// file holds. A false return means that there is none yet.
func ParseRecord(b []byte, id string) (Record, bool) {
	_, b, ok := bytes.Cut(b, []byte(id+" "))
	if !ok {
		return Record{}, false
	}
	// What an earlier, longer record left behind follows the seal.
	body, _, ok := bytes.Cut(b, []byte(" "+id+"\n"))
	if !ok {
		return Record{}, false
	}
	fields := strings.SplitN(string(body), " ", 3)
	if len(fields) != 3 {
		return Record{}, false
	}
	status, err := parseStatus(fields[0])
	if err != nil {
		return Record{}, false
	}
	return Record{Status: status, Flags: fields[1], Dir: fields[2]}, true
}

// parseInner finds the sealed inner record "ID STATUS PIPESTATUS... ID\n".
func parseInner(b []byte, id string) (status int, pipeline []int, ok bool) {
	b, ok = bytes.CutPrefix(b, []byte(id+" "))
	if !ok {
		return 0, nil, false
	}
	body, _, ok := bytes.Cut(b, []byte(" "+id+"\n"))
	if !ok {
		return 0, nil, false
	}
	for i, field := range strings.Fields(string(body)) {
		n, err := parseStatus(field)
		if err != nil {
			return 0, nil, false
		}
		if i == 0 {
			status = n
			continue
		}
		pipeline = append(pipeline, n)
	}
	return status, pipeline, len(pipeline) > 0
}

func parseStatus(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 255 || len(s) > 3 {
		return 0, fmt.Errorf("ipc: no exit status: %.20q", s)
	}
	return n, nil
}
