package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// project is a directory that is a repository, with rules if there are some, for a person with a home of their own.
func project(t *testing.T, rules string) (home, dir string) {
	t.Helper()
	home, dir = testenv.TempDir(t), testenv.TempDir(t)
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, ".git"), 0o700))
	if rules != "" {
		require.NoError(t, os.Mkdir(filepath.Join(dir, ".limpet"), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".limpet", "approvals.json"), []byte(rules), 0o600))
	}
	return home, dir
}

// limpetIn runs limpet in a directory, and returns what it says on both streams, and its exit code.
func limpetIn(t *testing.T, dir string, args ...string) (string, int) {
	t.Helper()
	cmd := exec.Command("limpet", args...)
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput() // Its exit code is looked at.
	return string(out), cmd.ProcessState.ExitCode()
}

// The answer "always" is a rule that holds in the project, is listed, and can be removed.
func TestAlwaysIsARuleOfTheProject(t *testing.T) {
	home, dir := project(t, "")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o700))
	tm := onTerminal(t, home, "xterm", "run", "--approve", "ask", "--dir", filepath.Join(dir, "sub"), "touch made")
	tm.sees("a: always below " + dir + ", for 30 days:\r\n     touch ...")
	tm.types("a")
	tm.sees("yes, always")
	tm.exits(0)
	require.FileExists(t, filepath.Join(dir, "sub", "made"))

	out, code := limpetIn(t, dir, "run", "--approve", "deny", "touch other")
	assert.Zero(t, code, out)
	require.FileExists(t, filepath.Join(dir, "other"))
	out, code = limpetIn(t, home, "run", "--approve", "deny", "touch other")
	assert.Equal(t, codeCannot, code, "it is for the project alone: %s", out)
	out, code = limpetIn(t, dir, "approve", "explain", "--all", "touch other")
	assert.Zero(t, code)
	assert.Contains(t, out, "allow: a rule of yours allows it: touch ... (own.allow)")

	out, _ = limpetIn(t, home, "approvals", "rules")
	assert.Regexp(t, `(?m)^1 +allow +touch \.\.\. +`+dir+` +\d{4}-`, out)
	out, code = limpetIn(t, home, "approvals", "rules", "remove", "2")
	assert.Equal(t, codeUsage, code)
	assert.Contains(t, out, "wants a number from 1 to 1")
	_, code = limpetIn(t, home, "approvals", "rules", "remove", "1")
	assert.Zero(t, code)
	out, _ = limpetIn(t, home, "approvals", "rules")
	assert.Contains(t, out, "there are no rules but those of limpet itself")
	_, code = limpetIn(t, dir, "run", "--approve", "deny", "touch other")
	assert.Equal(t, codeCannot, code)
}

// A toolchain in a home stays usable: its rule is for that file.
func TestAlwaysIsForTheFileThatTheNameLeadsTo(t *testing.T) {
	testenv.Slow(t)
	home, dir := project(t, "")
	bin, ran := filepath.Join(home, "bin"), filepath.Join(home, "ran")
	require.NoError(t, os.Mkdir(bin, 0o700))
	plant := func(name string) {
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n: >"+ran+"\n"), 0o700))
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	_, code := limpetIn(t, dir, "run", "--approve", "deny", "sort /dev/null")
	require.Zero(t, code)
	plant("sort")
	out, code := limpetIn(t, dir, "run", "--approve", "deny", "sort /dev/null")
	assert.Equal(t, codeCannot, code)
	assert.Contains(t, out, "sort is "+bin+"/sort, ")
	out, code = limpetIn(t, dir, "approve", "explain", "sort /dev/null")
	assert.Equal(t, 3, code, out)
	assert.NoFileExists(t, ran)

	plant("tool")
	tm := onTerminal(t, home, "xterm", "run", "--approve", "ask", "--dir", dir, "tool x")
	tm.sees("tool x (" + bin + "/tool)")
	tm.types("a")
	tm.exits(0)
	require.NoError(t, os.Remove(ran))
	out, code = limpetIn(t, dir, "run", "--approve", "deny", "tool x")
	assert.Zero(t, code, out)
	require.FileExists(t, ran)
	require.NoError(t, os.Remove(ran))
	first := filepath.Join(home, "first")
	require.NoError(t, os.Mkdir(first, 0o700))
	t.Setenv("PATH", first+":"+os.Getenv("PATH"))
	require.NoError(t, os.Symlink(filepath.Join(bin, "sort"), filepath.Join(first, "tool")))
	_, code = limpetIn(t, dir, "run", "--approve", "deny", "tool x")
	assert.Equal(t, codeCannot, code, "another file")
	require.NoError(t, os.Remove(filepath.Join(first, "tool")))
	require.NoError(t, os.Symlink(filepath.Join(bin, "tool"), filepath.Join(first, "tool")))
	_, code = limpetIn(t, dir, "run", "--approve", "deny", "tool x")
	assert.Zero(t, code, "the same file by a link")
	require.NoError(t, os.WriteFile(filepath.Join(bin, "tool"), []byte("#!/bin/sh\n: >"+ran+"2\n"), 0o700))
	_, code = limpetIn(t, dir, "run", "--approve", "deny", "tool x")
	assert.Equal(t, codeCannot, code, "the same file with something else in it")
	assert.NoFileExists(t, ran+"2")
}

// While a person thinks, a name may come to lead elsewhere.
func TestAProgramThatComesWhileAPersonThinksIsAskedAboutAnew(t *testing.T) {
	home, dir := project(t, "")
	t.Setenv("PATH", home+":"+os.Getenv("PATH"))
	tm := onTerminal(t, home, "xterm", "run", "--approve", "ask", "--dir", dir, "touch made")
	tm.asksAbout("touch made")
	require.NoError(t, os.WriteFile(filepath.Join(home, "touch"), []byte("#!/bin/sh\n: >owned\n"), 0o700))
	tm.types("y")
	tm.sees("limpet: may this run in ")
	tm.sees("any other key: no")
	tm.types("n")
	tm.exits(codeCannot)
	require.NoFileExists(t, filepath.Join(dir, "owned"))
	require.NoFileExists(t, filepath.Join(dir, "made"))
}

func TestNothingIsAlwaysInAHomeOrOfWhatRunsItsArguments(t *testing.T) {
	testenv.Slow(t)
	home, dir := project(t, "")
	for script, at := range map[string]string{"touch a": home, "rm a": dir, "bash x": dir} {
		tm := onTerminal(t, home, "xterm", "run", "--approve", "ask", "--dir", at, script)
		tm.sees("  | " + script + "\r\n")
		tm.sees("any other key: no")
		assert.NotContains(t, tm.seen+tm.unread, "always", script)
		tm.types("a")
		tm.exits(codeCannot)
	}
	require.NoDirExists(t, filepath.Join(home, ".config"))
}

func TestAProjectCanAskAndDenyAndNotAllow(t *testing.T) {
	home, dir := project(t, `{"rules": [{"verdict": "deny", "words": ["git", "push"], "reason": "the pipeline pushes"}, {"verdict": "ask", "words": ["ls"]}]}`)
	out, code := limpetIn(t, dir, "run", "--approve", "ask", "git -C . push")
	assert.Equal(t, codeCannot, code)
	assert.Contains(t, out, "not approved: git -C . push: the pipeline pushes; no answer allows it")
	_, code = limpetIn(t, dir, "run", "--approve", "deny", "ls")
	assert.Equal(t, codeCannot, code)
	_, code = limpetIn(t, home, "run", "--approve", "deny", "ls")
	assert.Zero(t, code)

	require.NoError(t, os.WriteFile(filepath.Join(dir, ".limpet", "approvals.json"), []byte(`{"rules": [{"verdict": "allow", "words": ["rmx"]}]}`), 0o600))
	out, code = limpetIn(t, dir, "run", "--approve", "deny", "ls")
	assert.Equal(t, codeCannot, code)
	assert.Contains(t, out, "the rules of a project can ask and deny, and those of a user allow")
}

func TestRulesThatAreDamagedAskAboutAll(t *testing.T) {
	home, dir := project(t, "")
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".config", "limpet"), 0o700))
	for text, says := range map[string]string{
		"{": "is damaged", `{"rules": [{"verdict": "alow", "words": ["ls"]}]}`: `there is no verdict "alow"`, `{"rules": [{"words": ["ls"]}]}`: "", `{"rules": [{"verdict": "allow", "words": ["bash"]}]}`: "no rule allows it",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(home, ".config", "limpet", "approvals.json"), []byte(text), 0o600))
		out, code := limpetIn(t, dir, "run", "--approve", "deny", "ls")
		assert.Equal(t, codeCannot, code, text)
		assert.Contains(t, out, says, text)
		assert.Contains(t, strings.ToLower(out), "not approved", text)
	}
}
