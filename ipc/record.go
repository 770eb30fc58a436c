package ipc

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// Record is bash's report that a command is done.
//
// On disk it is "<ID><STATUS><OPTIONS><DIR><ID>", with each ID in two halves, "<HALF><HALF>". It is
// sealed by the ID at both ends: the record is overwritten in place, so whatever a reader
// finds that was not written whole, and for this command, does not parse. A DEBUG trap
// of the user's may have printed something in front of it. What set -x prints of the command
// that writes the record has the halves as words of their own, and is no record.
type Record struct {
	Status  int    // $?
	Options string // $SHELLOPTS: the names of the options of set -o that are on, with colons between them
	Dir     string // $PWD; may hold any byte but NUL
	NoDir   string // why bash could not go to the command's own directory, if so: nothing ran

	// Unread says that bash could not read the script: nothing ran.
	Unread bool

	// Readonly is the name of a variable of Call.Env or Call.Unset that bash cannot
	// change, if there is one: nothing ran.
	Readonly string
}

// Has reports whether an option of set -o is on.
func (r Record) Has(option string) bool { return HasOption(r.Options, option) }

// HasOption reports whether the option is among options, as $SHELLOPTS has them.
func HasOption(options, option string) bool {
	return strings.Contains(":"+options+":", ":"+option+":")
}

// recordMax is larger than any record: an ID twice, a status, flags and a
// path of PATH_MAX bytes.
const recordMax = 8 << 10

// ParseRecord finds the sealed record of the command id in what the status
// file holds. A false return means that there is none yet.
func ParseRecord(b []byte, id string) (Record, bool) {
	body, ok := unseal(b, id)
	if !ok {
		return Record{}, false
	}
	fields := strings.SplitN(body, "><", 3)
	if len(fields) != 3 {
		return Record{}, false
	}
	status, err := parseStatus(fields[0])
	if err != nil {
		return Record{}, false
	}
	return Record{Status: status, Options: fields[1], Dir: fields[2]}, true
}

// IndexRecord returns where the record of the command id begins, or -1.
func IndexRecord(b []byte, id string) int { return bytes.Index(b, append(seal(id), '<')) }

// seal is how the ID stands at both ends of a record.
func seal(id string) []byte { return []byte("<" + id[:len(id)/2] + "><" + id[len(id)/2:] + ">") }

// unseal returns what is between the seals of the command id. What an earlier, longer
// record left behind follows them.
func unseal(b []byte, id string) (body string, ok bool) {
	at := IndexRecord(b, id)
	if at < 0 {
		return "", false
	}
	seal := seal(id)
	b, _, ok = bytes.Cut(b[at+len(seal)+1:], append([]byte{'>'}, seal...))
	return string(b), ok
}

// parseInner finds the sealed inner record, of a status and of those of a pipeline.
func parseInner(b []byte, id string) (status int, pipeline []int, ok bool) {
	body, ok := unseal(b, id)
	if !ok {
		return 0, nil, false
	}
	for i, field := range strings.Split(body, "><") {
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
