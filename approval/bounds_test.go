package approval_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// A script that is as long as may be, or that makes long words of short ones, costs no more memory than its length explains, and so not much time.
func TestAJudgementIsBounded(t *testing.T) {
	testenv.Slow(t)
	const longest = 60 << 10
	of := func(part string) string { return strings.Repeat(part, longest/len(part)) }
	var twice strings.Builder
	fmt.Fprintln(&twice, "x0=abcdefghij")
	for i := range 60 {
		fmt.Fprintf(&twice, "x%d=$x%d$x%d\n", i+1, i, i)
	}
	var many, functions strings.Builder
	for i := range longest / 2 / len("a0000=1;") {
		fmt.Fprintf(&many, "a%04d=1;", i)
	}
	for i := range longest / 2 / len("f0000(){ :;};") {
		fmt.Fprintf(&functions, "f%04d(){ :;};", i)
	}
	sevenCDs := ""
	for i := range 7 {
		sevenCDs += fmt.Sprintf(`cd a%d"$x"; `, i) // After each, the script may be in twice as many.
	}
	half := func(part string) string { return strings.Repeat(part, longest/2/len(part)) }
	for name, script := range map[string]string{
		"a long word":             "ls " + of("a"),
		"a long path":             "ls " + of("a/"),
		"dots":                    "ls " + of("../"),
		"a long pattern":          "ls " + of("*"),
		"a long path of patterns": "ls " + of("*/"),
		"brackets":                "ls " + of("["),
		"classes":                 "ls " + of("[a]"),
		"escapes":                 "ls " + of(`\a`),
		"quotes":                  "ls " + of("''"),
		"strings":                 "ls " + of("$'a'"),
		"variables":               "x=1; ls " + of("$x"),
		"words":                   "x=1; ls " + of("$x "),
		"long values":             "x=" + strings.Repeat("a", longest/2) + "; ls " + strings.Repeat("$x ", longest/2/3),
		"one long value":          "x=" + strings.Repeat("a", longest/2) + "; ls " + strings.Repeat("$x", longest/2/2),
		"a value of many words":   "x='" + strings.Repeat("a ", longest/4) + "'; ls " + strings.Repeat("$x ", longest/2/3),
		"a value of many options": "x='" + strings.Repeat("-l ", longest/6) + "'; for i in a b; do cd $i; cat $x; done",
		"values that are cut":     "x=/" + strings.Repeat("a/", longest/4) + "; cat " + strings.Repeat("${x%a} ", longest/2/8),
		"many words in one word":  "x='" + strings.Repeat("/* ", 20<<10/3) + "'; cat " + strings.Repeat("$x", 25),
		"cut values of words":     "x='" + strings.Repeat("/* ", 20<<10/3) + "'; : $x; cat " + strings.Repeat(`"${x%a}" `, 25),
		"names for long bundles":  `a=$1; x=` + strings.Repeat("$a", 8000) + "; for f in shadow sudoers limpet environ config x; do cat " + strings.Repeat(`"-abcdefgh$x" `, 120) + "; done",
		"findings of one text":    "for i in a b; do cd $i; bash -c \"" + half("git log;") + "\"; done",
		"names for unknown parts": "for f in shadow sudoers limpet environ config x; do cat " + of(`"/$x/$f" `) + "; done",
		"a name for many parts":   sevenCDs + "for f in shadow x; do cat " + of(`$x/`) + "; done",
		"braces":                  "ls " + of("{a,b}"),
		"braces of long words":    "ls {" + strings.Repeat("a", longest/2) + "," + strings.Repeat("a", longest/2) + "}{a,b}{a,b}{a,b}{a,b}{a,b}",
		"options":                 "grep " + of("-i ") + "a",
		"a bundle":                "grep -" + of("i") + " a b",
		"each twice the last":     twice.String() + "sort $x60",
		"commands":                of("ls;"),
		"substitutions":           "ls " + of("$(:)"),
		"scripts within":          "sh -c " + of(`\'`),
		"assignments":             of("a=1 ") + "ls",
		"a sum":                   "((" + of("1+") + "1))",
		"tests":                   "[[ a " + of("&& a ") + "]]",
		"a script of sed":         "sed -n '" + of("p;") + "'",
		"a program of awk":        "awk '{" + of("print a;") + "}'",
		"conditions of find":      "find . " + of("-true -o ") + "-true",
		"wrappers":                of("env ") + "ls",
		"patterns of grep":        "grep " + of("-e a ") + "b",
		"functions":               of("f(){ :;};") + "ls",
		"pipes":                   of("ls|") + "ls",
		"blocks":                  strings.Repeat("{ ", 500) + "ls;" + strings.Repeat("};", 500),
		"branches with variables": many.String() + half("ls&&") + "ls",
		"variables in branches":   half("ls&&") + "ls;" + "ls&&" + strings.ReplaceAll(many.String(), ";", "&&") + "ls",
		"functions and variables": many.String() + functions.String() + "ls",
		"functions in functions":  strings.Repeat("f(){ ", 1000) + "ls;" + strings.Repeat("};", 1000),
		"nested substitutions":    strings.Repeat("ls $(", 1000) + "ls" + strings.Repeat(")", 1000),
		"nested braces":           "ls " + strings.Repeat("{a,", 1000) + "b" + strings.Repeat("}", 1000),
		"a long range":            "ls {1..999999999}",
		"loops":                   strings.Repeat("for i in a b; do ", 1000) + "ls;" + strings.Repeat("done;", 1000),
		"redirections":            "ls " + of("<a "),
		"paths in directories":    sevenCDs + "cat " + of(".. "),
		"wrapped, in directories": sevenCDs + strings.Repeat("env ", 7) + "cat " + of("../a "),
		"walks in directories":    sevenCDs + "grep -r x " + of("../a "),
		"long walks":              "cd /; grep -r x " + of("a "),
		"a long path up":          sevenCDs + "cat " + of("../"),
		"long paths":              "cd /" + strings.Repeat("a/", longest/6) + "; cat " + strings.Repeat("../b ", longest/2/5),
		"long patterns of paths":  "cd " + strings.Repeat("a/", longest/4) + "; cat " + strings.Repeat("../* ", longest/3/5),
		"ways back":               sevenCDs + of("popd&"),
		"ways back in a loop":     sevenCDs + "while ls; do cd b; " + half("popd&") + "done",
		"directories for a name":  "for d in /etc /proc/self ~ ~/.config; do cat " + of(`"$d/x" `) + "; done",
		"changes of directory":    of(`cd "$x";`),
		"changes below":           of("cd a;"),
		"changes up and down":     of("cd a&&cd ..;"),
		"texts from a string":     "cat " + of("<<<a "),
		"texts for names":         "xargs cat " + of("<<<a "),
		"pipes in blocks":         strings.Repeat("a | { ", 490) + "ls;" + strings.Repeat("};", 490),
		"names in blocks":         strings.Repeat("cat <<<a | { ", 490) + "xargs ls;" + strings.Repeat("};", 490),
		"loops that move":         strings.Repeat(`while cd "$x"; do `, 490) + "ls;" + strings.Repeat("done;", 490),
		"a long loop that moves":  "while ls; do " + half("cat a;") + `cd a; done`,
		"loops in subshells":      strings.Repeat("for i in a b; do cd a; (", 240) + "ls" + strings.Repeat("); done;", 240),
		"many words for xargs":    "echo " + of("a,") + " | xargs cat",
		"a here-document":         "cat <<E\n" + of("$x\n") + "\nE\n",
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			j := approval.Judge(script, &approval.Options{Home: "/home/me", Dir: "/home/me/src"})
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			if name == "each twice the last" {
				assert.Equal(t, approval.Ask, j.Verdict, "the last one may be an option")
			}
			const most = 128 << 20
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(most))
			assert.Less(t, took, 15*time.Second, "the time of a slow machine, and with -race")
			t.Logf("%v, %d KB, %v", j.Verdict, (after.TotalAlloc-before.TotalAlloc)>>10, took)
		})
	}
}

// What is too long to be looked at asks: it may be anything.
func TestWhatIsNotLookedAtAsks(t *testing.T) {
	long := "a=" + strings.Repeat("x", 30000) + "\n: " + strings.Repeat(`"$a" `, 30) + "\n"
	for _, script := range []string{`s=.env; cat "$s"`, `s=~/.ssh/id_rsa; cat "$s"`, `s=~/.config/limpet/approvals.json; cat "$s"`, `r=/; rm -rf "$r"`} {
		assert.NotEqual(t, approval.Allow, approval.Judge(long+script, &approval.Options{Home: "/home/me"}).Verdict, script)
	}
	loops := strings.Repeat("while ls; do "+strings.Repeat("ls;", 1500)+"done;", 2)
	assert.Equal(t, approval.Ask, approval.Judge(loops, nil).Verdict, "findings of rounds count")
	// The reason stays in a sandbox that only reads.
	script := "cat config"
	for i := range 200 {
		script = fmt.Sprintf(`cd a%d"$x"; `, i) + script
	}
	for _, opts := range []*approval.Options{nil, {Home: "/home/me", Dir: "/home/me/src"}, {Home: "/home/me", Contained: true}} {
		assert.Equal(t, approval.Ask, approval.Judge(script, opts).Verdict)
	}
	assert.Equal(t, approval.Allow, approval.Judge("for i in {1..100}; do cat a{1..1000}$i; done", nil).Verdict, "what is left out is numbers")
}
