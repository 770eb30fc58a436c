package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// stage is a stretch of a programmer's hour in one directory, with some state.
// The persistent shell is told dir and given once, as a command that counts; a
// one-shot shell is told them again with each command.
type stage struct {
	dir      string // below the clone
	given    string // variables and functions, if the commands want any
	commands []string
}

// programmersHour is some fifty commands on this repository. They leave it as
// they found it, and print the same in any clone of it.
var programmersHour = []stage{
	{commands: []string{
		`git status --short`,
		`git log --oneline -20`,
		`git log --stat -3 --format=%s`,
		`git diff HEAD --stat`,
		`git branch -a | wc -l`,
		`ls`,
		`git ls-files | wc -l`,
		`find . -name '*.go' -not -path './.git/*' | sort`,
		`wc -l */*.go | sort -n | tail -5`,
		`cat go.mod`,
		`head -30 shell/shell.go`,
	}},
	{given: `what=Request; pkg=./command`, commands: []string{
		`grep -rn "type $what" --include=*.go . | sort`,
		`grep -rl "$what" --include=*.go . | sort | head`,
		`git grep -n "$what" -- '*.go' | wc -l`,
		`sed -n 1,40p command/request.go`,
		`git blame --line-porcelain command/request.go | grep -c '^author '`,
		`git log --oneline -- command | wc -l`,
		`go list $pkg`,
		`go vet $pkg`,
		`go build ./...`,
		`go test -count=1 $pkg`,
	}},
	{dir: "ipc", commands: []string{
		`ls *.go | wc -l`,
		`grep -n '^func ' *.go | wc -l`,
		`awk '/^func /{n++} END {print n}' *.go`,
		`sed -n '/^type Record/,/^}/p' record.go`,
		`git log -1 --format=%h -- .`,
		`git diff HEAD -- . | wc -c`,
		`gofmt -l .`,
		`cat prelude.bash | head -20`,
		`test -f record.go && echo there`,
	}},
	{dir: "shell", given: `funcs() { grep -h '^func ' "$@" | wc -l; }; longest() { awk '{ if (length > n) n = length } END { print n }' "$@"; }`, commands: []string{
		`funcs *.go`,
		`longest *.go`,
		`for f in *.go; do echo "$f $(wc -l <"$f")"; done | sort -k2 -n | tail -3`,
		`cp run.go run.go.bak && sed -i 's/started/begun/g' run.go && git diff --stat .`,
		`git diff -U0 . | grep -c '^+'`,
		`diff run.go run.go.bak | wc -l`,
		`mv run.go.bak run.go && git status --short .`,
		`go vet .`,
		`go doc . Options | head -20`,
	}},
	{given: `export LC_ALL=C; words() { tr -cs a-z '\n' | sort | uniq -c | sort -rn -k1,1 -k2 | head -"$1"; }`, commands: []string{
		`cat */*.go | words 5`,
		`cut -d' ' -f1 go.sum | sort -u | wc -l`,
		`python3 -c 'import json, sys; print(json.dumps({"a": 1}))'`,
		`echo "$((6 * 7))"`,
		`git rev-parse HEAD`,
		`git show --stat --format=%s HEAD`,
		`git stash list`,
		`du -a internal | wc -l`,
		`tar cf - command | wc -c`,
		`go build ./... && echo built`,
		`git status --short`,
	}},
}

// tools are what may be absent from a machine.
var tools = []string{"git", "go", "gofmt", "python3", "awk", "sed", "grep", "find", "tar", "diff", "tr", "cut", "du"}

// program finds what a script runs: the first word of each command in it.
var program = regexp.MustCompile(`(?:^|[|;&(]) *([a-z0-9]+)`)

// without returns the stages without the commands that need an absent tool, and
// those commands. What tools are absent is for the caller to say.
func without(stages []stage, absent func(tool string) bool) (kept []stage, out []string) {
	for _, s := range stages {
		commands := s.commands
		s.commands = nil
		for _, c := range commands {
			missing := false
			for _, found := range program.FindAllStringSubmatch(c, -1) {
				missing = missing || absent(found[1])
			}
			if missing {
				out = append(out, c)
			} else {
				s.commands = append(s.commands, c)
			}
		}
		kept = append(kept, s)
	}
	return kept, out
}

func absent(tool string) bool {
	if !slices.Contains(tools, tool) {
		return false
	}
	_, err := exec.LookPath(tool)
	return err != nil
}

// durations differ from run to run, and are not part of what must be equal.
var durations = regexp.MustCompile(`[0-9]+\.[0-9]+s`)

// plain is output without what may differ between two clones.
func plain(stdout []byte, clone string) string {
	text := strings.ReplaceAll(string(stdout), clone, "CLONE")
	return durations.ReplaceAllString(text, "SECONDS")
}
