package approval

import (
	"path"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

// Confined says what a sandbox prevents, whatever runs in it. A part of a script is allowed if that was all that there is to ask about. Each field is
// about one kind of finding; the zero value prevents nothing.
type Confined struct {
	// Network: no other machine can be reached, and no service of this one outside of the sandbox.
	Network bool
	// Processes: no process outside of the sandbox can be seen, signalled or changed.
	Processes bool
	// Privileges: a set-user-ID bit gives no program more rights, so sudo fails; and the script does not run as root.
	Privileges bool
	// Refused reports whether what would write to a path, or below it, fails. The path is absolute and clean, and as the sandbox sees it; it has no symbolic
	// link that what runs in the sandbox can have made. It is asked often. Nil is false.
	Refused func(path string) bool
	// Env returns what a process in the sandbox begins with that is started with an environment: some of it, and what the sandbox sets. Options.Live.Env is
	// taken to be such an environment. Nil is all of it.
	Env func(env []string) []string
}

// Reasons are those of a rule, followed by why that does no harm.
const (
	butReadOnly = ", but it cannot: the sandbox shows that read-only"
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
func refusesWrites(c Confined) bool     { return c.Refused != nil }

const (
	deletesFiles  = "it deletes files" + butReadOnly
	writesFiles   = "it writes files" + butReadOnly
	changesRights = "it changes rights of files" + butReadOnly
	sendsData     = "it sends data to another machine" + noNetwork
	endsThem      = "it ends or changes processes" + noProcesses
)

// confinedRules are for programs without another effect, by the options that they list. Left out are mv, ln and install, as they move, link or change more than what
// they name; top and its like, which are programs to work with; and curl and wget, which go by files of the home, and can speak to a server in the sandbox itself.
var confinedRules = []confinedRule{
	{name: "confined.delete", reason: deletesFiles, programs: "rm", holds: refusesWrites,
		options: optionSet{short: "dfiIrRv", long: "dir force interactive? one-file-system preserve-root recursive verbose"}, check: allRefused,
		yes: []string{"rm /usr/share/a", "rm -rf /usr/share/d /opt/d", "rm -- /usr/-a", "env rm /usr/share/a", "x=/usr/share/a; rm \"$x\"", "sh -c 'rm /usr/share/a'"},
		no:  []string{"rm a", "rm /src/a", "rm -rf /tmp/a", "rm -rf /usr", "rm /usr/*", "rm /usr/../src/a", "rm /usr/$x", "rm /usr/a b", "rm ~/a", "rm ~root/a", "rm --no-preserve-root /usr/a", "ls | xargs rm /usr/a", "find . -exec rm /usr/{} ';'", "rm", "rm '~/a'", "rm /proc/self/cwd/a", "rm $x /usr/a"}},
	{name: "confined.rmdir", reason: deletesFiles, programs: "rmdir unlink", holds: refusesWrites, options: optionSet{short: "v", long: "verbose ignore-fail-on-non-empty"}, check: allRefused,
		yes: []string{"rmdir /usr/share/d", "unlink /opt/a"}, no: []string{"rmdir d", "rmdir -p /usr/d/e", "unlink a", "rmdir"}},
	{name: "confined.mkdir", reason: writesFiles, programs: "mkdir", holds: refusesWrites, options: optionSet{short: "pvm:", long: "parents verbose mode="}, check: allRefused,
		yes: []string{"mkdir -p /usr/a/b", "mkdir -m 700 /opt/d", "mkdir --mode=700 /opt/a"}, no: []string{"mkdir d", "mkdir -p /usr/a d", "mkdir -Z /usr/a", "mkdir -p ~/.config/x", "mkdir -p /usr/a/../../src/d"}},
	{name: "confined.touch", reason: writesFiles, programs: "touch", holds: refusesWrites, options: optionSet{short: "acmd:t:", long: "no-create date= time="}, check: allRefused,
		yes: []string{"touch /usr/a", "touch -d yesterday /usr/a"}, no: []string{"touch a", "touch -r a /usr/b", "touch -- -d /usr/a", "touch /dev/stdout", "touch ~/.profile"}},
	{name: "confined.truncate", reason: writesFiles, programs: "truncate", holds: refusesWrites, options: optionSet{short: "cos:", long: "no-create io-blocks size="}, check: allRefused,
		yes: []string{"truncate -s 0 /usr/a"}, no: []string{"truncate -s 0 a", "truncate -s 0 /usr/a b", "truncate -r a /usr/b"}},
	{name: "confined.rights", reason: changesRights, programs: "chmod chown chgrp", holds: refusesWrites, options: optionSet{short: "cfvR", long: "changes silent quiet verbose recursive preserve-root"}, check: rightsRefused,
		yes: []string{"chmod +x /usr/share/a", "chmod -R u+w /usr/share/d", "chown -R me:me /usr/share/d", "chgrp me /opt/a"}, no: []string{"chmod +x a", "chmod +x /usr/share/a b", "chmod $x /usr/share/a", "chmod --reference=a /usr/share/a", "chown -L -R me /usr/share/d", "chown -RH me /usr/share/d", "chown -h me /usr/share/a", "chmod +x", "chmod -x /usr/share/a", "chgrp $g /opt/a"}},
	{name: "confined.tee", reason: writesFiles, programs: "tee", holds: refusesWrites, options: optionSet{short: "ai", long: "append ignore-interrupts"}, check: allRefused,
		yes: []string{"ls | tee /usr/a", "ls | tee -a /usr/a /opt/b"}, no: []string{"ls | tee a", "ls | tee /usr/a b", "ls | tee -", "ls | tee /dev/fd/3", "ls | tee /proc/self/cwd/a"}},
	{name: "confined.copy", reason: writesFiles, programs: "cp", holds: refusesWrites, options: optionSet{short: "pfinuv", long: "force interactive no-clobber update verbose"}, check: copiesRefused,
		yes: []string{"cp a /usr/b", "cp -f a src/b /opt", "cp -p /etc/a /usr/share/"},
		no: []string{"cp -r d /opt", "cp -a d /usr/share", "cp d/.. /usr/share", "cp . /usr/share", "cp ~ /usr/share", "cp /usr/a b", "cp a b", "cp a /tmp", "cp -s a /usr/b", "cp -l a /usr/b", "cp -b a /usr/b", "cp -t d /usr/a", "cp * /usr", "cp $x /usr", "cp a b /src", "cp /usr/a", "cp ~/.ssh/id_rsa /usr/a", "cp .env /usr", "cp a.pem /usr/a",
			"cp a /usr/d/..", "cp --parents a /usr", "cp a /proc/self/fd/3", "cp a '/tmp/*' /src/b", "cp -x a /usr/b"}},
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

// allRefused is for operands that are all written.
func allRefused(c *call, _ []option, operands []value) bool {
	return len(operands) > 0 && !slices.ContainsFunc(operands, func(v value) bool { return !c.w.refuses(v) })
}

// rightsRefused is for rights, or an owner, and the files that shall have them.
func rightsRefused(c *call, _ []option, operands []value) bool {
	return len(operands) > 1 && operands[0].known && !operands[0].many && allRefused(c, nil, operands[1:])
}

// copiesRefused is for files that are read, and copied to the last operand, or into it, where a link of that name may lead elsewhere.
func copiesRefused(c *call, _ []option, operands []value) bool {
	last := len(operands) - 1
	if last < 1 || !c.w.refuses(operands[last]) {
		return false
	}
	return !slices.ContainsFunc(operands[:last], func(from value) bool {
		name := base(from.text)
		if !from.known || from.many || strings.Contains(name, "~") || slices.Contains([]string{"", ".", "..", "/"}, name) {
			return true
		}
		into := operands[last]
		into.text = within(into.text, name)
		return !c.w.refuses(into)
	})
}

// asksForNames is for operands that are names: of a dash alone, or of none, nslookup reads commands.
func asksForNames(c *call, options []option, operands []value) bool {
	if c.name == "nslookup" && len(options) > 0 {
		return false
	}
	return len(operands) > 0 && !slices.ContainsFunc(operands, func(v value) bool { return !v.known || v.many || v.text == "" || v.text == "-" })
}

var (
	digOption = lazyregexp.New(`^\+(no)?(short|all|answer|comments|stats|cmd|question|authority|additional|trace|tcp|recurse|dnssec|multiline|identify|search)$`)
	digName   = lazyregexp.New(`^@?[A-Za-z0-9_][A-Za-z0-9_.:-]*$`)
)

// digs is for a dig that does not read ~/.digrc, which may have options that read other files.
func digs(c *call) bool {
	if len(c.args) < 2 || !c.args[0].is("-r") {
		return false
	}
	return !slices.ContainsFunc(c.args[1:], func(v value) bool {
		return !v.known || v.many || v.home || !digOption().MatchString(v.text) && !digName().MatchString(v.text) && !slices.Contains([]string{"-4", "-6", "-x", "-t"}, v.text)
	})
}

// refuses reports whether the sandbox refuses what is written to a file. It is known, absolute, and has no part that leads up, which is not what it looks like
// behind a symbolic link; and begins with no home, for what the session has for one is not known.
func (w *walker) refuses(v value) bool {
	p, refused := v.text, w.s.opts.Confined.Refused
	if refused == nil || !v.known || v.many || v.home || !strings.HasPrefix(p, "/") || strings.ContainsAny(p, "~\x00") || slices.Contains(strings.Split(p, "/"), "..") {
		return false // A tilde that is not the first stands for a value that is known less.
	}
	p = path.Clean(p)
	_, verdict := w.path(value{text: p, pattern: p, known: true}, true)
	return verdict != Deny && refused(p)
}

// unreachable are the paths by which bash opens a connection that no process of the sandbox itself can answer: a name may be the loopback device's.
var unreachable = lazyregexp.New(`^/dev/(tcp|udp)/([1-9]|[1-9][0-9]|1[01][0-9]|12[0-689]|1[3-9][0-9]|2[01][0-9]|22[0-3])(\.(0|[1-9][0-9]?|1[0-9][0-9]|2[0-4][0-9]|25[0-5])){3}/[0-9]{1,5}$`)

// fails reports whether a redirection to that file opens a connection, and cannot.
func (w *walker) fails(v value) bool {
	return w.s.opts.Confined.Network && v.known && !v.many && !v.home && unreachable().MatchString(v.text)
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
