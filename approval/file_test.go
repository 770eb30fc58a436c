package approval_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/command"
)

// files are those of a machine; those in a home are not trusted. Where a file is a link it says so.
type files map[string]string

func (f files) at(path string) approval.File {
	real, is := f[path]
	switch {
	case !is:
		return approval.File{}
	case real == "":
		real = path
	}
	why := ""
	if len(path) > 6 && path[:6] == "/home/" {
		why = "which this user can write"
	}
	return approval.File{Path: real, Why: why, State: "1"}
}

// machine has a home with programs that are before those of the system in PATH, and some that are nowhere else.
func machine(home ...string) *approval.Options {
	f := files{"/usr/bin/go": ""}
	for _, name := range []string{"ls", "cat", "git", "env", "bash", "xargs", "find", "grep", "egrep", "gzip", "zcat", "tar", "timeout", "echo", "test", "sort", "nice", "watch", "sh"} {
		f["/usr/bin/"+name] = ""
	}
	for _, name := range home {
		f["/home/me/bin/"+name] = ""
	}
	f["/home/me/bin/link"] = "/usr/bin/ls"
	return &approval.Options{Home: "/home/me", Dir: "/src", Path: "/home/me/bin:/usr/bin", File: f.at, Exported: typical.Exported}
}

// The rules of limpet do not hold for a program that the agent can replace.
func TestARuleIsForAFileThatNobodyCanReplace(t *testing.T) {
	for script, home := range map[string]string{
		"ls": "ls", "ls -l | sort": "sort", "echo $(ls)": "ls", "true && ls": "ls", "for f in *; do cat -- \"$f\"; done": "cat", `\ls`: "ls", "l''s": "ls", "! ls": "ls", "cat <(ls)": "ls", "time ls": "ls",
		"env ls": "ls", "env cat a": "env", "timeout 5 ls": "ls", "nice cat a": "nice", "command ls": "ls", "bash -c 'ls'": "ls", "bash -c ls": "bash", "env -i ls": "ls", "ls | xargs cat": "cat", "ls | xargs": "xargs", "find . | xargs -0": "echo", "watch ls": "sh",
		"find . -exec cat {} +": "cat", "find . -name x": "find", "git --version": "git", "git remote": "git",
		// Programs with the names of builtins, where another program runs them.
		"env echo a": "echo", "ls | xargs echo": "echo", "find . -exec test -f {} ';'": "test", "timeout 5 echo a": "echo", "nice env echo a": "echo", "env command ls": "command", "sh -c 'help'": "help", "sh -c 'ls; dirs'": "dirs", "dash -c 'caller'": "caller", "sh -c 'time ls'": "time", "sh -c 'time -p cat a'": "time", "env bash -c ls": "bash",
		// Programs that others look for.
		"egrep x a": "grep", "/usr/bin/egrep x a": "grep", "zcat a": "gzip", "tar -tf a": "gzip", "fd -l x": "ls", "file -z a": "xz", "dpkg-query -W": "less", "git branch --show-current": "less", "file -bz a": "xz", "file -bZ a": "gzip",
	} {
		assert.Equal(t, approval.Allow, approval.Judge(script, machine()).Verdict, script)
		j := approval.Judge(script, machine(home))
		assert.Equal(t, approval.Ask, j.Verdict, script)
		reason, _ := approval.Question{Judgement: j}.Why()
		assert.Equal(t, home+" is /home/me/bin/"+home+", which this user can write", reason, script)
	}
	for script, home := range map[string]string{
		"echo a": "echo", "test -f a": "test", "help": "help", "dirs": "dirs", "time ls": "time", "bash -c 'time ls; dirs'": "dirs", "sh -c 'echo a; type ls'": "echo", "command cat a": "command", "cat a": "ls", "bash -c 'echo a'": "echo", "if true; then ls; fi": "true", "rg x": "ls", "file -b a": "xz", "git --no-pager --no-lazy-fetch -c core.fsmonitor=false ls-files": "less",
	} {
		assert.Equal(t, approval.Allow, approval.Judge(script, machine(home)).Verdict, "the builtin, or another program: %s", script)
	}
	assert.Equal(t, approval.Allow, approval.Judge("/usr/bin/ls", machine("ls")).Verdict)
	assert.Equal(t, approval.Deny, approval.Judge("rm -rf /", machine("rm")).Verdict, "whatever rm is")
	assert.Equal(t, approval.Deny, approval.Judge("env rm -rf /", machine("env")).Verdict)
	for path, want := range map[string]approval.Verdict{
		".:/usr/bin": approval.Ask, ":/usr/bin": approval.Ask, "~/bin:/usr/bin": approval.Ask, "bin:/usr/bin": approval.Ask, "/usr/bin:.": approval.Allow, "/nowhere:/usr/bin": approval.Allow, "/nowhere": approval.Allow, "": approval.Allow,
	} {
		opts := machine()
		opts.Path = path
		assert.Equal(t, want, approval.Judge("ls", opts).Verdict, "PATH=%s", path)
	}
}

// What a way around needs is not there where files are looked at.
func TestNoWayAroundIsAllowedByAFile(t *testing.T) {
	opts := machine()
	opts.File = func(path string) approval.File { return approval.File{Path: path} }
	for _, script := range scripts(t, "ways.txt") {
		assert.NotEqual(t, approval.Allow, approval.Judge(script, opts).Verdict, "%q", script)
	}
	opts.File = func(path string) approval.File { return approval.File{Path: path, Why: "which this user can write"} }
	for _, script := range scripts(t, "denied.txt") {
		assert.Equal(t, approval.Deny, approval.Judge(script, opts).Verdict, "%q", script)
	}
}

// A rule of a person's names the file, or is for one that nobody can replace.
func TestAnOwnRuleIsForItsFile(t *testing.T) {
	for _, row := range []struct {
		rule, script, home string
		want               approval.Verdict
	}{
		{`"words":["go","test"]`, "go test", "", approval.Allow},
		{`"words":["go","test"]`, "go test", "go", approval.Ask},
		{`"words":["go","test"],"file":"/home/me/bin/go"`, "go test", "go", approval.Allow},
		{`"words":["go","test"],"file":"/home/me/bin/go","file_state":"1"`, "go test", "go", approval.Allow},
		{`"words":["go","test"],"file":"/home/me/bin/go","file_state":"2"`, "go test", "go", approval.Ask},
		{`"words":["go","test"],"file":"/home/me/bin/go"`, "timeout 5 go test", "go", approval.Allow},
		{`"words":["go","test"],"file":"/home/me/bin/go"`, "go test; go vet", "go", approval.Ask},
		{`"words":["go","test"],"file":"/home/me/bin/go"`, "go test", "", approval.Ask},
		{`"words":["go","test"],"file":"/usr/bin/go"`, "go test", "", approval.Allow},
		{`"words":["go","test"],"file":"/usr/bin/go"`, "go test", "go", approval.Ask},
		{`"words":["ls","-l"],"file":"/home/me/bin/ls"`, "ls -l", "ls", approval.Allow},
		{`"words":["ls","-l"],"file":"/home/me/bin/ls"`, "ls -a", "ls", approval.Ask},
		{`"words":["ls","-l"],"file":"/home/me/bin/ls"`, "ls -l; ls", "ls", approval.Ask},
		{`"words":["ls"],"file":"/home/me/bin/ls"`, "rm -rf /; ls", "ls", approval.Deny},
		{`"words":["link"],"file":"/usr/bin/ls"`, "link", "", approval.Allow},
		{`"words":["link"],"file":"/home/me/bin/link"`, "link", "", approval.Ask},
		{`"words":["link"]`, "link", "", approval.Ask},
		{`"words":["rg"]`, "rg", "", approval.Allow},
		{`"words":["mytool"]`, "mytool", "", approval.Allow},
		{`"words":["mytool"],"file":"/home/me/bin/mytool"`, "mytool", "", approval.Ask},
		{`"words":["git","push","origin"],"operands":true,"file":"/home/me/bin/git"`, "git push origin a", "git", approval.Allow},
		{`"words":["git","push","origin"],"operands":true,"file":"/home/me/bin/git"`, "git push origin +a", "git", approval.Ask},
		{`"words":["git","branch"],"operands":true,"options":["--show-current"],"file":"/home/me/bin/git"`, "git branch --show-current; git remote", "git", approval.Ask},
	} {
		opts := machine(row.home)
		var o approval.Own
		require.NoError(t, json.Unmarshal([]byte(`{"verdict":"allow",`+row.rule+`}`), &o))
		require.NoError(t, o.Validate())
		opts.Own = []approval.Own{o}
		assert.Equal(t, row.want, approval.Judge(row.script, opts).Verdict, "%s with %s, of %s", row.script, row.rule, row.home)
		if opts.Path, opts.File = "", nil; o.File != "" {
			assert.NotEqual(t, approval.Allow, approval.Judge("go test; ls -l; link; mytool", opts).Verdict, "which files there are is not known")
		}
	}
	for _, broken := range []approval.Own{{Verdict: approval.Allow, Words: []string{"go"}, File: "bin/go"}, {Verdict: approval.Allow, Words: []string{"go"}, File: "/a/../go"}, {Verdict: approval.Deny, Words: []string{"go"}, File: "/usr/bin/go"}, {Verdict: approval.Allow, Words: []string{"go"}, FileState: "1"}} {
		assert.Error(t, broken.Validate())
	}
}

func TestAlwaysBindsToTheFile(t *testing.T) {
	nowhere := machine()
	nowhere.Path = ".:/usr/bin"
	for _, script := range []string{"ls", "cp a b", "go test"} {
		_, ok := approval.Question{Script: script, Dir: "/src", Judgement: approval.Judge(script, nowhere)}.Always("/src", soon)
		assert.False(t, ok, "it is not known which file it is: %s", script)
	}
	for script, want := range map[string]string{"go test ./a": "go test ... (/home/me/bin/go)", "ls -l": "ls -l (/home/me/bin/ls)", "cp a b": "cp a b", "env ls": "", "xargs": ""} {
		opts := machine("go", "ls", "env", "xargs")
		q := approval.Question{Script: script, Dir: "/src", Judgement: approval.Judge(script, opts)}
		rules, ok := q.Always("/src", soon)
		assert.Equal(t, want != "", ok, script)
		if ok {
			assert.Equal(t, want, rules[0].String(), script)
			if rules[0].File != "" {
				assert.Equal(t, "1", rules[0].FileState)
			}
			opts.Own = rules
			opts.Now = func() time.Time { return now }
			assert.Equal(t, approval.Allow, approval.Judge(script, opts).Verdict, script)
		}
	}
}

// Right before it runs, a name may lead elsewhere.
func TestAPassHoldsAsLongAsNamesLeadToTheSameFiles(t *testing.T) {
	opts := machine()
	there := opts.File
	planted := ""
	opts.File = func(path string) approval.File {
		if path == planted && path == "/usr/bin/ls" {
			return approval.File{Path: path, State: "2"}
		}
		if path == planted {
			return approval.File{Path: path, Why: "which this user can write"}
		}
		return there(path)
	}
	g := approval.NewGate((&person{answer: approval.Once}).ask, opts)
	for script, plant := range map[string]string{"ls": "/home/me/bin/ls", "rg x": "/home/me/bin/rg", "ls -l": "/usr/bin/ls", "ls | xargs echo": "/home/me/bin/echo", "touch a": "/home/me/bin/touch"} {
		planted = ""
		p, err := g.Pass(t.Context(), approval.Question{Script: script, Dir: "/src"})
		require.NoError(t, err)
		assert.True(t, p.Holds("/src"), script)
		planted = plant
		assert.False(t, p.Holds("/src"), script)
	}
}

// What the shell has decides where it looks.
func TestTheShellsOwnPathAndWhatItRemembersCount(t *testing.T) {
	state := func(change func(*command.LiveState)) *command.LiveState {
		s := newShell()
		s.Env, s.Variables[0].Value = []string{"PATH=/home/me/bin:/usr/bin", "HOME=/home/me"}, "/home/me/bin:/usr/bin"
		s.Hashed = make(map[string]string)
		change(s)
		return s
	}
	for _, row := range []struct {
		name, script string
		change       func(*command.LiveState)
		home         []string
		why          string
	}{
		{"as it was", "ls", func(*command.LiveState) {}, nil, ""},
		{"as it was, with a program of the home", "ls", func(*command.LiveState) {}, []string{"ls"}, "ls is /home/me/bin/ls, which this user can write"},
		{"another PATH", "ls", func(s *command.LiveState) { s.Variables[0].Value = "/usr/bin:/home/me/bin" }, []string{"ls"}, ""},
		{"a file that bash remembers", "ls", func(s *command.LiveState) { s.Hashed["ls"] = "/usr/bin/ls" }, []string{"ls"}, ""},
		{"one of the home", "ls", func(s *command.LiveState) { s.Hashed["ls"] = "/home/me/bin/ls" }, []string{"ls"}, "ls is /home/me/bin/ls, which this user can write"},
		{"one that is gone", "ls", func(s *command.LiveState) { s.Hashed["ls"] = "/home/me/bin/ls" }, nil, "ls is /home/me/bin/ls here: bash remembers that"},
		{"one of another name", "ls", func(s *command.LiveState) { s.Hashed["ls"] = "/usr/bin/cat" }, nil, "ls is /usr/bin/cat here: bash remembers that"},
		{"a relative one", "ls", func(s *command.LiveState) { s.Hashed["ls"] = "./ls" }, nil, "ls is ./ls here: bash remembers that"},
		{"what another shell finds is not what this one remembers", "bash -c ls", func(s *command.LiveState) { s.Hashed["ls"] = "/usr/bin/ls" }, []string{"ls"}, "ls is /home/me/bin/ls, which this user can write"},
		{"what env finds is not what bash remembers", "env ls", func(s *command.LiveState) { s.Hashed["ls"] = "/usr/bin/ls" }, []string{"ls"}, "ls is /home/me/bin/ls, which this user can write"},
	} {
		opts := machine(slices.Clone(row.home)...)
		opts.Live = state(row.change)
		j := approval.Judge(row.script, opts)
		if row.why == "" {
			assert.Equal(t, approval.Allow, j.Verdict, "%s: %v", row.name, j.Findings)
			continue
		}
		reason, _ := approval.Question{Judgement: j}.Why()
		assert.Equal(t, row.why, reason, row.name)
		assert.Equal(t, approval.Ask, j.Verdict, row.name)
	}
}

// A bash that env starts without a PATH has one of its own, which may end in the directory where it is.
func TestWithoutPATHProgramsAreLookedForElsewhere(t *testing.T) {
	for script, want := range map[string]approval.Verdict{
		"bash -c 'rg x'": approval.Allow, "env bash -c 'rg x'": approval.Allow, "env -u FOO bash -c 'rg x'": approval.Allow, "env -i ls": approval.Allow, "env -i bash -c ls": approval.Allow, "env -u PATH ls": approval.Allow,
		"env -i bash -c 'rg x'": approval.Ask, "env --ignore-environment bash -c 'rg x'": approval.Ask, "env -vi bash -c 'rg x'": approval.Ask,
		"env -u PATH bash -c 'rg x'": approval.Ask, "env -uPATH bash -c 'rg x'": approval.Ask, "env --unset=PATH bash -c 'rg x'": approval.Ask, "env -u FOO -u PATH bash -c 'rg x'": approval.Ask,
		`env -u "$X" bash -c 'rg x'`: approval.Ask, "env -i env bash -c 'rg x'": approval.Ask, "env -i rg x": approval.Ask, "env -i ls; rg x": approval.Allow,
	} {
		assert.Equal(t, want, approval.Judge(script, machine()).Verdict, script)
	}
}

// A person who says always about a program that another one looks for would name the other one's file, and the first could be replaced.
func TestNoRuleIsForAProgramThatLooksForOneWhichCanBeReplaced(t *testing.T) {
	for script, home := range map[string]string{"egrep x a": "grep", "zcat a": "gzip", "tar -tf a": "gzip", "gh pr view": "git"} {
		j := approval.Judge(script, machine(home))
		assert.Equal(t, approval.Ask, j.Verdict, script)
		for _, f := range j.Findings {
			assert.True(t, f.Verdict == approval.Allow || f.Words == nil, "%s: %v", script, f)
		}
	}
}

// What a first line has env look for is looked for, too: nobody can replace the script, and anybody its interpreter.
func TestTheInterpreterThatEnvFindsCounts(t *testing.T) {
	interpreted := func(opts *approval.Options, by map[string]string) *approval.Options {
		at := opts.File
		opts.File = func(path string) approval.File {
			f := at(path)
			f.Program = by[path]
			return f
		}
		return opts
	}
	ls := map[string]string{"/usr/bin/ls": "node"}
	for _, script := range []string{"ls", "/usr/bin/ls", "env ls", "ls | sort"} {
		j := approval.Judge(script, interpreted(machine("node"), ls))
		assert.Equal(t, approval.Ask, j.Verdict, script)
		reason, _ := approval.Question{Judgement: j}.Why()
		assert.Equal(t, "node is /home/me/bin/node, which this user can write", reason)
		_, always := approval.Question{Script: script, Dir: "/src", Judgement: j}.Always("/src", soon)
		assert.False(t, always, "a rule names the file of ls")
	}
	assert.Equal(t, approval.Allow, approval.Judge("ls", interpreted(machine(), ls)).Verdict, "it cannot run")
	assert.Equal(t, approval.Allow, approval.Judge("cat a", interpreted(machine("node"), ls)).Verdict)
	nested := map[string]string{"/usr/bin/ls": "cat", "/usr/bin/cat": "node"}
	assert.Equal(t, approval.Ask, approval.Judge("ls", interpreted(machine("node"), nested)).Verdict)
	ring := map[string]string{"/usr/bin/ls": "cat", "/usr/bin/cat": "ls"}
	assert.Equal(t, approval.Ask, approval.Judge("ls", interpreted(machine(), ring)).Verdict)

	// A rule for a file of the user's is for what env finds for it, too.
	tool := map[string]string{"/home/me/bin/tool": "node"}
	q := approval.Question{Script: "tool x", Dir: "/src", Judgement: approval.Judge("tool x", interpreted(machine("tool"), tool))}
	rules, always := q.Always("/src", time.Time{})
	require.True(t, always)
	opts := interpreted(machine("tool"), tool)
	opts.Own = rules
	assert.Equal(t, approval.Allow, approval.Judge("tool x", opts).Verdict)
	opts = interpreted(machine("tool", "node"), tool)
	opts.Own = rules
	assert.Equal(t, approval.Ask, approval.Judge("tool x", opts).Verdict, "a node was put into PATH")
	q.Judgement = approval.Judge("tool x", interpreted(machine("tool", "node"), tool))
	rules, always = q.Always("/src", time.Time{})
	require.True(t, always)
	opts.Own = rules
	assert.Equal(t, approval.Allow, approval.Judge("tool x", opts).Verdict)

	opts = machine("tool")
	at := opts.File
	opts.File = func(path string) approval.File {
		f := at(path)
		f.State = ""
		return f
	}
	_, always = approval.Question{Script: "tool x", Dir: "/src", Judgement: approval.Judge("tool x", opts)}.Always("/src", soon)
	assert.False(t, always, "it cannot be known when the file is another one")
}

// Bash remembers one file for a name, and env finds another: both count.
func TestOneNameMayLeadToTwoFiles(t *testing.T) {
	g := func(opts *approval.Options) *approval.Gate {
		return approval.NewGate((&person{answer: approval.Session}).ask, opts)
	}
	state, states := newShell(), map[string]string{"/opt/ls": "1", "/usr/bin/ls": "1"}
	state.Hashed = map[string]string{"ls": "/opt/ls"}
	opts := &approval.Options{Home: "/home/me", Exported: typical.Exported, Path: "/usr/bin", File: func(path string) approval.File {
		if states[path] == "" {
			return approval.File{}
		}
		return approval.File{Path: path, State: states[path]}
	}}
	for _, changed := range []string{"/opt/ls", "/usr/bin/ls"} {
		for _, script := range []string{"ls; env ls", "env ls; ls"} {
			gate := g(opts)
			gate.Changed()
			pass, err := gate.Pass(t.Context(), approval.Question{Script: script, Dir: "/", Look: func(context.Context) (*command.LiveState, error) { return state, nil }})
			require.NoError(t, err)
			states[changed] += "2"
			assert.False(t, pass.Holds("/"), "%s, and %s is another", script, changed)
		}
	}
}
