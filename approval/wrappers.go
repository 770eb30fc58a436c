package approval

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wrapper is a program that runs what its words say.
type wrapper struct {
	programs string
	options  optionSet
	skip     int     // operands before the command
	assigns  bool    // name=value before the command
	verdict  Verdict // of the wrapper itself
	reason   string
	// text: the words of the command are joined, and read by a shell, but with one of the options of exec.
	text bool
	exec []string
	yes  []string // allowed
	no   []string // not allowed
}

// wrapping are the wrappers whose command is looked into. Options that are not among them ask.
var wrapping = []wrapper{
	{programs: "env", options: optionSet{short: "i0vu:C:", long: "ignore-environment null debug unset= chdir=", first: true}, assigns: true, verdict: Allow,
		yes: []string{"env ls -l", "env LC_ALL=C sort -- a", "env -u FOO ls"}, no: []string{"env", "env -i", "env FOO=1", "env PATH=/tmp ls", "env rm a", "env X=1 LD_PRELOAD=/tmp/a ls", "env ./ls", `env "$x" ls`}},
	{programs: "timeout gtimeout", options: optionSet{short: "k:s:vpf", long: "kill-after= signal= verbose preserve-status foreground", first: true}, skip: 1, verdict: Allow,
		yes: []string{"timeout 5 ls", "timeout -k 1 5s cat a"}, no: []string{"timeout 5 rm a", "timeout --nosuch 5 ls", "timeout 5"}},
	{programs: "nice", options: optionSet{short: "n:", long: "adjustment=", number: true, first: true}, verdict: Allow,
		yes: []string{"nice ls", "nice -n 5 ls", "nice -5 ls"}, no: []string{"nice touch a"}},
	{programs: "ionice", options: optionSet{short: "c:n:t", long: "class= classdata= ignore", first: true}, verdict: Allow,
		yes: []string{"ionice -c 3 ls"}, no: []string{"ionice -c 3 touch a", "ionice -p 1"}},
	{programs: "stdbuf", options: optionSet{short: "i:o:e:", long: "input= output= error=", first: true}, verdict: Allow,
		yes: []string{"stdbuf -oL grep a b"}, no: []string{"stdbuf -oL touch a"}},
	{programs: "setsid", options: optionSet{short: "cfw", long: "ctty fork wait", first: true}, verdict: Ask, reason: "what it starts leaves the session",
		no: []string{"setsid ls", "setsid touch a"}},
	{programs: "nohup", options: optionSet{first: true}, verdict: Ask, reason: "it may write nohup.out, and what it starts outlives the session",
		no: []string{"nohup ls", "nohup touch a"}},
	{programs: "time", options: optionSet{short: "pv", long: "portability verbose", first: true}, verdict: Allow,
		yes: []string{`\time -p ls`, "/usr/bin/time -v ls"}, no: []string{`\time -o F ls`, "/usr/bin/time touch a"}},
	{programs: "xargs", options: optionSet{short: "0rtxd:E:I:L:n:P:s:a:", long: "null no-run-if-empty verbose exit delimiter= max-lines? max-args= max-procs= max-chars= arg-file= replace?", first: true}, verdict: Allow,
		yes: []string{"ls | xargs", "find . | xargs grep -l x", "find . -print0 | xargs -0 wc -l", "ls | xargs -I{} echo a{}"}, no: []string{"ls | xargs rm", "ls | xargs sort", "ls | xargs sh -c", "ls | xargs -I{} {} a", "ls | xargs env", "ls | xargs find"}},
	{programs: "command", options: optionSet{short: "p", first: true}, verdict: Allow,
		yes: []string{"command ls", "command -p cat a", "command -v go", "command -V ls"}, no: []string{"command rm a", "command -p . F", "command . F"}},
	{programs: "builtin", options: optionSet{first: true}, verdict: Allow,
		yes: []string{"builtin echo a"}, no: []string{"builtin eval ls", "builtin ls"}},
	{programs: "exec", options: optionSet{short: "cla:", first: true}, verdict: Ask, reason: "it replaces the shell, or redirects all that follows",
		no: []string{"exec ls", "exec >F", "exec rm a"}},
	{programs: "watch", options: optionSet{short: "n:d?tgbecpxw", long: "interval= differences? no-title chgexit beep errexit color precise exec no-wrap", first: true}, verdict: Allow, text: true, exec: []string{"x", "exec"},
		yes: []string{"watch -n 1 df -h", "watch 'ls | wc -l'", "watch -x grep 'a;b' c"}, no: []string{"watch touch a", "watch 'ls; touch a'", "watch -x sh -c 'touch a; ls'", "watch -dx grep 'a;b' c"}},
	{programs: "sudo doas", options: optionSet{short: "AbEHknPSisu:g:p:C:D:h:R:T:U:r:t:", long: "askpass background preserve-env? set-home reset-timestamp non-interactive preserve-groups prompt= stdin user= group= chdir= login shell", first: true}, assigns: true, verdict: Ask, reason: "it runs a command as another user",
		no: []string{"sudo ls", "sudo -u root id", "doas ls"}},
	{programs: "pkexec runuser", options: optionSet{short: "u:g:l", long: "user= group=", first: true}, verdict: Ask, reason: "it runs a command as another user",
		no: []string{"pkexec ls", "runuser -u a ls"}},
	{programs: "ssh", options: optionSet{short: "46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:p:Q:R:S:W:w:", first: true}, skip: 1, verdict: Ask, reason: "it runs a command on another machine", text: true,
		no: []string{"ssh host ls", "ssh host", "ssh -o ProxyCommand=x host"}},
	{programs: "flock", options: optionSet{short: "sxenow:E:uF", long: "shared exclusive nonblock wait= timeout= unlock close no-fork verbose conflict-exit-code=", first: true}, skip: 1, verdict: Ask, reason: "it makes a file to lock",
		no: []string{"flock /tmp/l ls", "flock /tmp/l -c ls"}},
	{programs: "strace ltrace", options: optionSet{short: "fqvtrTyceo:e:s:p:P:", first: true}, verdict: Ask, reason: "it may write files and change how the program runs",
		no: []string{"strace ls", "strace -o F ls"}},
	{programs: "chrt", options: optionSet{short: "abfiormpR", first: true}, skip: 1, verdict: Ask, reason: "it changes how processes are scheduled", no: []string{"chrt 1 ls"}},
	{programs: "taskset", options: optionSet{short: "acp", first: true}, skip: 1, verdict: Ask, reason: "it changes where processes run", no: []string{"taskset 1 ls"}},
	{programs: "setarch linux32 linux64 prlimit choom unshare nsenter chroot systemd-run systemd-inhibit start-stop-daemon fakeroot proot firejail bwrap dbus-run-session cgexec numactl capsh setpriv su script unbuffer parallel busybox toybox ld-linux* ld-musl* gdb perf valgrind entr at batch run-parts dbus-launch xvfb-run eatmydata faketime torsocks proxychains* direnv poetry pipenv uv bundle npx rlwrap socat expect", options: optionSet{first: true}, verdict: Ask, reason: "it runs another program",
		no: []string{"busybox touch a", "chroot / ls", "unshare ls", "prlimit ls", "/lib64/ld-linux-x86-64.so.2 /bin/touch a", "parallel echo ::: a", "run-parts d", "script -c ls", "su -c ls"}},
}

// wrapped judges the command of a wrapper, and a shell's text. It reports false if the command is none.
// foreign: the program is none that is known, but may be one of that name: only what it runs is judged.
func (c *call) wrapped(foreign bool) bool {
	if shells[c.name] {
		c.shell(foreign)
		return true
	}
	switch c.name {
	case "eval":
		c.eval()
		return true
	case "find":
		c.find()
		return false
	case "jobs":
		if len(c.args) > 0 && c.args[0].is("-x") {
			c.add(Ask, ruleOther, "jobs -x runs a command")
			c.command(c.args[1:])
			return true
		}
		return false
	case "command":
		if len(c.args) > 0 && (c.args[0].is("-v") || c.args[0].is("-V")) && !c.extra {
			c.add(Allow, "read.command", "it says what a name is")
			return true
		}
	}
	for i := range wrapping {
		r := rule{programs: wrapping[i].programs}
		if r.program(c.name) {
			c.wrapper(&wrapping[i], foreign)
			return true
		}
	}
	return false
}

func (c *call) wrapper(wr *wrapper, foreign bool) {
	rule := "wrapper." + c.name
	options, rest, why := wr.options.parse(c.args)
	if c.name == "flock" {
		options, rest, why = c.flock(wr, rest, why)
	}
	if why != "" {
		c.add(Ask, rule, why)
		c.guess()
		return
	}
	if c.name == "flock" && len(rest) > 0 {
		if reason, v := c.w.path(rest[0], true); v == Deny {
			c.add(v, ruleFloorOrPath, reason)
		}
	}
	for range wr.skip {
		if len(rest) == 0 || rest[0].many {
			c.add(Ask, rule, "which words are its command cannot be told")
			return
		}
		rest = rest[1:]
	}
	verdict, reason := wr.verdict, wr.reason
	if wr.assigns {
		for len(rest) > 0 && strings.Contains(rest[0].pattern, "=") {
			name, value, _ := strings.Cut(rest[0].text, "=")
			v := rest[0]
			v.text, v.pattern = value, value
			if !strings.Contains(rest[0].text, "=") || rest[0].many || !harmless(name) || !harmlessValue(name, v) {
				verdict, reason = min(verdict, Ask), "it sets a variable that may change how commands run"
			}
			rest = rest[1:]
		}
	}
	switch {
	case len(rest) == 0 && c.name == "xargs":
		c.search("echo")
	case len(rest) == 0 && c.name == "env":
		verdict, reason = Ask, "it prints the environment, which has secrets"
	case len(rest) == 0:
		verdict, reason = Ask, "there is no command that it runs"
		if wr.reason != "" {
			reason = wr.reason
		}
	case c.name == "builtin" && !(rest[0].known && builtins[rest[0].text]):
		verdict, reason = Ask, "it is no builtin"
	}
	appends, text, listed := c.name == "xargs", wr.text, false
	for _, o := range options {
		text = text && !slices.Contains(wr.exec, o.name)
		if why, v := c.w.path(o.arg, false); v != Allow { // xargs reads its file, and env goes there.
			c.add(v, ruleOfPath(v), why)
		}
		if c.name == "env" && (o.name == "C" || o.name == "chdir") {
			c.w.s.moves = append(c.w.s.moves, "")
			c.w.enter(o.arg, false)
		}
		if c.name == "env" {
			pathless, homeless := c.w.s.pathless, c.w.s.homeless
			c.w.s.pathless = pathless || takes(o, "PATH")
			c.w.s.homeless = homeless || takes(o, "HOME") || takes(o, "XDG_STATE_HOME") || takes(o, "XDG_CONFIG_HOME")
			defer func() { c.w.s.pathless, c.w.s.homeless = pathless, homeless }()
		}
		if c.name == "xargs" && (o.name == "I" || o.name == "replace") {
			rest, appends = replaced(rest, o.arg), false
		}
		listed = listed || o.name == "a" || o.name == "arg-file"
	}
	if c.name == "xargs" {
		c.gives(rest, listed || c.w.listed)
	}
	if c.name == "xargs" && !appends { // Only the last of these options counts, and not in each xargs.
		appends = slices.ContainsFunc(options, func(o option) bool { return slices.Contains(appending, o.name) })
	}
	if foreign {
		verdict = Ask
	}
	powerless, before := verdict == Ask && c.powerless(options, foreign), len(c.w.s.findings)
	switch {
	case powerless:
		c.add(Allow, rule, wr.reason+noRights)
		defer func() { c.w.s.spare(before) }()
	case verdict == Allow:
		c.add(Allow, rule, "it runs a command, which is judged by itself")
	default:
		c.add(verdict, rule, reason)
	}
	if len(rest) == 0 {
		return
	}
	if appends {
		rest = append(rest[:len(rest):len(rest)], value{many: true, pattern: hidden, from: c.from, to: c.to})
	}
	if c.name == "sudo" || c.name == "doas" || c.name == "pkexec" {
		before := c.w.root
		c.w.root = true
		defer func() { c.w.root = before }()
	}
	if text {
		c.join(rest, true)
		return
	}
	c.command(rest)
}

// appending are the options by which xargs appends data, and replaces none.
var appending = []string{"L", "n", "max-lines", "max-args"}

// takes reports whether an option of env may take a variable away. Of PATH, bash has one of its own then.
func takes(o option, name string) bool {
	switch o.name {
	case "i", "ignore-environment":
		return true
	case "u", "unset":
		return !o.arg.known || o.arg.text == name
	}
	return false
}

// replaced are the words in which data stand for a text.
func replaced(words []value, by value) []value {
	words = slices.Clone(words)
	for i, v := range words {
		before, _, ok := strings.Cut(v.pattern, by.text)
		if by.known && by.text != "" && !ok {
			continue
		}
		// Data stand for it, which may begin with a dash; it stays one word.
		v.known, v.text, v.pattern = false, before, strings.ReplaceAll(v.pattern, by.text, hidden)
		if !by.known || by.text == "" {
			v.text, v.pattern = "", hidden
		}
		words[i] = v
	}
	return words
}

// flock has its command behind -c as a text.
func (c *call) flock(wr *wrapper, rest []value, why string) ([]option, []value, string) {
	if why == "" && len(rest) > 2 && rest[1].is("-c") {
		c.join(rest[2:3], true)
		return nil, rest[:1], ""
	}
	return nil, rest, why
}

// plainWrappers run the command that is in their words as it is, and where they are.
var plainWrappers = []string{"timeout", "gtimeout", "nice", "ionice", "stdbuf", "time", "command"}

// command judges words that are a command.
func (c *call) command(words []value) {
	if len(words) == 0 {
		return
	}
	from, to := words[0].from, words[0].to
	for _, v := range words {
		from, to = min(from, v.from), max(to, v.to)
	}
	before, plain, outside := c.w.depth, c.w.plain, c.w.outside
	c.w.outside = c.runsOutside()
	c.w.plain = (plain || !c.extra) && slices.Contains(plainWrappers, c.name)
	defer func() { c.w.plain, c.w.outside = plain, outside }()
	if c.w.depth++; c.w.depth > nestingMax {
		c.add(Ask, ruleUnreadable, "commands in commands are too deep to be read")
	} else {
		c.w.run(words, from, to, true)
	}
	c.w.depth = before
}

// guess judges a wrapper whose options are not known: it takes each word for the beginning of the command, to find one that is denied, and
// all of them for files.
func (c *call) guess() {
	c.files(pieces(c.args), false)
	for i, v := range c.args {
		if !v.known || strings.HasPrefix(v.text, "-") || v.text == "" {
			continue
		}
		inner := &call{w: c.w, name: base(v.text), args: c.args[i+1:], from: c.from, to: c.to}
		if reason, rule := inner.denied(); rule != "" {
			c.add(Deny, rule, reason)
			return
		}
	}
}

// join judges words that a shell reads as one text, with blanks between them.
func (c *call) join(words []value, posix bool) {
	var text []string
	for _, v := range words {
		if !v.known || v.many {
			c.add(Ask, ruleUnknown, "the text that a shell reads is not known")
			return
		}
		if v.home {
			v.text = "/home/user" + strings.TrimPrefix(v.text, "~")
		}
		text = append(text, v.text)
	}
	all := words[0]
	if len(words) > 1 {
		all.node, all.to = nil, words[len(words)-1].to
	}
	c.w.inner(strings.Join(text, " "), all, posix)
}

func (c *call) eval() {
	c.add(Ask, ruleShell, "eval runs a text in the session, where it can change anything")
	args := c.args
	if len(args) > 0 && args[0].is("--") {
		args = args[1:]
	}
	if len(args) > 0 {
		c.join(args, false)
	}
}

// shells are programs that read scripts.
var shells = map[string]bool{"bash": true, "sh": true, "dash": true, "ash": true, "rbash": true, "zsh": true, "ksh": true, "mksh": true, "fish": true, "csh": true, "tcsh": true, "pwsh": true, "nu": true, "elvish": true, "xonsh": true}

// shell is for bash -c TEXT and the like, and for a shell that reads a here-document. Only of bash and of a POSIX sh is
// the language known.
func (c *call) shell(foreign bool) {
	ask := func(reason string) { c.add(Ask, "wrapper.shell", reason) }
	known := c.name == "bash" || c.name == "sh" || c.name == "dash"
	set := optionSet{short: "ceuso:", first: true}
	options, rest, why := set.parse(c.args)
	if len(rest) > 0 && rest[0].is("-") {
		rest = rest[1:] // Like --.
	}
	isText := slices.ContainsFunc(options, func(o option) bool { return o.name == "c" })
	reads := slices.ContainsFunc(options, func(o option) bool { return o.name == "s" }) // A dash does so behind the text of -c, too.
	if isText && len(rest) > 0 {
		c.w.kept(rest[1:]) // The text has them as $0, $1...
	} else {
		c.files(slices.DeleteFunc(slices.Clone(c.args), func(v value) bool { return strings.Contains(v.pattern, " ") }), false) // Others may be a text.
	}
	badOption := slices.ContainsFunc(options, func(o option) bool {
		return o.name == "o" && !slices.Contains([]string{"pipefail", "errexit", "nounset"}, o.arg.text)
	})
	if c.w.piped != "" && !isText && (reads || len(rest) == 0) {
		if c.w.piped == "curl" || c.w.piped == "wget" || c.w.piped == "fetch" {
			if c.w.root {
				c.add(Deny, "deny.download", "it runs what "+c.w.piped+" has downloaded, unread, as root")
				return
			}
			c.add(Ask, "ask.download", "it runs what "+c.w.piped+" has downloaded, unread")
			return
		}
		ask("it runs what another command prints")
		return
	}
	switch {
	case why != "":
		ask(why)
		c.guessText()
	case badOption:
		ask("this option of the shell is not known to change nothing")
	case isText && (len(rest) == 0 || !rest[0].known || rest[0].many || rest[0].home):
		ask("the text that the shell reads is not known")
	case isText && reads:
		ask("it may read commands behind the text, that are not known")
		c.w.inner(rest[0].text, rest[0], c.name != "bash")
	case isText:
		c.allowShell(known && !foreign)
		c.w.inner(rest[0].text, rest[0], c.name != "bash")
	case len(rest) > 0 && !reads:
		ask("it runs a file, which may have anything in it")
	case c.w.input != nil:
		c.document(known && !foreign)
	default:
		ask("it reads commands that are not known")
	}
}

func (c *call) allowShell(known bool) {
	if known {
		c.add(Allow, "wrapper.shell", "it runs a text, which is judged by itself")
		return
	}
	c.add(Ask, "wrapper.shell", "the language of this shell is not known here")
}

// guessText judges the text behind an option with a c of a shell whose other options are not known.
func (c *call) guessText() {
	for i, v := range c.args {
		if v.known && strings.HasPrefix(v.text, "-") && !strings.HasPrefix(v.text, "--") && strings.Contains(v.text, "c") && i+1 < len(c.args) {
			for _, text := range c.args[i+1:] {
				if text.known && !strings.HasPrefix(text.text, "-") {
					c.w.inner(text.text, text, c.name != "bash")
					return
				}
			}
		}
	}
}

// document is for a shell that reads a here-document or a here-string.
func (c *call) document(known bool) {
	v := c.w.value(c.w.input)
	if text, ok := plain(c.w.input); ok {
		v.text, v.known, v.many, v.home = text, true, false, false
	} else if c.w.document {
		v.known = false // Backslashes in it mean something else, or nothing.
	}
	if !v.known || v.many || v.home {
		c.add(Ask, "wrapper.shell", "the text that the shell reads is not known")
		return
	}
	c.allowShell(known)
	c.w.inner(v.text, v, c.name != "bash")
}

// plain returns the text of a word without quotes and expansions, as that of a here-document.
func plain(word *syntax.Word) (string, bool) {
	if len(word.Parts) != 1 {
		return "", len(word.Parts) == 0
	}
	lit, ok := word.Parts[0].(*syntax.Lit)
	if !ok || strings.ContainsAny(lit.Value, "\\") {
		return "", false
	}
	return lit.Value, true
}
