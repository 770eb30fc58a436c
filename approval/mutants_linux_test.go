package approval_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/internal/testenv"
)

var (
	mutantSeed = flag.Uint64("mutant-seed", 0, "make the scripts of TestMutantsDoWhatWasFound from this `seed`; 0 is 1, or where all is tested another one each day")
	mutantTime = flag.Duration("mutant-time", 3*time.Second, "how long TestMutantsDoWhatWasFound runs scripts")
)

// dresses are what a script is put into, or joined with another one.
var dresses = []string{
	"x=$(%s)", "for i in 1 2; do %s; done", "echo \"$(%s)\"", "if %s; then %s; fi", "%s | %s", "{ %s; }", "(%s)", "[[ $(%s) == a ]]", "case $(%s) in *) %s;; esac", "bash -c '%s'", "bash -c \"%s\"", "sh -c '%s'",
	"env A=b %s", "env %s", "find . -exec %s ;", "find . -exec %s {} \\;", "%s | xargs %s", "xargs %s <a", "f() { %s; }; f", "echo ${x:-$(%s)}", "echo $((%s))", "echo ${x[%s]}", "cat <<E\n%s\nE", "cat <<'E'\n%s\nE", "cat <<<\"%s\"", "read x < <(%s)", "cat <(%s) <(%s)",
	"%s & wait", "printf x %s", "printf -v %s", "while read -r l; do %s; done <a", "while %s; do break; done", "test %s", "[ %s ]", "declare x=%s", "local x=%s", "let x=%s", "trap '%s' EXIT", "coproc %s", "time %s", "! %s", "exec %s", "command %s", "builtin %s", "nice %s", "timeout 5 %s", "nohup %s", "%s;%s", "%s && %s", "%s || %s",
	"x='1 touch F -o F'; %s", "x='%s'; $x", "x=(%s); \"${x[@]}\"", "eval '%s'", "set -- %s; \"$@\"", "IFS=: %s", "A=$(%s) %s", "%s 2>&1", "%s >/dev/null", "%s </dev/null", "%s\n%s", "# %s\n%s", "%s # %s", "ls; %s", "\"%s\"", "$'%s'", "$\"%s\"", "`%s`", "{a,%s}", "select i in 1; do %s; done </dev/null", "until %s; do break; done", "[[ %s ]]", "(( %s ))", "for ((%s;%s;)); do break; done", "mapfile -t x < <(%s)", "awk '{%s}' a", "sed '%s' a", "sort %s", "find %s", "grep %s", "sed %s a", "xargs -I{} %s <a",
}

// bits are what bash, and programs, give a meaning.
var bits = []string{
	"$(", ")", "`", "'", "\"", "\\", ";", "|", "&", "&&", "||", "<(", ">(", ">", ">>", "<", "<<<", "<<E\n", "${", "}", "$((", "))", "[", "]", "{", ",", "!", "~", "*", "?", "\n", " ", "\t", "=", "-", "--", "@", "#", "%", "^", ":", "$", "$'", "$\"", "x=", "((", "[[", "]]",
	"a[", "-v ", "-exec ", " -i", " -o", "eval ", ". ", "{a,b}", "\\\n", "0", "1>&2", "@(", "+=", "\x27", "\r", "..", "/", "/bin/", "\u00a0", "\x7f", "-c ", "function ", "alias ", "a=b ", "$x", "\"$x\"", "$@", "${x}", "${x@P}", "${!x}", "w F", "e", "-f", "-delete", "system(", "|&", ";;", "-print0", "--output=F", "$IFS", "touch ", "F",
}

// breeder makes scripts of others.
type breeder struct {
	rand   *rand.Rand
	donors []string
}

// newBreeder returns one for a test of that number, and the seed that it has.
func newBreeder(test uint64) (b *breeder, seed uint64) {
	switch seed = *mutantSeed; {
	case seed != 0:
	case testenv.All():
		seed = uint64(time.Now().Unix() / (24 * 60 * 60))
	default:
		seed = 1
	}
	return &breeder{rand: rand.New(rand.NewPCG(seed, test))}, seed
}

func (b *breeder) pick(list []string) string { return list[b.rand.IntN(len(list))] }

// span returns the ends of a short part of a text.
func (b *breeder) span(text string) (from, to int) {
	from = b.rand.IntN(len(text) + 1)
	return from, min(len(text), from+b.rand.IntN(12))
}

// next returns another script.
func (b *breeder) next() string {
	script := b.pick(b.donors)
	for range 1 + b.rand.IntN(4) {
		from, to := b.span(script)
		switch b.rand.IntN(6) {
		case 0:
			script = script[:from] + b.pick(bits) + script[from:]
		case 1:
			script = script[:from] + script[to:]
		case 2:
			script = script[:to] + script[from:]
		case 3:
			other := b.pick(b.donors)
			at, end := b.span(other)
			script = script[:from] + other[at:end] + script[to:]
		default:
			dress := strings.Replace(b.pick(dresses), "%s", script, 1)
			for strings.Contains(dress, "%s") {
				dress = strings.Replace(dress, "%s", b.pick(b.donors), 1)
			}
			script = dress
		}
		if len(script) > 400 {
			return script[:400]
		}
	}
	return script
}

// unfit are parts of scripts that are not run, also if they are allowed by mistake: what reaches beyond the sandbox, and programs that start
// others, which are known (git, dpkg), and take their time.
var unfit = []string{"sysrq", "reboot", "shutdown", "poweroff", "halt", ":|:", "git", "dpkg", "apt", "systemctl", "journalctl", "watch", "man ", "docker", "gh ", "find /", "/proc", "/sys", "yes"}

// Scripts that are made of others at random, and are allowed, do what was found, and nothing else.
func TestMutantsDoWhatWasFound(t *testing.T) {
	testenv.Slow(t)
	tr := newTracer(t)
	b, seed := newBreeder(1)
	for _, file := range []string{"ways.txt", "denied.txt"} {
		b.donors = append(b.donors, scripts(t, file)...)
	}
	for _, file := range []string{"ordinary.tsv", "later.tsv", "unseen.tsv"} {
		_, whole, fragments := ordinary(t, file)
		b.donors = append(append(b.donors, whole...), fragments...)
	}
	for _, r := range approval.Rules() {
		b.donors = append(append(b.donors, r.Yes...), r.No...)
	}
	for range 10 { // They are allowed, and short.
		b.donors = append(b.donors, traced...)
	}
	made, allowed, late := 0, 0, 0
	for began := time.Now(); time.Since(began) < *mutantTime; made++ {
		script := b.next()
		if strings.Contains(script, "\x00") || containsAny(script, unfit) {
			continue
		}
		j := approval.Judge(script, typical)
		if j.Verdict != approval.Allow || len(j.Findings) == 0 {
			continue
		}
		allowed++
		beside, ended := tr.run(t, script, j)
		if !ended {
			late++
		}
		assert.Empty(t, beside, "%q (%s)", script, fmt.Sprint("seed ", seed))
	}
	t.Logf("of %d scripts %d were allowed and ran, %d of them to no end; seed %d", made, allowed, late, seed)
	assert.Positive(t, allowed)
}

func containsAny(text string, parts []string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}
