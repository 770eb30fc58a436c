package main

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// duration is a flag's time. A number without a unit counts seconds, as in sleep(1) and
// timeout(1).
type duration time.Duration

var errDuration = errors.New("wants a time: seconds, as in 5 or 0.5, or a number with a unit, as in 500ms, 90s, 5m or 1h30m")

// durationVar defines a flag that takes a time. All flags that do are made by it.
func durationVar(flags *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	flags.Var((*duration)(p), name, usage)
}

func (d *duration) Set(text string) error {
	if number := strings.TrimLeft(text, "+-"); number != "" && strings.Trim(number, "0123456789.") == "" {
		text += "s"
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return errDuration
	}
	*d = duration(parsed)
	return nil
}

// String is what GetDuration parses. Where it is "0", help shows no default.
func (d *duration) String() string {
	if *d == 0 {
		return "0"
	}
	return time.Duration(*d).String()
}

func (d *duration) Type() string { return "duration" }
