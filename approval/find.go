package approval

import (
	"path"
	"slices"
	"strings"
)

// findTests are what find may be asked, with how many words they want: none deletes, writes or runs.
var findTests = func() map[string]int {
	tests := make(map[string]int)
	for word := range strings.FieldsSeq(`! ( ) , -not -a -and -o -or -true -false -daystart -depth -d -mount -xdev -noleaf -print -print0 -prune -quit -ls -empty -executable
		-readable -writable -nouser -nogroup -follow -ignore_readdir_race -warn -nowarn -H -L -P`) {
		tests[word] = 0
	}
	for word := range strings.FieldsSeq(`-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -perm -user -group -uid -gid -links -inum
		-mtime -atime -ctime -mmin -amin -cmin -newer -anewer -cnewer -newermt -newerat -newerct -samefile -lname -ilname -fstype -used -maxdepth -mindepth -printf`) {
		tests[word] = 1
	}
	return tests
}()

// findRuns are the tests of find that run a command.
var findRuns = []string{"-exec", "-execdir", "-ok", "-okdir"}

// findEnd returns where the command that begins at start ends: at a ; or at a + behind {}. It is unclear if a word before that may be one of them:
// the words behind that word are tests then. Some find programs take each + for the end.
func findEnd(args []value, start int) (end int, unclear bool) {
	for end = start; end < len(args); end++ {
		if args[end].is(";") || args[end].is("+") && args[end-1].is("{}") {
			break
		}
		unclear = unclear || args[end].mayBe(";") || args[end].mayBe("+")
	}
	return end, unclear
}

// mayBe reports whether the value, or one of several words that it becomes, may be a text of one character.
func (v value) mayBe(text string) bool {
	switch {
	case v.known && !v.many:
		return v.text == text && !v.home
	case v.splits:
		return true
	case v.numeric:
		return false
	}
	ok, err := path.Match(strings.ReplaceAll(v.pattern, hidden, "*"), text)
	return ok || err != nil
}

// starts are where find starts: the words before its first test, without -H, -L, -P and -O. Without any, it is where find runs.
func (c *call) starts() (list []value) {
	for _, v := range c.args {
		switch {
		case slices.Contains([]string{"-H", "-L", "-P"}, v.pattern) || strings.HasPrefix(v.pattern, "-O"):
		case v.pattern != "" && strings.Contains("-(!,", v.pattern[:1]):
			return list
		default:
			list = append(list, v)
		}
	}
	return list
}

const whyUnknownEnd = "a word whose value is not known may end the command that it runs"

// find judges the commands that find runs.
func (c *call) find() {
	for i := 0; i < len(c.args); i++ {
		if !slices.Contains(findRuns, c.args[i].pattern) {
			continue
		}
		end, unclear := findEnd(c.args, i+1)
		if unclear {
			c.add(Ask, "read.find", whyUnknownEnd)
		}
		if strings.HasSuffix(c.args[i].pattern, "dir") {
			c.w.s.moves = append(c.w.s.moves, "") // It runs in the directory of each file.
			for _, v := range c.starts() {
				c.w.enter(v, false)
			}
		}
		command := slices.Clone(c.args[i+1 : end])
		for j, v := range command {
			if strings.Contains(v.pattern, "{}") {
				before, _, _ := strings.Cut(v.pattern, "{}")
				// A path begins with where find started, which is no option.
				command[j].known, command[j].text, command[j].noDash = false, before, true
				command[j].pattern = strings.ReplaceAll(v.pattern, "{}", hidden)
				command[j].many = c.args[min(end, len(c.args)-1)].is("+")
			}
		}
		if at := c.w.above(c.starts()); at != "" && len(command) > 0 && !slices.Contains(namesOnly, base(command[0].text)) {
			c.add(Ask, ruleRead, readsBelow(at))
		}
		c.command(command)
		i = end
	}
}

func findAllows(c *call) string {
	started := false
	for i := 0; i < len(c.args); i++ {
		v := c.args[i]
		if slices.Contains(findRuns, v.text) && v.known {
			if v.text == "-ok" || v.text == "-okdir" {
				return "it asks at the terminal"
			}
			end, unclear := findEnd(c.args, i+1)
			if unclear {
				return whyUnknownEnd
			}
			if end >= len(c.args) || end == i+1 {
				return "the end of the command that it runs is missing"
			}
			i, started = end, true
			continue
		}
		n, ok := findTests[v.text]
		switch {
		case v.known && !v.many && ok:
			if i += n; i >= len(c.args) || n == 1 && c.args[i].many {
				return "the word behind " + v.text + " is missing, or may be several"
			}
			started = started || v.text != "-H" && v.text != "-L" && v.text != "-P"
		case v.known && strings.HasPrefix(v.text, "-O") && len(v.text) == 3 && !started:
		case !started && !v.mayBeOption() && !strings.HasPrefix(v.text, "(") && !strings.HasPrefix(v.text, "!") && !strings.HasPrefix(v.text, ",") && (v.text != "" || v.noDash):
		case v.text == "" && !v.known:
			return "a word whose value is not known may be a test that deletes, writes or runs"
		default:
			return v.text + " is no test of find that is known to change nothing"
		}
	}
	return ""
}
