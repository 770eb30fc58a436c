package approval

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/command"
)

// change is a thing that the shell has and a new one has not, with the reason for a person.
type change struct{ id, reason string }

// live is what Options.Live means for scripts.
type live struct {
	whole   []change          // for every script
	names   map[string]change // for commands of that name
	aliases map[string]change // for scripts that have the word
	words   map[string]change // for scripts that have the name of the variable
	env     map[string]change // for programs that read the variable
	open    map[string]change // for redirections to that descriptor

	changed  bool              // PATH is not what it was
	path     []string          // the directories of PATH
	hashed   map[string]string // the files of programs that are not looked for
	exported map[string]bool
	file     func(path string) File
}

// calmOptions are options of set -o and shopt that do not change what a script means: at most which files a pattern finds, or when a script ends.
var calmOptions = fields(`braceexpand checkhash checkjobs checkwinsize cmdhist complete_fullquote direxpand dirspell dotglob emacs errexit errtrace execfail expand_aliases extglob extquote failglob
	force_fignore functrace globasciiranges globskipdots globstar gnu_errfmt hashall histappend histreedit histverify hostcomplete huponexit ignoreeof inherit_errexit interactive-comments
	interactive_comments lithist localvar_inherit localvar_unset login_shell mailwarn monitor no_empty_cmd_completion noclobber nocaseglob nocasematch noglob nolog notify nounset nullglob
	patsub_replacement physical pipefail progcomp progcomp_alias promptvars shift_verbose sourcepath varredir_close verbose vi xpg_echo xtrace cdspell cdable_vars autocd noexpand_translation`)

// neededOptions are on in a new shell, and scripts are read as if they were.
var neededOptions = []string{"braceexpand", "interactive-comments", "interactive_comments"}

// listers are builtins by which a shell tells what it has. A function with such a name may hide others.
var listers = fields("builtin command declare alias trap enable hash shopt set printf umask")

// plainBash are variables of bash's own with attributes, and those that it sets as it runs.
var plainBash = fields("BASHOPTS BASHPID BASH_VERSINFO EUID HISTCMD LINENO OPTIND PPID RANDOM SECONDS SHELLOPTS SRANDOM UID EPOCHSECONDS EPOCHREALTIME MAILCHECK")

// readingBash are variables that change how bash reads, expands or finds what is in a script.
var readingBash = []string{"IFS", "GLOBIGNORE", "GLOBSORT", "EXECIGNORE", "BASH_COMPAT", "BASH_XTRACEFD", "POSIXLY_CORRECT", "TEXTDOMAIN", "TEXTDOMAINDIR", "FUNCNEST", "HOME", "PS4"}

func fields(text string) map[string]bool {
	all := make(map[string]bool)
	for name := range strings.FieldsSeq(text) {
		all[name] = true
	}
	return all
}

// newLive finds what the shell has and a new one has not.
func newLive(s *command.LiveState, opts *Options) *live {
	l := &live{
		names: make(map[string]change), aliases: make(map[string]change), words: make(map[string]change), env: make(map[string]change),
		open: make(map[string]change), hashed: s.Hashed, exported: make(map[string]bool), file: opts.File,
	}
	l.options(s)
	l.commands(s)
	for _, n := range s.Descriptors {
		l.open[fmt.Sprint(n)] = change{fmt.Sprint("descriptor ", n), fmt.Sprintf("descriptor %d is open in the shell, and leads to something that is not known", n)}
	}
	for _, file := range s.Libraries {
		if dir := path.Dir(file); !slices.ContainsFunc(codeDirs, func(of string) bool { return dir == of || strings.HasPrefix(dir, of+"/") }) || strings.Contains(file, "/lib/bash/") {
			l.always("library "+file, "the shell has loaded "+file+", which may be new builtins")
		}
	}
	began := make(map[string]string)
	env := s.Env
	if opts.Confined.Env != nil {
		env = opts.Confined.Env(env)
	}
	for _, entry := range env {
		if name, value, ok := strings.Cut(entry, "="); ok {
			began[name] = value
		} else {
			delete(began, name)
		}
	}
	l.variables(s, began)
	return l
}

// codeDirs have the programs and libraries of the system.
var codeDirs = []string{"/bin", "/sbin", "/lib", "/lib64", "/lib32", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib64", "/usr/lib32", "/usr/libexec", "/usr/local/bin", "/usr/local/lib", "/nix/store", "/gnu/store"}

func (l *live) always(id, reason string) { l.whole = append(l.whole, change{id, reason}) }

// commands is for functions, aliases, builtins and traps.
func (l *live) commands(s *command.LiveState) {
	for _, name := range s.Functions {
		l.names[name] = change{"function " + name, name + " is a function here"}
		if listers[name] {
			l.always("function "+name, name+" is a function here, which may hide others")
		}
	}
	for _, name := range s.Disabled {
		l.names[name] = change{"builtin " + name, "the builtin " + name + " is disabled here, so that a program of that name runs"}
	}
	for _, name := range s.Builtins {
		if !builtins[name] {
			l.names[name] = change{"builtin " + name, name + " is a builtin here that was loaded"}
		}
	}
	for _, name := range s.Traps {
		l.always("trap "+name, "a trap for "+name+" runs commands beside those of the script")
	}
	if slices.Contains(s.Options, "expand_aliases") {
		for _, name := range s.Aliases {
			l.aliases[name] = change{"alias " + name, name + " is an alias here"}
		}
	}
}

func (l *live) options(s *command.LiveState) {
	for _, name := range s.Options {
		if !calmOptions[name] {
			l.always("option "+name, "the option "+name+" of the shell is on, which changes how scripts are read")
		}
	}
	for _, name := range neededOptions {
		if !slices.Contains(s.Options, name) {
			l.always("option "+name, "the option "+name+" of the shell is off, which changes how scripts are read")
		}
	}
}

// variables is for those that are not as they were when the shell began.
func (l *live) variables(s *command.LiveState, began map[string]string) {
	known := make(map[string]command.LiveVariable)
	for _, v := range s.Variables {
		known[v.Name] = v
		was, had := began[v.Name]
		same := had && was == v.Value
		exported := strings.Contains(v.Attributes, "x")
		if exported {
			l.exported[v.Name] = true
		}
		if exported && !same && !calmVariable(v.Name, v.Value) {
			l.env[v.Name] = change{"variable " + v.Name, v.Name + " was exported here, or changed, and the program may read it"}
		}
		if plainBash[v.Name] {
			if v.Value != "" && strings.Trim(v.Value, "0123456789.") != "" && numbers[v.Name] {
				l.words[v.Name] = change{"variable " + v.Name, v.Name + " is no number here"}
			}
		} else if strings.ContainsAny(v.Attributes, "nilucr") {
			l.words[v.Name] = change{"variable " + v.Name, v.Name + " has attributes here (declare -" + v.Attributes + "), by which an assignment does something else"}
		}
	}
	for name := range numbers {
		if _, is := known[name]; !is {
			l.words[name] = change{"variable " + name, name + " was unset here, and is no number any more"}
		}
	}
	for _, name := range readingBash {
		v, set := known[name]
		usual := began[name]
		switch name {
		case "IFS":
			usual = " \t\n"
		case "PS4":
			set = set && strings.ContainsAny(v.Value, "$`\\")
		case "HOME":
			set = true
		}
		if set && v.Value != usual {
			l.always("variable "+name, "the variable "+name+" of the shell was changed, which changes how scripts are read")
		}
	}
	for _, name := range []string{"PWD", "OLDPWD"} {
		if v := known[name]; v.Value != "" && !strings.HasPrefix(v.Value, "/") {
			l.words[name] = change{"variable " + name, name + " is no directory here"}
		}
	}
	for _, name := range []string{"XDG_STATE_HOME", "XDG_CONFIG_HOME"} {
		if known[name].Value != began[name] {
			l.words[name] = change{"variable " + name, name + " was changed here"}
		}
	}
	if known["CDPATH"].Value != "" || slices.Contains(s.Options, "cdable_vars") {
		for _, name := range []string{"cd", "pushd"} {
			l.names[name] = change{"variable CDPATH", "CDPATH, or the option cdable_vars, has " + name + " go elsewhere"}
		}
	}
	l.path, l.changed = strings.Split(known["PATH"].Value, ":"), known["PATH"].Value != began["PATH"]
}

// see takes note of what the shell has.
func (s *session) see(l *live) {
	s.live, s.path, s.pathless = l, l.path, !l.exported["PATH"] // Programs have PATH only if it is exported.
	opts := *s.opts
	exported := opts.Exported
	opts.Exported = func(name string) bool { return l.exported[name] || exported == nil || exported(name) }
	if exported == nil {
		opts.Exported = nil // Any may be.
	}
	s.opts = &opts
	for _, c := range l.whole {
		s.walker(nil, place{}).changed(c, 0, len(s.text))
	}
}

// live adds what is there for a text that bash reads. A text within another is read again: an alias or a name may be put together there.
func (w *walker) live(text string, from, to int) {
	l := w.s.live
	if l == nil || len(l.aliases)+len(l.words) == 0 {
		return
	}
	said := make(map[string]bool)
	say := func(c change) {
		if !said[c.id] {
			said[c.id] = true
			w.changed(c, from, to)
		}
	}
	text = strings.ReplaceAll(text, "\\\n", "")
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\n|&;()<>\"'`$\\/", r) }) {
		if c, is := l.aliases[word]; is {
			say(c)
		}
	}
	for word := range strings.FieldsFuncSeq(text, notWord) {
		if c, is := l.words[word]; is {
			say(c)
		}
	}
}

// notWord reports whether a letter is in no variable's name.
func notWord(r rune) bool {
	return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
}

// all are the changes that there are.
func (l *live) all() []change {
	all := slices.Clone(l.whole)
	for _, of := range []map[string]change{l.names, l.aliases, l.words, l.env, l.open} {
		all = slices.AppendSeq(all, maps.Values(of))
	}
	return all
}

// changed adds a finding about a change of the shell.
func (w *walker) changed(c change, from, to int) {
	before := len(w.s.findings)
	w.addAt(KindState, from, to, Ask, ruleState, c.reason)
	if len(w.s.findings) > before {
		w.s.findings[before].change = c.id
	}
}

// environment adds what a program may go by that is allowed by its words: variables that were exported. Findings are those of the command from
// an index on.
func (c *call) environment(from int) {
	l := c.w.s.live
	if l == nil || builtins[c.name] || slices.ContainsFunc(c.w.s.findings[from:], func(f Finding) bool { return f.Verdict != Allow }) {
		return
	}
	for _, variable := range sortedKeys(l.env) {
		if reads(c.name, variable) {
			c.w.changed(l.env[variable], c.from, c.to)
			return
		}
	}
}

// program returns what is changed about a command by its name, if anything is.
func (w *walker) program(text string) (change, bool) {
	l := w.s.live
	if l == nil {
		return change{}, false
	}
	if c, is := l.names[text]; is {
		return c, true
	}
	if w.isBuiltin(text) || strings.Contains(text, "/") { // A name with a slash is looked for nowhere (bash(1), Command Execution).
		return change{}, false
	}
	if file, is := l.hashed[text]; is && !w.outside && (base(file) != text || !l.there(file)) {
		return change{"hash " + text, text + " is " + file + " here: bash remembers that"}, true
	}
	return w.missing(l, text)
}

// there reports whether bash can run a file that it remembers. If nothing is known of files, only those in directories of the system count.
func (l *live) there(file string) bool {
	if l.file == nil || !path.IsAbs(file) {
		return slices.Contains(trustedDirs, path.Dir(file))
	}
	return l.file(file).Path != ""
}

// missing returns what is changed about a program that cannot be looked for, or is not in PATH.
func (w *walker) missing(l *live, text string) (change, bool) {
	_, handled := l.names["command_not_found_handle"]
	switch {
	case !l.changed && !handled:
		return change{}, false
	case l.file == nil:
		return change{"variable PATH", "PATH was changed here, or what happens when it has no program: which " + text + " it is cannot be told"}, true
	case !handled:
		return change{}, false
	}
	found := slices.ContainsFunc(l.path, func(dir string) bool { return !path.IsAbs(dir) || l.file(within(dir, text)).Path != "" })
	return change{"function command_not_found_handle", "there is no program " + text + ": command_not_found_handle is a function here"}, !found
}
