package transporttest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
)

// 21. 50 parallel callers never mix results; cwd and environment are per
// session.
func parallelCallers(t *testing.T, s suite) {
	const callers, rounds = 50, 4
	for _, shells := range []int{1, 8} {
		xs := make([]*sh, shells)
		for i := range xs {
			xs[i] = s.start(t)
			xs[i].want("", fmt.Sprintf("export owner=%d; mkdir d; cd d", i))
		}
		var all sync.WaitGroup
		for caller := range callers {
			x, owner := xs[caller%shells], caller%shells
			all.Go(func() {
				for round := range rounds {
					id := fmt.Sprintf("%d.%d", caller, round)
					res, err := x.Do(t.Context(), command.Request{
						Script: fmt.Sprintf(`me=%s; echo "$me $owner $one $PWD"; /bin/sh -c 'echo e%s $owner >&2; exit %d'`, id, id, caller),
						Env:    []string{"one=" + id},
					})
					assert.NoError(t, err)
					assert.Equal(t, fmt.Sprintf("%s %d %s %s\n", id, owner, id, x.file("d")), res.Stdout.String())
					assert.Equal(t, fmt.Sprintf("e%s %d\n", id, owner), res.Stderr.String())
					assert.Equal(t, caller, res.ExitCode)
				}
			})
		}
		all.Wait()
		for i, x := range xs {
			x.want(fmt.Sprintf("%d %s\n", i, x.file("d")), "echo $owner $one$PWD")
		}
	}
}

// 22. Readers of stdin get end-of-file, in the foreground and in the
// background, and never eat the script.
func endOfFile(t *testing.T, s suite) {
	x := s.start(t)
	for script, want := range map[string]string{
		"cat; echo after":                              "after\n",
		"read line; echo $?":                           "1\n",
		"wc -c; echo after":                            "0\nafter\n",
		"cat & wait $!; echo $?":                       "0\n",
		"{ read line; echo $? >st; } & wait; cat st":   "1\n",
		"(cat); cat | cat; echo after":                 "after\n",
		"while read line; do echo $line; done; echo x": "x\n",
		"bash; /bin/sh; echo after":                    "after\n",
		"cat\necho second line\ncat -":                 "second line\n",
		"mapfile lines; echo ${#lines[@]}":             "0\n",
		"cat <<<here; cat; echo after":                 "here\nafter\n",
	} {
		x.want(want, script)
	}
	x.want("1\n", "v=1; read v2 </dev/stdin; echo $v")
	if x.run("type -P python3").ExitCode == 0 {
		x.want("''\n", "python3 -c 'import sys; print(repr(sys.stdin.read()))'")
	} else {
		t.Log("not checked: python3 reads stdin, since there is none here")
	}

	// A request with Stdin has the shell's directory and environment.
	x.want("", "export e=exported; mkdir sub; cd sub")
	big := strings.Repeat("0123456789abcdef", 1<<16)
	res, err := x.do(command.Request{Script: "cat; echo $e ${PWD##*/}; exit 3", Stdin: strings.NewReader(big)})
	require.NoError(t, err)
	assert.Equal(t, int64(len(big)+len("exported sub\n")), res.Stdout.Total)
	assert.Equal(t, 3, res.ExitCode)
	x.want("exported\n", "echo $e")
}
