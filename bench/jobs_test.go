package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

// quickBench is a bench that has its registries below the test's directory.
func quickBench(t *testing.T) *bench {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("GORACE", "atexit_sleep_ms=0") // Else a supervisor of a race detector sleeps for a second when it exits.
	b, err := newBench(testenv.Context(t), true, ".")
	require.NoError(t, err)
	t.Cleanup(b.close)
	return b
}

func TestLastLines(t *testing.T) {
	for text, want := range map[string][]string{
		"":           {""},
		"a\n":        {"a"},
		"a\nb":       {"a", "b"},
		"a\nb\nc\n":  {"b", "c"},
		"a\n\nb\n":   {"", "b"},
		"long\nx\ny": {"x", "y"},
	} {
		assert.Equal(t, want, lastLines([]byte(text), 2), "%q", text)
	}
}

func TestBothSidesOfAPollTellALineOnce(t *testing.T) {
	b := quickBench(t)
	const script = "echo ready; exec cat"
	try := func(p pollable) {
		require.NoError(t, b.upTo(p, "ready\n"))
		for _, line := range []string{"", "one\n", "", "two\n"} {
			_, err := p.timed(line)(b.ctx)
			require.NoError(t, err, "%s: %q", p.name, line)
		}
		before := p.printed()
		require.NoError(t, p.give("x\n"))
		testenv.Await(t, "the line", func() bool { return p.printed() > before })
		_, err := p.timed("")(b.ctx)
		require.Error(t, err, "%s: a line that nobody expects", p.name)
	}
	var buf buffered
	var err error
	buf.process, err = b.startProcess(script, &buf)
	require.NoError(t, err)
	defer buf.close()
	try(buf.pollable())
	require.NoError(t, b.withJobs(0, func(r *jobs.Registry) error {
		p, err := b.pollableJob(r, script)
		require.NoError(t, err)
		try(p)
		return nil
	}))
}

func TestAPrinterEndsWithItsInput(t *testing.T) {
	b := quickBench(t)
	file := filepath.Join(t.TempDir(), "a 'file'")
	require.NoError(t, os.WriteFile(file, []byte("text\n"), 0o600))
	var out bytes.Buffer
	p, err := b.startProcess(printer(file), &out)
	require.NoError(t, err)
	_, err = io.WriteString(p.stdin, "\n")
	require.NoError(t, err)
	p.close()
	assert.NotEmpty(t, out.String())
	assert.Empty(t, strings.ReplaceAll(out.String(), "text\n", ""), "whole files, however many there was time for")
}

func TestNothingIsLeftOfTheJobsOfABench(t *testing.T) {
	b := quickBench(t)
	var dir string
	var left []string
	failed := errors.New("a workload fails")
	err := b.withJobs(0, func(r *jobs.Registry) error {
		dir = r.Dir()
		supervisors, bashes, err := b.startJobs(r, 3, jobs.Spec{Command: "read", Stdin: true})
		require.NoError(t, err)
		left = append(pids(supervisors), bashes...)
		return failed
	})
	require.ErrorIs(t, err, failed)
	for _, pid := range left {
		number, err := strconv.Atoi(pid)
		require.NoError(t, err)
		testenv.Await(t, "the end of "+pid, func() bool { return syscall.Kill(number, 0) != nil })
	}
	assert.NoDirExists(t, filepath.Dir(dir))
}

func TestCPU(t *testing.T) {
	before := cpu{time.Second, time.Second, 1}
	later := cpu{2 * time.Second, 4 * time.Second, 1}
	assert.Equal(t, "50.0% of a processor for the program, 150% for the supervisors", before.until(later, 2*time.Second))
	assert.Equal(t, "50.0% of a processor for the program", cpu{}.until(cpu{program: time.Second}, 2*time.Second))
}

func TestWorkloadsHaveNamesOfTheirOwn(t *testing.T) {
	seen := make(map[string]bool)
	for _, name := range names() {
		assert.False(t, seen[name] || strings.Contains(name, ","), name)
		seen[name] = true
	}
}
