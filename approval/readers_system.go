package approval

import (
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

const tellsSystem = "it says what is known of the system"

// dpkgOptions are those by which dpkg lists what is installed.
var dpkgOptions = optionSet{short: "LlsS", long: "listfiles list status search print-architecture print-foreign-architectures"}

// systemReaders tell of the machine and its processes.
var systemReaders = []reader{
	{name: "read.uname", reason: tellsSystem, programs: "uptime free lscpu lsblk lsmod lsusb lspci findmnt vmstat iostat mpstat w who last", most: -1,
		options: optionSet{short: "asnrvmpiogGuzbhklmtwcfHd", long: "all kernel-name nodename kernel-release kernel-version machine processor operating-system pretty since human mega giga total wide json user group groups name real bytes"},
		check: func(c *call, options []option, _ []value) string {
			if c.name == "last" && slices.ContainsFunc(options, func(o option) bool { return o.name == "d" }) {
				return asksNames
			}
			return ""
		},
		yes: []string{"free -h", "uptime", "last -n 5", "lsblk -d"}, no: []string{"free --nosuch", "w $x", "last -d"}},
	{name: "read.id", reason: tellsSystem, programs: "uname id getconf locale", most: -1,
		options: optionSet{short: "asnrvmpiogGuzbklc", long: "all kernel-name nodename kernel-release kernel-version machine processor operating-system user group groups name real", whole: true},
		yes:     []string{"uname -a", "id -u", `id -g "$user"`, "getconf PAGE_SIZE"}, no: []string{"uname --nosuch"}},
	{name: "read.date", reason: tellsSystem, programs: "date", most: 1,
		options: optionSet{short: "d:uRI?r:", long: "date= utc universal rfc-email rfc-3339= iso-8601? reference="}, check: dateFormat,
		yes: []string{"date", "date +%s", "date -u +%Y-%m-%dT%H:%M:%SZ", "date -d yesterday", "date -Iseconds"}, no: []string{"date -s now", "date 01010000", "date --set=now", "date -f F", "date $x", "date --da x"}},
	{name: "read.hostname", reason: tellsSystem, programs: "hostname", most: 0,
		options: optionSet{short: "fsdiI", long: "fqdn long short domain ip-address all-ip-addresses"},
		yes:     []string{"hostname", "hostname -f"}, no: []string{"hostname -A", "hostname new", "hostname -F f", "hostname -b x", "hostname $x"}},
	{name: "read.ps", reason: tellsSystem, programs: "ps", most: -1, own: psAllows,
		yes: []string{"ps", "ps aux", "ps -ef", "ps -o pid,args -p 1", "ps -eo pid,comm --sort=-pid", "ps auxf", `ps -p "$pid"`, "ps -o pid= -o comm=,args=", "ps axo pid,%cpu"}, no: []string{"ps e", "ps -o pid=X,environ", "ps -o no_such", "ps eww", "ps auxe", "ps axe", "ps --nosuch", "ps $x"}},
	{name: "read.pgrep", reason: tellsSystem, programs: "pgrep pidof", most: -1,
		options: optionSet{short: "acfg:G:ilnoP:s:t:u:U:vxd:q", long: "list-name list-full full exact newest oldest inverse count parent= euid= uid= delimiter= ignore-case"},
		yes:     []string{"pgrep -fl sleep", "pidof bash"}, no: []string{"pgrep --signal KILL x", "pgrep $x", "pkill x"}},
	{name: "read.ss", reason: tellsSystem, programs: "ss netstat", most: 0,
		options: optionSet{short: "tulnpaxreoims46s", long: "tcp udp listening numeric processes all unix extended summary"}, check: socketsAllow,
		yes: []string{"ss -tlnp", "netstat -tulpn", "netstat -rn"}, no: []string{"ss -r", "netstat -t", "netstat -r", "ss -K", "ss -D F", "ss -F F", "ss --kill"}},
	{name: "read.lsof", reason: tellsSystem, programs: "lsof", most: -1,
		options: optionSet{short: "nPtai?p:u:c:d:", first: true}, check: lsofAllows,
		yes: []string{"lsof -nP -i:80", "lsof -ti tcp:80", "lsof -n -p 1", "lsof -n +D src"}, no: []string{"lsof -p 1", "lsof -ni@host", "lsof -n -i @host:80", "lsof -n -i tcp@host", "lsof a -n", "lsof +M", "lsof -D w", "lsof -Dr", "lsof $x"}},
	{name: "read.ip", reason: tellsSystem, programs: "ip", own: ipAllows,
		yes: []string{"ip a", "ip addr show", "ip -br link", "ip route", "ip -4 addr show dev eth0"}, no: []string{"ip link set eth0 up", "ip netns exec a ls", "ip -batch F", "ip addr add 1 dev a", "ip route get 1.1.1.1"}},
	{name: "read.getent", reason: tellsSystem, programs: "getent", most: -1, check: getentAllows,
		yes: []string{"getent passwd root", "getent group"}, no: []string{"getent hosts a.b", "getent shadow", "getent ahosts x", "getent -s x passwd", "getent $x"}},
	{name: "read.systemctl", reason: tellsSystem, programs: "systemctl", most: -1,
		options: optionSet{short: "aln:o:t:p:q", long: "no-pager all full lines= output= type= state= user system plain quiet property= failed no-legend value"}, check: systemctlAllows,
		yes: []string{"systemctl --no-pager status ssh", "systemctl is-active ssh", "systemctl show -p MainPID ssh --no-pager"}, no: []string{"systemctl status ssh", "systemctl restart ssh", "systemctl --no-pager edit a", "systemctl --no-pager -H x status a", "systemctl"}},
	{name: "read.journalctl", reason: tellsSystem, programs: "journalctl", most: 0,
		options: optionSet{short: "u:n:S:U:b?kp:o:feqrxg:t:", long: "no-pager unit= lines= since= until= boot? dmesg priority= output= follow quiet reverse grep= user system"},
		check: func(_ *call, options []option, _ []value) string {
			return pager(options)
		},
		yes: []string{"journalctl --no-pager -u ssh -n 50"}, no: []string{"journalctl -u ssh", "journalctl --no-pager --vacuum-size=1", "journalctl --no-pager --rotate", "journalctl --flush"}},
	{name: "read.dpkg", reason: tellsSystem, programs: "dpkg-query", most: -1,
		options: optionSet{short: "WLSsf:", long: "show listfiles search status showformat="},
		yes:     []string{"dpkg-query -W bash", "dpkg-query -L bash"}, no: []string{"dpkg-query --admindir=x -W", "dpkg -i a", "apt-get install a", "dpkg-query --load-avail -W"}},
	{name: "read.dpkg-list", reason: tellsSystem, programs: "dpkg", most: -1,
		options: dpkgOptions,
		yes:     []string{"dpkg -L bash", "dpkg -l", "dpkg --print-architecture"}, no: []string{"dpkg -i a", "dpkg --pending --configure", "dpkg --root=x -l", "dpkg -Lr bash", "dpkg --admindir x -l", "dpkg"}},
	{name: "read.version", reason: "it prints a version", programs: "python3 python node gcc g++ cc clang docker podman ruby perl java rustc make cmake", own: versionAllows,
		yes: []string{"python3 --version", "node --version", "gcc --version"}, no: []string{"python3 -c x", "python3 --version x.py", "node -e x", "perl -v -e x", "make", "make -n", "python3 -m json.tool", "gcc -wrapper x a.c"}},
	{name: "read.dmesg", reason: tellsSystem, programs: "dmesg", most: 0,
		options: optionSet{short: "TkuxLP", long: "ctime kernel userspace decode nopager"},
		yes:     []string{"dmesg -T"}, no: []string{"dmesg -c", "dmesg -C", "dmesg -H", "dmesg -F f"}},
}

const asksNames = "it asks for the names of other machines, over the network"

// socketsAllow knows what prints numbers: ss does so unless it has an option, and netstat only if it has one.
func socketsAllow(c *call, options []option, _ []value) string {
	numbers := c.name == "ss"
	for _, o := range options {
		switch {
		case c.name == "ss" && o.name == "r":
			return asksNames
		case o.name == "n" || o.name == "numeric":
			numbers = true
		}
	}
	if !numbers {
		return asksNames + ": add -n"
	}
	return ""
}

// lsofAddress is an address without the name of a machine.
var lsofAddress = lazyregexp.New(`^[46]?([a-zA-Z]+)?(:[a-zA-Z0-9,-]+)?$`)

// lsofAllows knows what asks for no names: with -n, or -t, which prints numbers of processes alone. The first operand behind -i is an address.
func lsofAllows(c *call, options []option, operands []value) string {
	numbers := false
	for i, o := range options {
		numbers = numbers || o.name == "n" || o.name == "t"
		if o.name != "i" {
			continue
		}
		if o.arg.pattern == "" && i == len(options)-1 && len(operands) > 0 {
			o.arg = operands[0]
		}
		if o.arg.pattern != "" && !(o.arg.known && lsofAddress().MatchString(o.arg.text)) {
			return "an address may have the name of a machine, for which it asks over the network"
		}
	}
	for i, v := range operands {
		if i > 0 && v.mayBeOption() || v.text == "" && !v.noDash || strings.HasPrefix(v.text, "+") && !v.is("+D") && !v.is("+d") && !v.is("+L1") {
			return "an option behind an operand, or with a +, is not known to change nothing"
		}
	}
	if !numbers {
		return asksNames + ": add -n"
	}
	return ""
}

// dateFormat knows one operand: +FORMAT. Another sets the clock.
func dateFormat(_ *call, _ []option, operands []value) string {
	if len(operands) == 1 && !strings.HasPrefix(operands[0].text, "+") {
		return "an operand without a + sets the clock"
	}
	return ""
}

// psColumns are those of ps that have no environment.
const psColumns = " %cpu %mem args bsdstart bsdtime c cmd comm command cp cputime egid egroup etime etimes euid euser fgid fgroup fname fuid fuser gid group lstart lwp ni nice nlwp nwchan pcpu pgid pgrp pid pmem ppid pri psr rgid rgroup rss rssize ruid ruser s sess session sgid sgroup sid start start_time state stat stime suid suser sz thcount tid time tname tpgid tt tty ucmd ucomm uid uname user vsize vsz wchan "

// arePSColumns reports whether all columns of a list are known. A column may have a heading behind an equals sign. Whether a comma
// ends that depends on the ps, so what is behind the comma has to be a column, too.
func arePSColumns(list string) bool {
	for name := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ',' || r == ' ' }) {
		if name, _, _ = strings.Cut(name, "="); !strings.Contains(psColumns, " "+name+" ") {
			return false
		}
	}
	return true
}

// psAllows knows the letters of both kinds of ps, without e, which prints environments.
func psAllows(c *call) string {
	const unix, bsd, wantsWord = "AadefFHjlLMNTwyVcmnrSxpCgGopsutUO", "aAcdfghHjklLmnrsSTuvwxXpoOtU", "pCgGosutUO"
	for i := 0; i < len(c.args); i++ {
		v := c.args[i]
		if !v.known || v.many {
			return whyUnknownWord
		}
		text := v.text
		if strings.HasPrefix(text, "--") {
			name, _, _ := strings.Cut(text, "=")
			if !strings.Contains(" --sort --forest --no-headers --no-heading --ppid --pid --user --cols --width --headers ", " "+name+" ") || strings.ContainsAny(text, " ") {
				return "this option of ps is not known"
			}
			if _, _, has := strings.Cut(text, "="); !has && slices.Contains([]string{"--sort", "--ppid", "--pid", "--user"}, name) {
				i++
			}
			continue
		}
		letters, dash := strings.CutPrefix(text, "-")
		if !dash && isNumber(text) {
			continue
		}
		allowed := bsd
		if dash {
			allowed = unix
		}
		for j := range len(letters) {
			if strings.IndexByte(allowed, letters[j]) < 0 {
				return "this option of ps is not known, or prints environments"
			}
			if strings.IndexByte(wantsWord, letters[j]) < 0 || !dash && strings.IndexByte("poOtU", letters[j]) < 0 {
				continue
			}
			value := letters[j+1:]
			if value == "" {
				if i++; i == len(c.args) || c.args[i].many {
					return whyUnknownWord
				}
				value = c.args[i].text
			}
			if option := letters[j]; (option == 'o' || option == 'O') && !(c.args[i].known && arePSColumns(value)) {
				return "a column of ps is not known, and could have environments"
			}
			break
		}
	}
	return ""
}

// ipAllows knows the objects of ip, and show alone.
func ipAllows(c *call) string {
	seen := 0
	for _, v := range c.args {
		if !v.known || v.many {
			return whyUnknownWord
		}
		switch {
		case strings.HasPrefix(v.text, "-"):
			if !strings.Contains(" -4 -6 -br -brief -c -color -o -oneline -s -j -json -d ", " "+v.text+" ") || seen > 0 {
				return "this option of ip is not known"
			}
		case seen == 0:
			if !strings.Contains(" a addr address l link r route n neigh rule ", " "+v.text+" ") {
				return "this object of ip is not known"
			}
			seen++
		case seen == 1:
			if v.text != "show" && v.text != "list" && v.text != "ls" {
				return "this verb of ip is not known to change nothing"
			}
			seen++
		}
	}
	if seen == 0 {
		return "there is no object that ip shows"
	}
	return ""
}

func getentAllows(_ *call, _ []option, operands []value) string {
	if len(operands) > 0 && operands[0].known && strings.Contains(" passwd group services protocols ", " "+operands[0].text+" ") {
		return ""
	}
	return "this database may be secret, or on the network"
}

// pager asks for the option by which no pager runs.
func pager(options []option) string {
	for _, o := range options {
		if o.name == "no-pager" {
			return ""
		}
	}
	return "on a terminal it runs a pager: add --no-pager"
}

func systemctlAllows(_ *call, options []option, operands []value) string {
	if len(operands) == 0 || !operands[0].known {
		return "there is no verb that is known"
	}
	switch operands[0].text {
	case "is-active", "is-enabled", "is-failed":
		return ""
	case "status", "show", "list-units", "list-unit-files", "list-timers", "list-sockets", "cat":
		return pager(options)
	}
	return "this verb is not known to change nothing"
}

func versionAllows(c *call) string {
	if len(c.args) == 1 && (c.args[0].is("--version") || c.args[0].is("-V") && (c.name == "python3" || c.name == "python") || c.args[0].is("-v") && c.name == "node") {
		return ""
	}
	return "it may run code that is in its arguments or in the workspace"
}
