package runes

import "bytes"

// FirstLines are the first lines of b, at most so many.
func FirstLines(b []byte, most int) []byte {
	end := 0
	for range most {
		i := bytes.IndexByte(b[end:], '\n')
		if i < 0 {
			return b
		}
		end += i + 1
	}
	return b[:end]
}

// LastLines are the last lines of b, at most so many. What stands behind the last newline
// is a line, if it is not empty.
func LastLines(b []byte, most int) []byte {
	from := len(bytes.TrimSuffix(b, []byte("\n")))
	for range most {
		if from = bytes.LastIndexByte(b[:from], '\n'); from < 0 {
			return b
		}
	}
	return b[from+1:]
}
