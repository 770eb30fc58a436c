package sandbox_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// hostProbes try to make the program believe something, to stop it, or to use it
// up: by what it is told in the files, by the pipes that it has with bash, and
// by what it makes of a script. While a script runs, bash has its own stdin,
// stdout and stderr at the descriptors 10, 11 and 12.
var hostProbes = []probe{
	{name: "a report of an earlier command", own: true, try: func(w *world) bool {
		s := w.session()
		w.do(w.finds() + findsID + `
			{
				until [[ -e go ]]; do sleep .01; done # This command's own report was read by then.
				while :; do printf '<%s>' $id 0 x /forged $id >$S/status/record; echo >forged; done
			} &`)
		require.NoError(w, os.WriteFile(filepath.Join(w.Work, "go"), nil, 0o600))
		testenv.AwaitFile(w, filepath.Join(w.Work, "forged"))
		if w.control {
			b, err := os.ReadFile(filepath.Join(s, "status", "record"))
			return w.ruined(err == nil && len(b) == 0 || bytes.Contains(b, []byte("/forged"))) // It is cut at times.
		}
		for range 5 {
			if r := w.do("sleep .01; (exit 7)"); r.Err == "" && r.Code != 7 || r.Dir != w.Work {
				return true
			}
		}
		return !w.carriesOn()
	}},
	attack("a report of nonsense", findsID+`
		for status in 256 -1 99999999999999999999 x ''; do printf '<%s>' $id "$status" x "$W" $id >>/proc/$$/fd/11; done
		head -c 9000 /dev/urandom >>$S/status/record`, larger("status/record", 8192)),
	{name: "a directory that it is not in", own: true, try: func(w *world) bool {
		r := w.do(`PWD=$OUT; echo $PWD`)
		if w.control {
			return r.Output == w.Out+"\n"
		}
		return r.Dir == w.Out || !w.carriesOn()
	}},
	attack("a last state without end", ends(`truncate -s 100G $S/exit`), larger("exit", 1<<36)),
	{name: "a last state of nothing", own: true, try: func(w *world) bool {
		const most = 256 << 20
		s, before := w.session(), w.do(":").Memory
		r := w.do(w.finds() + ends(`head -c 16M /dev/zero >$S/exit`))
		if w.control {
			b, err := os.ReadFile(filepath.Join(s, "exit"))
			return err == nil && bytes.Count(b, []byte{0})*int(unsafe.Sizeof(b)) > most // It is a list, of slices.
		}
		return r.Memory > before+most || !w.carriesOn()
	}},
	{name: "a last state that is a script", own: true, try: func(w *world) bool {
		s := w.session()
		w.do(w.finds() + forges("exit", evil))
		if w.control {
			return runs(s, "exit")
		}
		require.Equal(w, "forged\n", w.do("echo $forged").Output, "it is believed")
		return !w.carriesOn()
	}},
	{name: "a last state that no parser comes to the end of", own: true, try: func(w *world) bool {
		s := w.session()
		w.do(w.finds() + forges("exit", nests))
		if w.control {
			return deep(os.ReadFile(filepath.Join(s, "exit")))
		}
		return !w.carriesOn()
	}},
	{name: "a fork's state that is a script", own: true, try: func(w *world) bool {
		s := w.session()
		w.do(w.finds() + forges("fork", evil))
		if w.control {
			return runs(s, "fork")
		}
		require.Equal(w, "forged\n", w.do("echo $forged").Output, "it is believed")
		return !w.carriesOn()
	}},
	{name: "a fork's state that no parser comes to the end of", own: true, try: func(w *world) bool {
		s := w.session()
		w.do(w.finds() + forges("fork", nests))
		if w.control {
			return deep(os.ReadFile(filepath.Join(s, "fork")))
		}
		w.do("f; (exit 3)")
		return !w.carriesOn()
	}},
	{name: "a directory with many parts", own: true, try: func(w *world) bool {
		const long = `PWD=/$(yes a/ | head -n 500000 | tr -d '\n'); echo ${#PWD}; `
		if w.control {
			return w.do(long).Output == "1000001\n" // Who goes up one by one reads all of the rest each time.
		}
		w.do(long + "exit 3")
		w.do(long + ending)
		return !w.carriesOn()
	}},
	{name: "a script that no parser comes to the end of", own: true, try: func(w *world) bool {
		script := "sleep 600\n" + strings.Repeat("(", 4<<20)
		if w.control {
			return deep([]byte(script), nil)
		}
		w.tell(order{Script: script, Timeout: 4 * stop}) // It takes a while to be sent.
		return !w.carriesOn()
	}},
	{name: "functions that are looked through for ever", own: true, try: func(w *world) bool {
		r := w.do(`f0() { trap - USR2; }; for ((i = 1; i < 1500; i++)); do eval "f$i() { f$((i-1)); }"; done; declare -F | wc -l`)
		if w.control {
			return r.Output == "1500\n" // Each leads to another, so that all are looked through for each.
		}
		w.tell(order{Script: "f1499; sleep 600", Timeout: stop})
		return !w.carriesOn()
	}},

	{name: "bash gets orders", own: true, try: func(w *world) bool {
		w.do(`echo ': >got' >/proc/$$/fd/10`)
		if w.control {
			testenv.Await(w, "what bash was told", func() bool {
				_, err := os.Stat(filepath.Join(w.Work, "got"))
				return err == nil
			})
			return true
		}
		return !w.carriesOn()
	}},
	{name: "bash's orders are taken away", own: true, try: func(w *world) bool {
		w.do(`{ cat <&3 >taken & } 3</proc/$$/fd/10`)
		if w.control {
			testenv.Await(w, "an order that is taken", func() bool {
				w.tell(order{Script: "echo taken", Timeout: stop}) // Bash may be quicker.
				b, err := os.ReadFile(filepath.Join(w.Work, "taken"))
				return err == nil && len(b) > 0
			})
			return w.ruined(true)
		}
		return !w.carriesOn()
	}},
	{name: "bash's orders have no room", own: true, setup: unsaved, try: func(w *world) bool {
		full := w.says(`{ echo 'sleep 600'; yes : | head -c 1M; } | dd bs=16 oflag=nonblock of=/proc/$$/fd/10 || echo bites`, "bites")
		if w.control {
			return w.ruined(full)
		}
		w.tell(order{Script: "echo dead", Timeout: stop})
		return !w.carriesOn()
	}},
	{name: "bash's own errors without end", own: true, try: func(w *world) bool {
		before := w.do(":").Memory
		r := w.do(`yes | head -c 32M >/proc/$$/fd/12 && echo bites`)
		if w.control {
			return r.Output == "bites\n" // Who keeps them has that much to keep.
		}
		return r.Memory > before+16<<20 || !w.carriesOn()
	}},

	spooling(attack("a long output is exchanged for a secret", `head -c 100000 /dev/zero; ln -s $OUT/secret $S/x; mv $S/x $(readlink /proc/$$/fd/1)`, readsSecret("out/*"))),
	{name: "the files of another session", own: true, setup: func(w *world) { w.config.Neighbour = ": " + w.secret },
		try: func(w *world) bool {
			return w.says(w.finds()+`cat ${S%/*}/*/eval ${S%/*/*}/*/*/eval`, w.secret)
		}},
	{name: "all events are taken", own: true, try: func(w *world) bool {
		w.do(`$TOOL inotify >events & until [[ -s events ]]; do :; done`)
		if w.control {
			b, err := os.ReadFile(filepath.Join(w.Work, "events"))
			return err == nil && string(b) == "bites\n"
		}
		return w.do(ending).Restart == "" || !w.carriesOn()
	}},
}

// findsID finds the two words that the report of the present command is sealed with, as id.
// They are there since the script has a pipeline, whose stages bash reports on, too.
const findsID = `true | true; id=$(grep -o '[0-9a-f]\{12\} [0-9a-f]\{12\}' $S/eval | head -n 1); [[ $id ]] || echo "there is no ID" >&2`

// spooling has a program that keeps long outputs in files.
func spooling(p probe) probe {
	p.setup = func(w *world) {
		unsaved(w)
		w.config.OutputLimit, w.config.SpoolLimit = 4096, 1<<20
	}
	return p
}

// stop is when a command is stopped that would go on for ever.
const stop = 500 * time.Millisecond

// ends ends bash with a last word that is not its state. The control only says
// the word.
func ends(last string) string {
	return `[[ $CONTROL ]] && ` + last + ` || { trap "` + last + `" EXIT; ` + ending + `; }`
}

// forges has bash, or a fork of it, end with a state that was made up, whose parts the script
// sets, and the seal that a state has, by which it is believed: that is in the trap by which
// bash, or the fork, writes its own. Scripts that mention traps see none of limpet's.
func forges(file, sets string) string {
	head, end := `:`, ending
	if file == "fork" {
		head, end = `printf '\0%s\0%s\0\0\0' : braceexpand`, `kill -KILL $BASHPID`
	}
	return `t=tra
		for x in $(${t}p -p EXIT | grep -o '[0-9a-f]\{24\}'); do [[ $S == *$x* ]] || seal=$x; done
		parts=("$PWD" '' '- ' '' ' BASHOPTS=' '' '' '' '' '' '' ''); ` + sets + `
		{ ` + head + `; printf '%s\0' "${parts[@]}"; printf %s $seal; } >$S/` + file + `
		[[ $CONTROL ]] || { ${t}p - EXIT; ` + end + `; }`
}

// What forges sets: a variable, and a script where bash would print no such thing; and a function.
const (
	evil  = `parts[4]=$'declare -- forged="forged"\ndeclare -r BASHOPTS=""\n' parts[3]=$(printf '\ntouch %s/new #' $OUT)`
	nests = `parts[1]='f ' parts[5]="f () "$'\n'"$(head -c 8M /dev/zero | tr '\0' '(')"`
)

// runs is what is naive: what it does is harm.
func runs(s, file string) bool {
	cmd := exec.Command("bash")
	cmd.Stdin, _ = os.Open(filepath.Join(s, file)) // It was written.
	_ = cmd.Run()                                  // As said.
	return false
}

// deep says whether a parser that calls itself for what is in parentheses would
// call itself too often.
func deep(script []byte, err error) bool {
	return err == nil && bytes.Count(script, []byte("(")) > 1<<20
}

// descends walks down directories that are one below the other.
func descends(dir, levels int) bool {
	dir, err := unix.Dup(dir)
	for range levels {
		if err != nil {
			return false
		}
		var next int
		next, err = unix.Openat(dir, "d", unix.O_PATH|unix.O_DIRECTORY, 0)
		_ = unix.Close(dir) // Nothing was done with it.
		dir = next
	}
	_ = unix.Close(dir) // As above.
	return err == nil
}
