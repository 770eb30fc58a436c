package approval

import (
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

// sqlChange finds statements that delete, in a text for a database.
var sqlChange = lazyregexp.New(`(?i)\b(drop|truncate|delete|alter|update)\b`)

// asking are commands that ask, with a reason of their own. They change nothing about the verdict: what no rule knows
// asks too.
var asking = []rule{
	{name: "ask.git-push-force", reason: "it replaces what others have pushed", programs: "git", when: func(c *call) bool {
		verb, in := c.gitVerb()
		return verb == "push" && (in.has("f", "force", "force-with-lease", "mirror", "delete", "d", "prune") || slices.ContainsFunc(in.texts(), func(t string) bool { return strings.HasPrefix(t, "+") || strings.HasPrefix(t, ":") }))
	}, yes: []string{"git push --force", "git push -f origin main", "git -C x push --forc", "git push origin +main", "git push origin :main"}, no: []string{"git push origin main"}},
	{name: "ask.git-discard", reason: "it throws away changes that were not committed", programs: "git", when: func(c *call) bool {
		verb, in := c.gitVerb()
		return verb == "reset" && in.has("hard", "merge", "keep") || verb == "clean" || verb == "checkout" || verb == "restore" || verb == "stash" && slices.ContainsFunc(in.texts(), func(t string) bool { return t == "drop" || t == "clear" })
	}, yes: []string{"git reset --hard", "git clean -fdx", "git checkout .", "git restore a", "git stash drop"}, no: []string{"git reset a"}},
	{name: "ask.sql", reason: "the statement deletes or changes data", programs: "psql mysql mariadb sqlite3 duckdb clickhouse-client sqlcmd", when: func(c *call) bool {
		return slices.ContainsFunc(c.texts(), sqlChange().MatchString)
	}, yes: []string{"psql -c 'DROP TABLE a'", "mysql -e 'truncate a'", "sqlite3 a.db 'delete from a'"}, no: []string{"psql -c 'select 1'"}},
	{name: "ask.delete", reason: "it deletes files", programs: "rm rmdir unlink shred srm trash trash-put",
		yes: []string{"rm a", "rmdir d", "unlink a"}, no: []string{"ls rm"}},
	{name: "ask.write", reason: "it writes files", programs: "cp mv mkdir touch ln install tee truncate split csplit dd rsync scp sftp patch chmod chown chgrp mktemp mkfifo mknod sponge gzip gunzip bzip2 xz zstd zip 7z cpio ar ranlib strip objcopy ptx",
		yes: []string{"cp a b", "tee a", "touch a", "ptx -G a b", "split a", "csplit a 1", "dd of=a", "zip -T -TT x a", "ar r a b"}, no: []string{"ls cp"}},
	{name: "ask.environment", reason: "it prints variables, of which some are secrets", programs: "printenv declare export compgen",
		yes: []string{"printenv", "printenv PATH"}, no: []string{"echo printenv"}},
	{name: "ask.interpreter", reason: "it runs code that is in its arguments, in a file or in its input", programs: "perl ruby node deno bun php lua luajit Rscript julia tclsh osascript python2 python3* python gawk.* guile racket java",
		when: func(c *call) bool { return len(c.args) != 1 },
		yes:  []string{"python3 -c 'print()'", "perl -e 1", "node -e 1", "python3", "ruby -c a", "python3 x.py -v", "perl -c a"}, no: []string{"python3 --version"}},
	{name: "ask.build", reason: "it runs code of the workspace: build files, tests, plugins", programs: "make gmake ninja cmake meson bazel go cargo rustup npm yarn pnpm npx pip pip3 pytest tox gradle mvn ant rake bundle gem composer dotnet swift mix sbt lein stack cabal terraform tsc eslint prettier jest webpack vite gcc g++ clang cc ld just task",
		when: func(c *call) bool {
			return !(len(c.args) == 1 && c.args[0].is("--version") && slices.Contains([]string{"gcc", "g++", "clang", "cc", "make", "cmake"}, c.name))
		},
		yes: []string{"go test ./...", "go vet -vettool=x", "go list", "go version", "cargo check", "cargo --version", "make -n", "npm ls", "npm --version", "pytest --collect-only", "gcc -wrapper x", "terraform plan", "jest --version", "mvn -v", "go env -w A=b", "go generate"}, no: []string{"gcc --version"}},
	{name: "ask.network", reason: "it sends data to another machine, if only the name that it asks for", programs: "curl wget fetch ping ping6 dig nslookup host traceroute tracepath mtr nc ncat netcat socat telnet ftp openssl gh glab aws gcloud az kubectl helm docker podman nerdctl scp rsync whois ab http https xh",
		when: func(c *call) bool { return !(len(c.args) == 1 && c.args[0].is("--version")) },
		yes:  []string{"curl x", "curl -o F x", "wget -O- x", "ping -c1 a", "dig a", "nc a 1", "gh api x", "aws s3 ls", "kubectl get pods", "docker ps", "openssl version -a", "nslookup a", "host a"}, no: []string{"docker --version"}},
	{name: "ask.install", reason: "it installs or removes software, with the scripts in it", programs: "apt apt-get aptitude dpkg rpm yum dnf zypper pacman apk brew snap flatpak nix port emerge",
		when: func(c *call) bool {
			_, _, why := dpkgOptions.parse(c.args)
			return c.name != "dpkg" || why != "" || len(c.args) == 0
		},
		yes: []string{"apt-get install a", "brew install a", "dpkg -i a", "rpm --eval x", "apt list"}, no: []string{"dpkg-query -W"}},
	{name: "ask.processes", reason: "it ends or changes processes", programs: "kill killall pkill fuser renice xkill skill top htop",
		yes: []string{"kill 1", "pkill a", "killall a", "fuser -k a", "top"}, no: []string{"pgrep a"}},
	{name: "ask.services", reason: "it changes the system, or runs something later", programs: "service crontab at batch mount umount swapon swapoff sysctl modprobe insmod rmmod useradd usermod userdel passwd groupadd visudo chsh iptables nft ufw ifconfig route arp hwclock timedatectl hostnamectl loginctl ldconfig update-alternatives fdisk parted losetup cryptsetup lvremove vgremove zpool zfs",
		yes: []string{"crontab -r", "mount a b", "sysctl -w a=b", "service a stop", "ifconfig", "route", "swapon"}, no: []string{"systemctl is-active a"}},
	{name: "ask.editor", reason: "it starts an editor or a pager, which can run commands", programs: "vim vi view ex ed nano emacs less more most man info bat batcat code subl xdg-open open sensible-browser nvim micro pico",
		yes: []string{"vim -c x a", "less a", "man ls", "ed a", "bat a", "xdg-open a"}, no: []string{"cat a"}},
	{name: "ask.shell", reason: "it changes what commands mean in the session, or runs a text in it", programs: "source . alias unalias trap hash enable bind complete compopt fc history set shopt builtin let ulimit umask suspend disown fg bg getopts",
		when: func(c *call) bool { return !slices.Contains([]string{"set", "ulimit", "umask"}, c.name) },
		yes:  []string{"source a", ". a", "alias a=b", "trap x EXIT", "hash -p /p a", "enable -f a b", "bind -x a", "history -w", "fc -e x", "shopt -s extglob", "complete -C x y"}, no: []string{"cd a"}},
}
