package approval

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call is a command whose words are known as far as they can be.
type call struct {
	w        *walker
	name     string // of the program, without its directory
	args     []value
	from, to int
	extra    bool     // a wrapper passes on data as more words
	known    []string // all of its words; nil if that is not so
	git      gitUse   // it is allowed if git is set up so
	file     found    // the path of the program's file, symbolic links resolved; empty if the file is not known, or there is none
	setUID   bool     // the program's file has the set-user-ID bit, and is root's
	depth    int      // of the interpreter that is looked for
	beside   bool     // distrust is about a program that the command's looks for by itself
	distrust string   // why no rule by name allows it; empty: the file is trusted, or nothing is known of it
}

// call walks a simple command.
func (w *walker) call(cmd *syntax.CallExpr) {
	reads := len(cmd.Args) > 0 && cmd.Args[0].Lit() == "read"
	for _, a := range cmd.Assigns {
		if reads && a.Name != nil && a.Name.Value == "IFS" && a.Index == nil && a.Array == nil {
			w.word(a.Value) // It is how read parts its line, and nothing else.
			continue
		}
		if stays := len(cmd.Args) == 0; stays {
			w.assign(a, stays)
		} else {
			w.apart(func() { w.assign(a, stays) }) // A program's are expanded in another process.
		}
	}
	var values []value
	printed := len(w.s.printed)
	w.handing(len(cmd.Args) > 0 && takesHanded(cmd.Args[0].Lit()), func() { values = w.words(cmd.Args) })
	if slices.ContainsFunc(values, func(v value) bool { return slices.Contains(movers, base(v.text)) }) {
		for _, v := range w.s.printed[printed:] {
			w.enter(v, false)
		}
	}
	if !w.handed { // Else it is in a substitution, whose command may change to them.
		w.s.printed = w.s.printed[:printed]
	}
	if len(values) > 0 {
		from, to := w.node(cmd)
		if len(cmd.Assigns) > 0 {
			from, _ = w.node(cmd.Args[0])
		}
		w.run(values, from, to, false)
	}
}

// movers are programs that change to a directory which their words name.
var movers = []string{"cd", "pushd", "git", "env"}

// trustedDirs have programs that are what their names say. Only root writes there.
var trustedDirs = []string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"}

// literalDir is the directory of a path as it is written: behind a symbolic link, ".." is not what it looks like.
func literalDir(p string) string { return p[:max(strings.LastIndexByte(p, '/'), 0)] }

// within is a path in a directory of PATH, as bash makes it.
func within(dir, name string) string { return strings.TrimSuffix(dir, "/") + "/" + name }

// base is path.Base that leaves an empty text as it is.
func base(p string) string {
	if p == "" {
		return ""
	}
	return path.Base(p)
}

// run judges a command by its words. It is also for the commands of wrappers.
func (w *walker) run(words []value, from, to int, extra bool) {
	name := words[0]
	if !name.known || name.many || name.text == "" {
		w.floor(words, from, to)
		w.addAt(KindCommand, from, to, Ask, ruleUnknown, "which program it runs cannot be told")
		c := &call{w: w, from: from, to: to}
		c.files(words[1:], false) // That alone counts in a sandbox, here and below.
		return
	}
	c := &call{w: w, name: base(name.text), args: words[1:], from: from, to: to, extra: extra, known: known(words, extra && !w.plain)}
	w.s.refed = w.s.refed || c.name == "exec"
	c.move()
	if w.floor(words, from, to) {
		return
	}
	if reason, rule := c.denied(); rule != "" {
		w.addAt(KindCommand, from, to, Deny, rule, reason)
		return
	}
	if own, is := w.s.own(Deny, patterns(words)); is {
		c.add(Deny, own.Name(), own.why())
		return
	}
	if own, is := w.s.own(Ask, patterns(words)); is {
		c.add(Ask, own.Name(), own.why())
	}
	if changed, is := w.program(name.text); is {
		w.changed(changed, from, to)
		c.files(c.args, false)
		c.wrapped(true)
		return
	}
	if name.home || strings.Contains(name.text, "/") && !slices.Contains(trustedDirs, literalDir(name.text)) {
		w.addAt(KindCommand, from, to, Ask, ruleUnknown, "it runs a file by its path, which may be any program")
		c.files(c.args, false)
		c.wrapped(true)
		return
	}
	c.locate(name.text)
	before := len(w.s.findings)
	if !c.wrapped(false) {
		c.judge()
	}
	c.environment(before)
}

// builtins are commands that bash has itself.
var builtins = func() map[string]bool {
	all := make(map[string]bool)
	for _, name := range strings.Fields(`. : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown
		echo enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf pushd pwd read
		readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask unalias unset wait`) {
		all[name] = true
	}
	return all
}()

// posixBuiltins are those of a sh that has no more than POSIX, local and type: dash, for one. There is no program for most of them.
var posixBuiltins = func() map[string]bool {
	all := make(map[string]bool)
	for _, name := range strings.Fields(`. : [ alias bg break cd command continue echo eval exec exit export false fc fg getopts hash jobs kill local printf pwd read readonly return
		set shift test times trap true type ulimit umask unalias unset wait`) {
		all[name] = true
	}
	return all
}()

// isBuiltin reports whether the shell that reads the text has a builtin of that name, and the command is not run by a program.
func (w *walker) isBuiltin(name string) bool {
	switch {
	case w.outside:
		return false
	case w.posix:
		return posixBuiltins[name]
	}
	return builtins[name]
}

// namesOnly are programs that print nothing of what is in the files that they name. Of wc, that is so but for an option that names a list.
var namesOnly = []string{"echo", "printf", "basename", "dirname", "test", "[", "ls", "cd", "stat", "wc", "readlink", "realpath", "which", "type", ":", "true"}

// takesHanded reports whether names that a substitution hands to a program matter: it prints what is in files, as wc may of a list, or
// it changes to a directory, in which relative paths are others.
func takesHanded(program string) bool {
	return program == "cd" || program == "wc" || !slices.Contains(namesOnly, program)
}

// judge is for a command that is no wrapper, and that no rule denies: it is allowed if an allow rule knows all of it.
func (c *call) judge() {
	own, allowed := c.w.s.allowing(c)
	words := c.args
	switch {
	case c.w.handed && slices.Contains(printsNames, c.name):
		words = pieces(c.printed())
		if c.name == "dirname" {
			for _, v := range words {
				v.pattern = path.Dir(v.pattern)
				v.text = v.pattern
				words = append(words, v)
			}
		}
		c.w.s.printed = append(c.w.s.printed, words...)
		c.w.keepsAbove(words)
	case c.name == "wc":
		// It prints none of what is in its files, but for a list of files (--files0-from).
		if !slices.ContainsFunc(words, func(v value) bool { return v.mayBeOption() && (!v.known || strings.HasPrefix(v.text, "--f")) }) {
			words = nil
		}
	case slices.Contains(namesOnly, c.name):
		words = nil // run has looked for limpet's own.
	}
	if c.files(words, allowed && !own.Operands) { // Any operand is not this one.
		return
	}
	if at := c.walks(); at != "" && (!allowed || own.Operands) {
		c.add(Ask, ruleRead, readsBelow(at))
		return
	}
	if allowed && !(own.Operands && c.harms()) {
		c.allow(own)
		return
	}
	if r := c.confined(); r != nil {
		c.add(Allow, r.name, r.reason)
		return
	}
	for _, r := range asking {
		if r.program(c.name) && (r.when == nil || r.when(c)) {
			c.add(Ask, r.name, r.reason)
			return
		}
	}
	r, ok := readers[c.name]
	if !ok {
		c.add(Ask, ruleOther, "it is not known to change nothing")
		return
	}
	if why := r.allows(c); why != "" {
		rule := r.name
		if why == gitTells || c.tellsSettings() {
			rule = ruleRead
		}
		c.add(Ask, rule, why)
		return
	}
	c.add(Allow, r.name, r.reason)
}

// files judges words as files that a command reads, and reports whether it asks about one, or denies it. opened: a rule of a person's opens those that ask.
func (c *call) files(words []value, opened bool) (found bool) {
	for _, word := range words {
		if why, v := c.w.pathOf(word); v == Deny || v == Ask && !opened {
			c.add(v, ruleOfPath(v), why)
			found = true
		}
	}
	return found
}

// bundleMax bounds the letters of options in one word that pathOf looks behind.
const bundleMax = 8

// pathOf judges a file that a word names, also one that is joined to an option: behind the equals sign, or behind one or several letters.
func (w *walker) pathOf(v value) (string, Verdict) {
	why, verdict := w.path(v, false)
	list := strings.HasPrefix(v.pattern, "@") // Some programs read their words in that file.
	if verdict != Allow || !list && !strings.HasPrefix(v.pattern, "-") {
		return why, verdict
	}
	joined := func(text string) {
		if verdict == Allow {
			why, verdict = w.path(value{text: text, pattern: text, known: v.known, home: strings.HasPrefix(text, "~")}, false)
		}
	}
	if list {
		joined(v.pattern[1:])
		return why, verdict
	}
	if name, arg, _ := strings.Cut(v.pattern, "="); strings.HasPrefix(name, "--") {
		joined(arg)
		return why, verdict
	}
	for i := 2; i < min(len(v.pattern), bundleMax+2) && (i == 2 || isLetter(v.pattern[i-1])); i++ {
		joined(v.pattern[i:])
	}
	return why, verdict
}

// harmful are the rules of those of asking that tell what overwrites or throws away by the operands: a rule for any operand does not open it.
var harmful = []string{"ask.git-push-force", "ask.git-discard", "ask.sql"}

func (c *call) harms() bool {
	return slices.ContainsFunc(asking, func(r rule) bool {
		return slices.Contains(harmful, r.name) && r.program(c.name) && r.when(c)
	})
}

func (c *call) add(v Verdict, rule, reason string) {
	if v == Allow && c.distrust != "" {
		v, rule, reason = Ask, ruleFile, c.distrust
	}
	before := len(c.w.s.findings)
	c.w.addAt(KindCommand, c.from, c.to, v, rule, reason)
	if added := c.w.s.findings[before:]; len(added) > 0 && added[0].Kind == KindCommand {
		added[0].Words, added[0].git = c.known, c.git
		if c.distrust != "" {
			added[0].File, added[0].FileState = c.file.path, c.file.state
		}
		if c.distrust != "" && (c.file.path == "" || c.beside) {
			added[0].Words = nil // No rule could be for it.
		}
	}
}

// allow adds that a rule of the caller's allows the command.
func (c *call) allow(o Own) {
	c.distrust = "" // The rule is for that file.
	before := len(c.w.s.findings)
	c.add(Allow, o.Name(), o.why())
	if added := c.w.s.findings[before:]; len(added) > 0 && o.Dir != "" {
		added[0].within = path.Clean(o.Dir)
	}
}

// known are the texts of words, if each of them is one word whose text is known, and there are no more.
func known(words []value, extra bool) []string {
	texts := make([]string, len(words))
	for i, v := range words {
		if !v.known || v.many || v.home || extra {
			return nil
		}
		texts[i] = v.text
	}
	return texts
}

// patterns are the texts of words as far as they are known.
func patterns(words []value) []string {
	texts := make([]string, len(words))
	for i, v := range words {
		texts[i] = v.pattern
	}
	return texts
}

// texts are the words behind the program, as patterns.
func (c *call) texts() []string {
	texts := make([]string, len(c.args))
	for i, v := range c.args {
		texts[i] = v.pattern
	}
	return texts
}

// has reports whether one of the words is, or may be by an abbreviation, one of the options. A name of one letter is also looked for in
// bundles: it errs on the side of true.
func (c *call) has(options ...string) bool {
	for _, text := range c.texts() {
		if text == "--" {
			return false
		}
		for _, option := range options {
			long, ok := strings.CutPrefix(text, "--")
			name, _, _ := strings.Cut(long, "=")
			switch {
			case ok && len(option) > 1 && name != "" && strings.HasPrefix(option, name):
				return true
			case !ok && len(option) == 1 && strings.HasPrefix(text, "-") && strings.Contains(text[1:], option):
				return true
			}
		}
	}
	return false
}

// operands are the words that are no options, as patterns.
func (c *call) operands() (list []value) {
	ended := false
	for _, v := range c.args {
		switch {
		case !ended && v.pattern == "--":
			ended = true
		case !ended && strings.HasPrefix(v.pattern, "-") && v.pattern != "-":
		default:
			list = append(list, v)
		}
	}
	return list
}
