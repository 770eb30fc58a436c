package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"
)

// byteSize is a flag's number of bytes.
type byteSize int64

var errSize = errors.New("wants a number of bytes above zero, as in 65536, 64KiB or 2MiB")

var byteUnits = []struct {
	suffix string
	bytes  int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}}

func (s *byteSize) Set(text string) error {
	number, unit := text, int64(1)
	for _, u := range byteUnits {
		if rest, ok := strings.CutSuffix(text, u.suffix); ok {
			number, unit = rest, u.bytes
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	const most = 1 << 50 // Far from where sums of it would overflow.
	if err != nil || n < 1 || n > most/unit {
		return errSize
	}
	*s = byteSize(n * unit)
	return nil
}

func (s *byteSize) String() string {
	for _, u := range slices.Backward(byteUnits) {
		if n := int64(*s); n >= u.bytes && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(*s), 10)
}

func (s *byteSize) Type() string { return "bytes" }
