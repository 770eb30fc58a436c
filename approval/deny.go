package approval

import (
	"slices"
	"strings"
)

// rule decides about a command that it knows.
type rule struct {
	name, reason string
	programs     string           // with spaces between; a * at the end of one stands for anything
	when         func(*call) bool // nil: always

	// Examples, which tests run: the rule decides a part of each script in yes, and no part of one in no.
	yes, no []string
}

func (r *rule) program(name string) bool {
	for one := range strings.FieldsSeq(r.programs) {
		prefix, pattern := strings.CutSuffix(one, "*")
		if one == name || pattern && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// denied returns the rule that denies a command, wherever its program is.
func (c *call) denied() (reason, rule string) {
	for _, r := range denying {
		if r.program(c.name) && (r.when == nil || r.when(c)) {
			return r.reason, r.name
		}
	}
	return "", ""
}

// denying are what nobody wants. They look at normalised paths, and at options in every spelling: abbreviations and
// bundles count.
var denying = []rule{
	{
		name: "deny.delete-system", reason: "it deletes a home or a directory of the system",
		programs: "rm srm shred", when: func(c *call) bool { return (c.name == "shred" || c.has("r", "R", "recursive")) && c.roots() },
		yes: []string{"rm -rf /", "rm -r -f //", "/bin/rm --recursive --force /", "rm --rec /etc", "rm -fr ~", `\rm -rf ~/`, "rm -Rf /*", "rm -rf $HOME/*", "rm / -rf", "rm -rf -- /usr/../", "rm -rf /home/me"},
		no:  []string{"rm -rf build", "rm -rf ~/project/build", "rm /etc/motd", "rm -rf /opt/app"},
	},
	{
		name: "deny.find-delete", reason: "it deletes all that it finds in a home or a directory of the system",
		programs: "find", when: func(c *call) bool {
			// A start that other tests narrow is no accident of this kind, but is not told apart.
			return slices.Contains(c.texts(), "-delete") && c.roots() && !slices.ContainsFunc(c.texts(), func(t string) bool { return t == "-name" || t == "-iname" || t == "-path" })
		},
		yes: []string{"find / -delete", "find ~ -type f -delete"},
		no:  []string{"find build -delete", "find ~ -name '*.o' -delete"},
	},
	{
		name: "deny.move-system", reason: "it moves a home or a directory of the system",
		programs: "mv", when: func(c *call) bool { ops := c.operands(); return len(ops) > 1 && c.rootsOf(ops[:len(ops)-1]) },
		yes: []string{"mv / /tmp/x", "mv ~ /dev/null", "mv /etc /tmp"},
		no:  []string{"mv a /etc", "mv /etc/motd /tmp"},
	},
	{
		name: "deny.format", reason: "it makes a new file system, over the files that are there",
		programs: "mkfs mkfs.* mke2fs mkswap newfs blkdiscard",
		yes:      []string{"mkfs.ext4 /dev/sda1", "mkfs -t xfs /dev/sdb", "/sbin/mke2fs x"},
		no:       []string{"mkdir fs"},
	},
	{
		name: "deny.wipe", reason: "it wipes what says where the files on a device are",
		programs: "wipefs", when: func(c *call) bool { return c.has("a", "all", "o", "offset") },
		yes: []string{"wipefs -a /dev/sda", "wipefs --all /dev/sdb"},
		no:  []string{"wipefs /dev/sda"},
	},
	{
		name: "deny.write-device", reason: "it writes to a device, over the files on it",
		programs: "tee cp mv install shred truncate badblocks sgdisk sfdisk parted", when: func(c *call) bool {
			return slices.ContainsFunc(c.targets(), func(v value) bool { return isDevice(c.w.normal(v)) })
		},
		yes: []string{"tee /dev/sda", "cp image /dev/sdb", "shred /dev/nvme0n1", "truncate -s 0 /dev/sda"},
		no:  []string{"cp /dev/sda image", "tee /dev/null"},
	},
	{
		name: "deny.dd", reason: "it writes to a device, over the files on it, or a file by which others get in",
		programs: "dd dcfldd", when: func(c *call) bool {
			return slices.ContainsFunc(c.args, func(v value) bool {
				to, ok := strings.CutPrefix(v.pattern, "of=")
				_, verdict := c.w.path(value{pattern: to, text: to, known: true, home: strings.HasPrefix(to, "~")}, true)
				return ok && verdict == Deny
			})
		},
		yes: []string{"dd if=/dev/zero of=/dev/sda", "dd of=//dev/./nvme0n1 if=x", "dd if=x of=/etc/passwd"},
		no:  []string{"dd if=/dev/sda of=image", "dd if=x of=/dev/null"},
	},
	{
		name: "deny.rights-system", reason: "it changes who may do what with all files of a home or of the system",
		programs: "chmod chown chgrp setfacl chattr", when: func(c *call) bool { return c.has("R", "recursive") && c.roots() },
		yes: []string{"chmod -R 777 /", "chown -R me ~", "chmod --recursive 0 /etc", "chgrp -hR users /usr"},
		no:  []string{"chmod -R 755 build", "chmod 755 ~"},
	},
	{
		name: "deny.write-login", reason: "it writes a file by which others get in, or get more rights",
		programs: "tee cp mv install ln rm unlink chmod chown truncate sed shred rsync sponge", when: func(c *call) bool {
			if c.name == "sed" && !c.has("i", "in-place") {
				return false
			}
			return slices.ContainsFunc(c.targets(), func(v value) bool { _, verdict := c.w.path(v, true); return verdict == Deny })
		},
		yes: []string{"tee -a /etc/passwd", "cp x /etc/sudoers.d/y", "sed -i s/a/b/ /etc/shadow", "rm /etc/passwd", "tee -a ~/.ssh/authorized_keys", "cp -t /etc/sudoers.d x", "install --target-directory=/etc/sudoers.d x"},
		no:  []string{"cp /etc/passwd x", "tee x", "sed -n p /etc/passwd"},
	},
	{
		name: "deny.kill-all", reason: "it ends every process that the user may end",
		programs: "kill killall5", when: func(c *call) bool { return c.name == "killall5" || c.killsAll() },
		yes: []string{"kill -9 -1", "kill -1", "kill -s KILL -1", "kill -- -1", "kill -KILL -- -1", "kill -n 9 -1", "command kill -9 -1", "killall5 -9"},
		no:  []string{"kill -1 1234", "kill -9 %1", "kill -l 1"},
	},
	{
		name: "deny.power", reason: "it stops the machine",
		programs: "shutdown reboot halt poweroff",
		yes:      []string{"shutdown -h now", "/sbin/reboot", "sudo poweroff", "env halt"},
		no:       []string{"echo reboot"},
	},
	{
		name: "deny.init", reason: "it stops the machine, or all of its services",
		programs: "init telinit systemctl", when: func(c *call) bool {
			stops := []string{"0", "1", "6", "s", "S"}
			if c.name == "systemctl" {
				stops = []string{"poweroff", "reboot", "halt", "kexec", "rescue", "emergency", "exit", "suspend", "hibernate", "soft-reboot", "isolate", "default"}
			}
			return slices.ContainsFunc(c.operands(), func(v value) bool { return slices.Contains(stops, v.text) })
		},
		yes: []string{"init 0", "telinit 6", "systemctl --force reboot", "systemctl poweroff"},
		no:  []string{"systemctl --no-pager status reboot.target", "init q"},
	},
}

// roots reports whether an operand is a home or a directory of the system.
func (c *call) roots() bool { return c.rootsOf(c.operands()) }

func (c *call) rootsOf(operands []value) bool { return slices.ContainsFunc(operands, c.w.isRoot) }

// targets are the files that a command may write: of those that copy, the last and the argument of -t, and else all operands.
func (c *call) targets() []value {
	list := c.operands()
	if c.name != "cp" && c.name != "install" && c.name != "ln" && c.name != "rsync" {
		return list
	}
	var to []value
	if len(list) > 1 {
		to = append(to, list[len(list)-1])
	}
	for i, v := range c.args {
		dir, long := strings.CutPrefix(v.pattern, "--target-directory=")
		if !long {
			dir, long = strings.CutPrefix(v.pattern, "-t")
		}
		switch {
		case long && dir == "" && i+1 < len(c.args), v.pattern == "--target-directory" && i+1 < len(c.args):
			to = append(to, c.args[i+1])
		case long:
			to = append(to, value{pattern: dir, text: dir, known: true, home: strings.HasPrefix(dir, "~")})
		}
	}
	return to
}

// killsAll reports whether a kill is of all processes: -1 behind the signal, or alone.
func (c *call) killsAll() bool {
	for i, text := range c.texts() {
		if text == "-1" && (i > 0 || len(c.args) == 1) && !(i == 1 && (c.args[0].pattern == "-n" || c.args[0].pattern == "-s")) {
			return true
		}
	}
	return false
}
