package approve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/approval"
)

// A script is what its interpreter makes of it.
func TestAScriptIsTrustedNoMoreThanItsInterpreter(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	own := filepath.Join(dir, "own")
	require.NoError(t, os.WriteFile(own, []byte("#!/bin/sh\n"), 0o755))
	envs := filepath.Join(dir, "envs")
	require.NoError(t, os.WriteFile(envs, []byte("#!/usr/bin/env node\n"), 0o755))
	for line, want := range map[string]struct{ program, why string }{
		"#!/bin/sh":                        {},
		"#! /bin/sh -e":                    {},
		"":                                 {},
		"#!":                               {},
		"#!/usr/bin/env node":              {program: "node"},
		"#!/usr/bin/env -S node --flag":    {program: "node"},
		"#!/usr/bin/env -Snode":            {program: "node"},
		"#!/usr/bin/env -S A=b node":       {program: "node"},
		"#!/usr/bin/env":                   {},
		"#!/usr/bin/env -i node":           {why: `which env runs with "-i"`},
		"#!/usr/bin/env -S PATH=/tmp node": {why: `which env runs with "PATH=/tmp"`},
		"#!/usr/bin/env -S -C / node":      {why: `which env runs with "-C"`},
		"#!/usr/bin/env /usr/bin/python3":  {},
		"#!/usr/bin/env " + own:            {why: "which " + own + " runs, "},
		"#!/usr/bin/env bin/node":          {why: `which env runs with "bin/node"`},
		"#!/usr/bin/env -S ${NODE}":        {why: `which env runs with "${NODE}"`},
		"#!/usr/bin/env node\r":            {why: `which env runs with "node\r"`},
		"#!" + envs:                        {program: "node", why: "which " + envs + " runs, "},
		"#!" + own:                         {why: "which " + own + " runs, "},
		"#!sh":                             {why: "which sh runs, in the directory that it is run in"},
		"#!/usr/bin/" + strings.Repeat("a", 1<<10):   {},
		"#!/usr/bin/env " + strings.Repeat("a", 300): {program: strings.Repeat("a", firstLine-len("#!/usr/bin/env "))},
	} {
		f := approval.File{State: "1"}
		interpret(&f, append([]byte(line), "\nmore\n"...)[:min(len(line)+6, firstLine)], 0)
		assert.Equal(t, want.program, f.Program, line)
		if want.why == "" {
			assert.Empty(t, f.Why, line)
		}
		assert.Contains(t, f.Why, want.why, line)
	}
	f := approval.File{Why: "which this user can write", State: "1"}
	interpret(&f, []byte("#!"+own+"\n"), 0)
	assert.Equal(t, "which this user can write", f.Why)
	before := f.State
	require.NoError(t, os.WriteFile(own, []byte("#!/bin/bash\n"), 0o755))
	f.State = "1"
	interpret(&f, []byte("#!"+own+"\n"), 0)
	assert.NotEqual(t, before, f.State, "another interpreter")
	ring := filepath.Join(dir, "ring")
	require.NoError(t, os.WriteFile(ring, []byte("#!"+ring+"\n"), 0o755))
	assert.NotEmpty(t, File(ring).Why)
}

// Linux reads the first line of a script that its user cannot read.
func TestAFileThatCannotBeReadIsNotTrusted(t *testing.T) {
	f := approval.File{State: "1"}
	content(&f, unix.Stat_t{}, 0) // It has no path.
	assert.Equal(t, approval.File{Why: "which limpet cannot read"}, f)
	path := filepath.Join(t.TempDir(), "t")
	require.NoError(t, os.WriteFile(path, nil, 0o755))
	f = approval.File{Path: path, State: "1"}
	content(&f, unix.Stat_t{}, 0)
	assert.Equal(t, approval.File{Path: path, Why: "which limpet cannot read"}, f, "another file has its name")
}
