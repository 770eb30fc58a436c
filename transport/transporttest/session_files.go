package transporttest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/shell"
)

// attacks are what a command, or somebody who tidies up, may do to the directory S
// by which the shell is spoken to. The next commands must run as ever.
var attacks = []string{
	"rm -rf $S", "rm -rf $S/*", "rm -f $S/*", "rm -rf $S/out", "rm -rf $S/status", "rm -f $S/status/*", "mv $S $S.old", "mv $S/status $S/old",
	"for f in $S/* $S/*/*; do [[ -d $f ]] || { rm $f; mkfifo $f; }; done",
	"for f in $S/* $S/*/*; do [[ -d $f ]] || { rm $f; mkdir $f; }; done",
	"for f in $S/* $S/*/*; do ln -sf /dev/zero $f; done",
	"mkfifo $S/x; mv $S/x $S/eval", "echo 'echo dead' >$S/x; mv $S/x $S/eval", "ln -sf nowhere $S/eval",
	"rm $S/inner; mkfifo $S/inner", "rm $S/inner; mkdir $S/inner", "rm $S/return; mkfifo $S/return", "rm $S/return; mkdir $S/return",
	"rm $S/before; mkfifo $S/before", "rm $S/state; mkfifo $S/state", "rm $S/exit; mkfifo $S/exit", "rm $S/state; mkdir -p $S/state/x",
	"mv $S/out $S/x; ln -s x $S/out", "rm -rf $S/out; mkfifo $S/out", "rm -rf $S/status; mkfifo $S/status", "rm -rf $S/status; ln -s . $S/status",
	"chmod 000 $S/*/* $S/* $S", "chmod 500 $S/out", "mkdir -p $S/x/y; : >$S/x/y/z; chmod 000 $S/x/y; chmod 500 $S/x",
	"truncate -s 1T $S/* $S/*/* 2>/dev/null", "for i in {1..2000}; do : >$S/status/$i; done",
	"head -c 1M /dev/zero >&11; head -c 1M /dev/zero >/proc/$$/fd/1",
	// A quote that is never closed, and no room for more.
	`exec {in}<>/proc/$$/fd/0; { printf "'"; head -c 200000 /dev/zero; } >&$in & sleep 0.1`,
	"PWD=$(printf '/%0300000d' 0) # There is no report then: the word exec has the state saved before.", "PWD=$'a\\nb'", "for i in {1..1500}; do eval \"f$i() { f$((i + 1)); trap; }\"; done",
	"f() { eval \"$(printf 'g() { : '; printf '$( : %.0s' {1..500}; printf ') %.0s' {1..500}; printf '; }')\"; }; f",
}

// 18. Nor can what happens to the session's files, and they are removed with it.
func hostileFiles(t *testing.T, s suite) {
	for _, script := range attacks {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			dir := s.runtimeDir(t)
			x := s.start(t, func(o *shell.Options) { o.RuntimeDir = dir })
			x.run("mkdir -p sub; v=1")
			_, _ = x.do(command.Request{Script: "S=${BASH_SOURCE%/*}; " + script}) // It may have ended bash, or hidden its output.
			for range 2 {
				res := x.run("cd \"$(dirname /tmp/x)\"; \\echo alive $v; false | true")
				assert.Equal(t, "alive 1\n", res.Stdout.String())
				assert.Equal(t, []int{1, 0}, res.Receipt.Pipeline)
				res, err := x.do(command.Request{Script: "echo $?; echo err >&2; exit 3", Dir: "/"})
				require.NoError(t, err)
				assert.Equal(t, "0\n", res.Stdout.String())
				assert.Equal(t, "err\n", res.Stderr.String())
				assert.Equal(t, 3, res.ExitCode)
			}
			require.NoError(t, x.Close())
			checkEmpty(t, dir)
		})
	}
}
