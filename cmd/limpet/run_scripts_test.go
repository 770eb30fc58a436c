package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestFlagsEndWhereTheScriptsBegin(t *testing.T) {
	for line, want := range map[string]string{
		"run a --json b":             "run a --json b", // Without -f and -c they may be anywhere.
		"run -e -- ls -l":            "run -e -- ls -l",
		"run -f x.sh":                "run -f x.sh --",
		"run -f x.sh a --json":       "run -f x.sh -- a --json",
		"run -f x.sh -- a":           "run -f x.sh -- -- a",
		"run -fx.sh --json":          "run -fx.sh -- --json",
		"run --file x.sh --json":     "run --file x.sh -- --json",
		"run --file=x.sh --json":     "run --file=x.sh -- --json",
		"run -ef x.sh --json":        "run -ef x.sh -- --json",
		"run --timeout 5 -f x.sh -e": "run --timeout 5 -f x.sh -- -e",
		"run --timeout -f x.sh":      "run --timeout -f x.sh", // It is the time.
		"run -f":                     "run -f",
		"run -c x --json":            "run -c x --json",
		"run -c x --json _ --json":   "run -c x --json -- _ --json",
		"run -c x -c y z -c":         "run -c x -c y -- z -c",
		"run -c x -- a":              "run -c x -- -- a",
		"run -c x -":                 "run -c x -- -",
		"run a -c x b":               "run a -c x -- b",
		"run -c x -f y -c z":         "run -c x -f y -- -c z",
		"run -c -f y z":              "run -c -f -- y z",
		"run --nosuch -f x":          "run --nosuch -f x --",
		"repl -f x":                  "repl -f x",
		"jobs start -f x -c":         "jobs start -f x -c",
		"":                           "",
	} {
		assert.Equal(t, want, strings.Join(runArgs(rootCommand(strings.Fields(line)), strings.Fields(line)), " "), line)
	}
}
