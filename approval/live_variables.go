package approval

import (
	"maps"
	"slices"
	"strings"
)

func sortedKeys(m map[string]change) []string { return slices.Sorted(maps.Keys(m)) }

// calmVariables are variables that programs may get without harm, besides those that scripts may set.
var calmVariables = fields("PATH PWD OLDPWD SHLVL _ VIRTUAL_ENV VIRTUAL_ENV_PROMPT CONDA_PREFIX CONDA_DEFAULT_ENV CONDA_SHLVL CONDA_PROMPT_MODIFIER NVM_DIR NVM_BIN NVM_INC COLORTERM TERM PS1 LS_COLORS TIME_STYLE TMPDIR")

// calmVariable reports whether a variable of that value changes no program's meaning: PATH is looked at by itself, HOME makes every script ask.
func calmVariable(name, value string) bool {
	if strings.HasPrefix(name, "LIMPET") || calmVariables[name] {
		return true
	}
	if name == "PAGER" || strings.HasSuffix(name, "_PAGER") {
		return value == "" || value == "cat"
	}
	return harmless(name) && harmlessValue(name, text(value))
}

func text(text string) value { return value{text: text, pattern: text, known: true} }

// readByAll begin the names of variables that the system's libraries, or most programs, go by.
var readByAll = strings.Fields(`LD_ DYLD_ GLIBC_ GCONV_ LOCPATH NLSPATH LOCALDOMAIN RES_OPTIONS HOSTALIASES RESOLV_ MALLOC_ LIBC_ LC_ LANG TZ GETCONF_ NIS_ TERMINFO TERMCAP POSIXLY_CORRECT
	POSIX_ _POSIX SHELL BASHOPTS BASH_FUNC HOME XDG_ ASAN_ LSAN_ TSAN_ UBSAN_ DEBUGINFOD_ SSL_ OPENSSL_ KRB5 NSS_`)

// readBy are words in the names of variables that a program goes by, besides its own name.
var readBy = map[string]string{
	"git":   "GPG SSH PROXY CURL EMAIL LV PAGER LESS EDITOR VISUAL BROWSER",
	"bash":  "BASH ENV PS4 PROMPT",
	"sh":    "BASH ENV PS4",
	"dash":  "ENV PS4",
	"tar":   "TAPE RSH GZIP BZIP XZ ZSTD LZ",
	"unzip": "ZIP", "zipinfo": "ZIP",
	"zcat": "GZIP", "gzcat": "GZIP", "bzcat": "BZIP", "xzcat": "XZ", "lzcat": "XZ LZ", "zstdcat": "ZSTD",
	"mawk": "AWK", "gawk": "AWK", "nawk": "AWK",
	"egrep": "GREP", "fgrep": "GREP", "rg": "RIPGREP",
	"fdfind":  "FD",
	"file":    "MAGIC",
	"python3": "PYTHON", "node": "NPM",
	"gcc": "GCC COMPILE COLLECT CPATH INCLUDE LIBRARY", "g++": "GCC COMPILE COLLECT CPATH INCLUDE LIBRARY", "cc": "GCC COMPILE COLLECT CPATH INCLUDE LIBRARY CLANG CCC",
	"clang":  "CCC COMPILE CPATH INCLUDE LIBRARY",
	"docker": "BUILDKIT COMPOSE", "podman": "CONTAINER REGISTRY STORAGE",
	"ruby": "GEM BUNDLE", "java": "JDK", "rustc": "RUST CARGO", "cmake": "CC CXX", "make": "MFLAGS",
	"ps": "PROC CMD_ENV UNIX95", "pgrep": "PROC", "pidof": "PROC", "watch": "PROC", "free": "PROC", "uptime": "PROC", "vmstat": "PROC", "w": "PROC",
	"lsblk": "BLKID MOUNT SMARTCOLS", "findmnt": "MOUNT SMARTCOLS", "lscpu": "SMARTCOLS",
	"systemctl": "SYSTEMD DBUS PAGER LESS EDITOR", "journalctl": "SYSTEMD DBUS PAGER LESS", "dpkg-query": "DPKG PAGER LESS", "dpkg": "DPKG PAGER LESS",
	"jq": "JQ", "tree": "TREE", "xargs": "", "env": "", "timeout": "", "nice": "", "command": "", "builtin": "",
}

// reads reports whether a program may go by a variable. Of a program that no rule knows it is not known.
func reads(program, variable string) bool {
	variable = strings.ToUpper(variable)
	if slices.ContainsFunc(readByAll, func(prefix string) bool { return strings.HasPrefix(variable, prefix) }) {
		return true
	}
	more, listed := readBy[program]
	if _, reader := readers[program]; !reader && !listed {
		return true
	}
	own := strings.ToUpper(strings.Trim(program, "0123456789-"))
	return len(own) > 1 && strings.Contains(variable, own) ||
		slices.ContainsFunc(strings.Fields(more), func(word string) bool { return strings.Contains(variable, word) })
}
