package approval

import (
	"slices"
	"strings"
)

const staysInShell = "it changes nothing outside of the shell, and nothing in it that commands go by"

// shellReaders are builtins.
var shellReaders = []reader{
	{name: "shell.echo", reason: "it prints its words", programs: "echo", own: always,
		yes: []string{"echo a", `echo -e "$x" *`, "echo $((1+1))"}, no: []string{"echo a >F", "echo $(touch a)", "echo $((x))", "echo ${x@P}", "echo ${!x}", "echo `touch a`"}},
	{name: "shell.printf", reason: "it prints its words", programs: "printf", own: printfAllows,
		yes: []string{`printf '%s\n' "$x"`, "printf -- '%d' 5", "printf 'a%%b'"}, no: []string{`printf -v x a`, `printf "$x"`, "printf '%n' a", `printf -v 'a[$(touch b)]' c`, "printf $x"}},
	{name: "shell.true", reason: "it does nothing", programs: ": true false", own: always,
		yes: []string{":", "true", "false || true"}, no: []string{": >F", ": ${x:=$(touch a)}", ": ${PATH:=/tmp}"}},
	{name: "shell.cd", reason: "it changes the session's directory, and no file", programs: "cd pwd pushd popd dirs", most: -1,
		options: optionSet{short: "LPe", number: true, whole: true},
		yes:     []string{"cd src", "cd", "cd -", "pwd -P", "cd ~/x && ls", `cd -- "$d"`, `cd "$d"`}, no: []string{`cd "$(touch a)"`, "CDPATH=/tmp cd x", "HOME=/tmp cd"}},
	{name: "shell.control", reason: staysInShell, programs: "exit return break continue shift wait times caller logout", own: controlAllows,
		yes: []string{"exit 1", "for f in a; do break; done", "wait", "exit $?"}, no: []string{"wait -p x", `shift "$x"`, "exit 'a[$(touch b)]'"}},
	{name: "shell.set", reason: "it ends with its script", programs: "set", own: setAllows,
		yes: []string{"set -e", "set -euo pipefail", "set -- a b", "set +e", "set -o nounset"}, no: []string{"set", "set -k", "set -x", "set -o posix", "set -f", "set -a", `set "$x"`, "set -o"}},
	{name: "shell.read", reason: "it sets variables that no program reads", programs: "read", most: -1,
		options: optionSet{short: "rd:n:N:st:u:p:a:"}, check: readAllows,
		yes: []string{"read -r line", "read -ra words <a", "read -n 1 -r", "while IFS= read -r line; do echo; done <a"}, no: []string{"read PATH", "read 'a[$(touch b)]'", "read $x", "read -a PATH", "read -e x"}},
	{name: "shell.mapfile", reason: "it sets a variable that no program reads", programs: "mapfile readarray", most: 1,
		options: optionSet{short: "td:n:s:u:"}, check: namesAllow,
		yes: []string{"mapfile -t lines <a"}, no: []string{"mapfile -C 'touch a' x", "mapfile -t PATH", "mapfile -O 'a[$(touch b)]' x"}},
	{name: "shell.unset", reason: "it unsets a variable that no program reads", programs: "unset", most: -1, check: namesAllow,
		yes: []string{"unset x"}, no: []string{"unset -f ls", "unset PATH", "unset 'a[$(touch b)]'", "unset $x"}},
	{name: "shell.type", reason: "it says what a name is", programs: "type", most: -1,
		options: optionSet{short: "afptP", whole: true},
		yes:     []string{"type ls", "type -P go"}, no: []string{"type -x ls"}},
	{name: "shell.test", reason: "it compares", programs: "test [", own: testAllows,
		yes: []string{"[ -f a ]", `[ "$x" = y ]`, `test -n "$x"`, `[ ! -d "$d" ]`, "[ $# -gt 1 ]", `[ "$a" != "$b" ]`, `[ ! "$a" = b ]`, "[ a ]"},
		no:  []string{"[ -v 'a[$(touch b)]' ]", "test -v a", "[ $x = y ]", `[ "$x" "$y" ]`, `[ "$a" "$op" "$b" ]`, "test $x", "[ -R a ]"}},
	{name: "shell.jobs", reason: "it lists", programs: "jobs help", most: -1,
		options: optionSet{short: "lnprsdm"},
		yes:     []string{"jobs -l", "help cd"}, no: []string{"jobs -x touch a", "jobs -x rm a"}},
	{name: "shell.ulimit", reason: "it says what the limits are", programs: "ulimit umask", most: 0,
		options: optionSet{short: "aSHcdflmnpstuv"},
		yes:     []string{"ulimit -a", "umask", "ulimit -n"}, no: []string{"ulimit -n 5", "umask 0", "ulimit $x"}},
}

// printfAllows knows the conversions that only print: %n assigns.
func printfAllows(c *call) string {
	args := c.args
	if len(args) > 0 && args[0].is("--") {
		args = args[1:]
	}
	if len(args) == 0 || !args[0].known || args[0].many || strings.HasPrefix(args[0].text, "-") && len(args) == len(c.args) {
		return "the format is not known, or an option"
	}
	format := args[0].text
	for i := 0; i < len(format); i++ {
		if format[i] == '\\' {
			i++
			if i < len(format) && (format[i] >= '0' && format[i] <= '7' || strings.IndexByte("xuU", format[i]) >= 0) && strings.Contains(format, "%") {
				return "the format has escapes that may be a conversion"
			}
			continue
		}
		if format[i] != '%' {
			continue
		}
		for i++; i < len(format) && strings.IndexByte("-+ #0123456789.*'lhjztL", format[i]) >= 0; i++ {
		}
		if i == len(format) || strings.IndexByte("%sdiouxXcbqQeEfFgG", format[i]) < 0 {
			return "the format has a conversion that may assign to a variable"
		}
	}
	return ""
}

// controlAllows knows numbers alone: bash may evaluate others.
func controlAllows(c *call) string {
	if len(c.args) > 1 && c.name != "wait" {
		return "more than one number: bash gives the line up, and what it sets is not set" // break, continue, exit, return and shift take one.
	}
	for _, v := range c.args {
		if !v.number() && !v.numeric && !(v.noDash && !v.many && v.node != nil && c.w.onlyNumber(v.node.Parts)) {
			return "a word that is no plain number"
		}
	}
	return ""
}

// setAllows knows the options that only end a script earlier, and positional parameters.
func setAllows(c *call) string {
	if len(c.args) == 0 {
		return "it prints all variables, of which some are secrets"
	}
	for i := 0; i < len(c.args); i++ {
		v := c.args[i]
		if v.is("--") {
			return ""
		}
		if !v.known || v.many || len(v.text) < 2 || v.text[0] != '-' && v.text[0] != '+' {
			return "an option of the shell that is not known to change nothing"
		}
		for _, letter := range v.text[1:] {
			switch letter {
			case 'e', 'u':
			case 'o':
				i++
				if i == len(c.args) || !c.args[i].known || !slices.Contains([]string{"pipefail", "errexit", "nounset"}, c.args[i].text) {
					return "an option of the shell that is not known to change nothing"
				}
			default:
				return "an option of the shell that is not known to change nothing"
			}
		}
	}
	return ""
}

// readAllows is namesAllow for read, which has a name behind -a too, and sets REPLY without one.
func readAllows(c *call, options []option, operands []value) string {
	for _, o := range options {
		if o.name == "a" {
			operands = append(operands, o.arg)
		}
	}
	if len(operands) == 0 {
		return ""
	}
	return namesAllow(c, options, operands)
}

// namesAllow is for operands that are names of variables.
func namesAllow(c *call, _ []option, operands []value) string {
	if len(operands) == 0 {
		return "it sets a variable that programs read, or none"
	}
	for _, v := range operands {
		if !v.known || v.many || !c.w.mayHold(v.text) {
			return "a variable that is not known to be harmless"
		}
	}
	return ""
}

// Operators of test that evaluate no name.
const (
	unaryTests  = " -a -b -c -d -e -f -g -h -k -p -r -s -t -u -w -x -G -L -N -O -S -z -n "
	binaryTests = " = == != < > -eq -ne -lt -le -gt -ge -nt -ot -ef "
)

// testAllows knows the forms of test whose operators stand for certain: a value that is -v would evaluate a name.
func testAllows(c *call) string {
	args := c.args
	if c.name == "[" {
		if len(args) == 0 || !args[len(args)-1].is("]") {
			return "the ] is missing"
		}
		args = args[:len(args)-1]
	}
	known := true
	for _, v := range args {
		if v.many {
			return "a value without quotes may be several words, and an operator"
		}
		known = known && v.known
	}
	if known {
		if slices.ContainsFunc(args, func(v value) bool { return v.text == "-v" || v.text == "-R" || v.text == "-o" && len(args) < 3 }) {
			return "this operator evaluates a name"
		}
		return ""
	}
	if len(args) > 1 && args[0].is("!") {
		args = args[1:]
	}
	switch {
	case len(args) <= 1:
		return ""
	case len(args) == 2 && args[0].known && strings.Contains(unaryTests, " "+args[0].text+" "):
		return ""
	case len(args) == 3 && args[1].known && strings.Contains(binaryTests, " "+args[1].text+" "):
		return ""
	}
	return "a value may be an operator"
}
