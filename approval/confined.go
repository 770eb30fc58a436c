package approval

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Confined says what a sandbox prevents, whatever runs in it. A part of a script is allowed if that was all that there is to ask about. Each field is
// about one kind of finding; the zero value prevents nothing.
type Confined struct {
	// Network: no other machine can be reached, and no service of this one outside of the sandbox.
	Network bool
	// Processes: no process outside of the sandbox can be seen, signalled or changed.
	Processes bool
	// Privileges: no program gets more rights by a set-user-ID bit, so that sudo fails, and the user who runs the script is not root.
	Privileges bool
	// Lost reports whether nothing outside of the sandbox stays of what is written to a path, or below it: it is refused, or goes with the sandbox. The path is
	// absolute and clean, and as the sandbox sees it. It counts only with Options.Path, and for no directory of that, nor for hidden files of Options.Home: programs
	// and what they go by are read there. A symbolic link is not seen: leave it nil where what was approved before may have made one. Nil is false.
	Lost func(path string) bool
}

// Reasons are those of a rule, followed by why that does no harm.
const (
	isLost      = ", but what is written there is refused in the sandbox, or goes with it"
	noNetwork   = ", which the sandbox has no way to"
	noProcesses = ", and the sandbox shows none but its own"
	noRights    = ", which fails in the sandbox: no program gets more rights there"
)

// A confinedRule allows a command because the sandbox prevents what it would do.
type confinedRule struct {
	name, reason string
	programs     string
	holds        func(Confined) bool
	options      optionSet
	words        bool // no word of the program does anything else, whatever it is
	// check reports whether the words are ones that it knows, behind the options. With own, it looks at all of them instead.
	check func(c *call, options []option, operands []value) bool
	own   func(c *call) bool

	yes []string // allowed, where the sandbox prevents what holds says, and asked about elsewhere
	no  []string // asked about everywhere
}

func preventsNetwork(c Confined) bool   { return c.Network }
func preventsProcesses(c Confined) bool { return c.Processes }
func losesFiles(c Confined) bool        { return c.Lost != nil }

const (
	deletesFiles = "it deletes files" + isLost
	writesFiles  = "it writes files" + isLost
	sendsData    = "it sends data to another machine" + noNetwork
	endsThem     = "it ends or changes processes" + noProcesses
)

// confinedRules are for programs without another effect, by the options that they list. Left out are mv, ln and install, as they move, link or change more than what
// they name; top and its like, which are programs to work with; and curl and wget, which go by files of the home, and can speak to a server in the sandbox itself.
var confinedRules = []confinedRule{
	{name: "confined.delete", reason: deletesFiles, programs: "rm", holds: losesFiles,
		options: optionSet{short: "dfiIrRv", long: "dir force interactive? one-file-system preserve-root recursive verbose"}, check: losesAll,
		yes: []string{"rm /tmp/a", "rm -rf /tmp/d ~/build", "rm -- /tmp/-a", "env rm /tmp/a", "x=/tmp/a; rm \"$x\"", "sh -c 'rm /tmp/a'", "rm -f $HOME/a", "rm /usr/share/a"},
		no:  []string{"rm a", "rm /src/a", "rm -rf /tmp", "rm /tmp/*", "rm /tmp/../src/a", "rm /tmp/$x", "rm /tmp/a b", "rm ~", "rm ~root/a", "rm --no-preserve-root /tmp/a", "ls | xargs rm /tmp/a", "find . -exec rm /tmp/{} ';'", "rm -rf /home/me/.cache", "rm", "rm '~/a'", "rm /proc/self/cwd/a", "rm /tmp/limpet-0/a", "rm /opt/bin/a", "rm -rf /opt"}},
	{name: "confined.rmdir", reason: deletesFiles, programs: "rmdir unlink", holds: losesFiles, options: optionSet{short: "v", long: "verbose ignore-fail-on-non-empty"}, check: losesAll,
		yes: []string{"rmdir /tmp/d", "unlink /tmp/a"}, no: []string{"rmdir d", "rmdir -p /tmp/d/e", "unlink a", "rmdir"}},
	{name: "confined.mkdir", reason: writesFiles, programs: "mkdir", holds: losesFiles, options: optionSet{short: "pvm:", long: "parents verbose mode="}, check: losesAll,
		yes: []string{"mkdir -p /tmp/a/b", "mkdir -m 700 ~/d", "mkdir --mode=700 /tmp/a"}, no: []string{"mkdir d", "mkdir -p /tmp/a d", "mkdir -Z /tmp/a", "mkdir -p ~/.config/x", "mkdir -p /tmp/a/../../src/d"}},
	{name: "confined.touch", reason: writesFiles, programs: "touch", holds: losesFiles, options: optionSet{short: "acmd:t:", long: "no-create date= time="}, check: losesAll,
		yes: []string{"touch /tmp/a", "touch -d yesterday /tmp/a"}, no: []string{"touch a", "touch -r a /tmp/b", "touch -- -d /tmp/a", "touch /dev/stdout", "touch ~/.profile"}},
	{name: "confined.tee", reason: writesFiles, programs: "tee", holds: losesFiles, options: optionSet{short: "ai", long: "append ignore-interrupts"}, check: losesAll,
		yes: []string{"ls | tee /tmp/a", "ls | tee -a /tmp/a ~/b"}, no: []string{"ls | tee a", "ls | tee /tmp/a b", "ls | tee -", "ls | tee /dev/fd/3", "ls | tee /proc/self/cwd/a"}},
	{name: "confined.copy", reason: writesFiles, programs: "cp", holds: losesFiles, options: optionSet{short: "finuv", long: "force interactive no-clobber update verbose"}, check: copiesAway,
		yes: []string{"cp a /tmp/b", "cp -f a src/b /tmp", "cp a /tmp/d/", "cp a ~", "cp /etc/hosts /tmp"},
		no: []string{"cp /tmp/a b", "cp a b", "cp -a a /tmp", "cp -r a /tmp/b", "cp -P a /tmp", "cp -s a /tmp", "cp -l a /tmp", "cp -b a /tmp/b", "cp -t d /tmp/a", "cp * /tmp", "cp $x /tmp", "cp a b /src", "cp /tmp/a", "cp ~/.ssh/id_rsa /tmp/a", "cp .env /tmp", "cp a.pem /tmp/a",
			"cp ls ~/bin", "cp ls ~/bin/", "cp x/.bashrc ~", "cp x/.jq ~/", "cp .. /tmp", "cp a /tmp/d/..", "cp bin ~", "cp --parents a /tmp", "cp a /proc/self/fd/3", "cp a '/tmp/*' /src/b"}},
	{name: "confined.temporary", reason: writesFiles, programs: "mktemp", holds: losesFiles, options: optionSet{short: "dqu", long: "directory quiet dry-run"}, check: makesTemporary,
		yes: []string{"mktemp", "mktemp -d", "x=$(mktemp)"}, no: []string{"mktemp aXXX", "mktemp -p .", "mktemp --tmpdir=.", "TMPDIR=. mktemp", "mktemp /tmp/aXXX", "mktemp -t aXXX"}},
	{name: "confined.processes", reason: endsThem, programs: "kill killall pkill skill snice renice", holds: preventsProcesses, words: true,
		yes: []string{"kill 1", "kill -9 $pid", "kill %1", "pkill -f x", "killall -q a", "renice 5 -p 1", `kill "$(pidof a)"`}, no: []string{"kill $(touch a)", "xkill", "pkill -F ~/.ssh/x", "kill 1 >a", "top", "htop"}},
	{name: "confined.users", reason: endsThem, programs: "fuser", holds: preventsProcesses, options: optionSet{short: "acikmMsuvw46n:", long: "all kill mount ismountpoint silent user verbose writeonly ipv4 ipv6 namespace="},
		yes: []string{"fuser -k a", "fuser -k -n tcp 80", "fuser -km /src"}, no: []string{"fuser -l $x", "fuser --nosuch a", "fuser $x"}},
	{name: "confined.ping", reason: sendsData, programs: "ping ping6", holds: preventsNetwork, words: true,
		yes: []string{"ping -c1 a", "ping -c 1 $x"}, no: []string{"ping -c1 a >b"}},
	{name: "confined.route", reason: sendsData, programs: "traceroute tracepath", holds: preventsNetwork, options: optionSet{short: "46nm:q:w:p:"},
		yes: []string{"traceroute -n a", "tracepath a"}, no: []string{"traceroute --nosuch a", "mtr a"}},
	{name: "confined.names", reason: sendsData, programs: "host nslookup", holds: preventsNetwork, options: optionSet{short: "46t:W:R:"}, check: asksForNames,
		yes: []string{"host a", "nslookup a", "host -t MX a b"}, no: []string{"nslookup", "nslookup - a", "host -f a", "nslookup -type=a b", "host $x", "whois a"}},
	{name: "confined.dig", reason: sendsData, programs: "dig", holds: preventsNetwork, own: digs,
		yes: []string{"dig -r a", "dig -r +short a MX", "dig -r @1.1.1.1 a"}, no: []string{"dig a", "dig -r -f F a", "dig a -r", "dig -rf F", "dig -r $x", "dig -r +https=/x a"}},
}

// confined returns the rule that allows a command because the sandbox prevents what it would do; nil: none does.
func (c *call) confined() *confinedRule {
	prevented := c.w.s.opts.Confined
	for i := range confinedRules {
		r := &confinedRules[i]
		if !(&rule{programs: r.programs}).program(c.name) || !r.holds(prevented) {
			continue
		}
		switch {
		case r.words:
			return r
		case r.own != nil:
			if r.own(c) {
				return r
			}
			continue
		}
		options, operands, why := r.options.parse(c.args)
		if why == "" && (r.check == nil || r.check(c, options, operands)) {
			return r
		}
	}
	return nil
}

// losesAll is for operands that are all written.
func losesAll(c *call, _ []option, operands []value) bool {
	return len(operands) > 0 && !slices.ContainsFunc(operands, func(v value) bool { return !c.w.loses(v) })
}

// copiesAway is for files that are copied to the last operand, or into it, if that is a directory.
func copiesAway(c *call, _ []option, operands []value) bool {
	if len(operands) < 2 {
		return false
	}
	last := len(operands) - 1
	to, known := c.w.absolute(operands[last])
	if !known || !c.w.losesPath(to) && !isTemporary(to) && to != c.w.s.opts.Home {
		return false
	}
	return !slices.ContainsFunc(operands[:last], func(from value) bool {
		name := base(from.text)
		// Of a name with a tilde, the value of a variable is guessed.
		return !from.known || from.many || slices.Contains([]string{"", ".", "..", "/"}, name) || strings.Contains(name, "~") || strings.Contains(from.text[1:], "~") ||
			from.home && strings.HasPrefix(from.text, "~/.") || !c.w.losesPath(within(to, name))
	})
}

// isTemporary reports whether a path is a directory for temporary files, and certainly a directory.
func isTemporary(p string) bool { return p == "/tmp" || p == "/var/tmp" || p == "/dev/shm" }

// makesTemporary is for a mktemp that makes its file in /tmp: TMPDIR leads there in a sandbox, unless a script has set it.
func makesTemporary(c *call, _ []option, operands []value) bool {
	if live := c.w.s.opts.Live; live != nil {
		for _, v := range live.Variables {
			if v.Name == "TMPDIR" && v.Value != "/tmp" {
				return false
			}
		}
	}
	return len(operands) == 0 && c.w.losesPath("/tmp/tmp.mktemp")
}

// asksForNames is for operands that are names: of a dash alone, or of none, nslookup reads commands.
func asksForNames(c *call, options []option, operands []value) bool {
	if c.name == "nslookup" && len(options) > 0 {
		return false
	}
	return len(operands) > 0 && !slices.ContainsFunc(operands, func(v value) bool { return !v.known || v.many || v.text == "" || v.text == "-" })
}

var (
	digOption = regexp.MustCompile(`^\+(no)?(short|all|answer|comments|stats|cmd|question|authority|additional|trace|tcp|recurse|dnssec|multiline|identify|search)$`)
	digName   = regexp.MustCompile(`^@?[A-Za-z0-9_][A-Za-z0-9_.:-]*$`)
)

// digs is for a dig that does not read ~/.digrc, which may have options that read other files.
func digs(c *call) bool {
	if len(c.args) < 2 || !c.args[0].is("-r") {
		return false
	}
	return !slices.ContainsFunc(c.args[1:], func(v value) bool {
		return !v.known || v.many || v.home || !digOption.MatchString(v.text) && !digName.MatchString(v.text) && !slices.Contains([]string{"-4", "-6", "-x", "-t"}, v.text)
	})
}

// absolute returns the path of a file that is known, absolute, and has no part that leads up: behind a symbolic link, ".." is not what it looks like.
func (w *walker) absolute(v value) (string, bool) {
	p, home := v.text, w.s.opts.Home
	if !v.known || v.many {
		return "", false
	}
	if v.home {
		if !plainPath.MatchString(home) {
			return "", false // Without quotes, $HOME may be several words, or a pattern.
		}
		p = home + strings.TrimPrefix(p, "~")
	}
	if !strings.HasPrefix(p, "/") || strings.ContainsAny(p, "~\x00") || slices.Contains(strings.Split(p, "/"), "..") {
		return "", false // A tilde that is not the first stands for a value that is known less.
	}
	return path.Clean(p), true
}

var plainPath = regexp.MustCompile(`^(/[A-Za-z0-9._@+-]+)+$`)

// loses reports whether nothing stays of what is written to a file.
func (w *walker) loses(v value) bool {
	p, known := w.absolute(v)
	return known && w.losesPath(p)
}

// losesPath is loses for a path that is absolute and clean.
func (w *walker) losesPath(p string) bool {
	s := w.s
	if s.opts.Confined.Lost == nil || len(s.path) == 0 || !s.opts.Confined.Lost(p) {
		return false
	}
	v := value{text: p, pattern: p, known: true}
	if _, verdict := w.path(v, true); verdict != Allow || strings.HasPrefix(w.normal(v), "~/.") {
		return false
	}
	parts := strings.Split(p, "/")
	return !slices.ContainsFunc(s.path, func(dir string) bool {
		dir = path.Clean(dir)
		// Also where the directory has another name, by a symbolic link on the way to it.
		return isBelow(p, dir) || isBelow(dir, p) || dir != "/" && slices.Contains(parts, path.Base(dir))
	})
}

// unreachable are the paths by which bash opens a connection that no process of the sandbox itself can answer: a name may be the loopback device's.
var unreachable = regexp.MustCompile(`^/dev/(tcp|udp)/([1-9]|[1-9][0-9]|1[01][0-9]|12[0-689]|1[3-9][0-9]|2[01][0-9]|22[0-3])(\.(0|[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])){3}/[0-9]{1,5}$`)

// fails reports whether a redirection to that file opens a connection, and cannot.
func (w *walker) fails(v value) bool {
	return w.s.opts.Confined.Network && v.known && !v.many && !v.home && unreachable.MatchString(v.text)
}

// powerlessOptions are those of sudo, doas and pkexec with which they look at their rights before all else.
var powerlessOptions = []string{"n", "non-interactive", "H", "set-home", "u", "user", "g", "group", "i", "login", "k", "reset-timestamp"}

// powerless reports whether a wrapper that gives more rights fails before it runs anything: it is the real one, whose file has the set-user-ID bit.
func (c *call) powerless(options []option, foreign bool) bool {
	if !c.w.s.opts.Confined.Privileges || foreign || c.distrust != "" || !c.setUID || c.name != "sudo" && c.name != "doas" && c.name != "pkexec" {
		return false
	}
	return !slices.ContainsFunc(options, func(o option) bool { return !slices.Contains(powerlessOptions, o.name) })
}

// neverSpared are the rules of findings that stay as they are, also in a command that does not run: what may tell secrets, what the shell has, and what was not read.
var neverSpared = []string{ruleRead, "ask.environment", ruleState, ruleFile, ruleUnreadable}

// spare allows what is asked about in a command that does not run. Findings are those from an index on.
func (s *session) spare(from int) {
	for i := from; i < len(s.findings); i++ {
		f := &s.findings[i]
		if f.Verdict == Ask && !slices.Contains(neverSpared, f.Rule) && !strings.HasPrefix(f.Rule, "own.") {
			f.Verdict, f.Reason = Allow, f.Reason+", but it does not run"
		}
	}
}
