package sandbox_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unsafe"

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
		w.do(finds + findsID + `
			{
				while [[ -e /proc/$$/fd/10 ]]; do :; done # until this command is through
				while :; do printf '%s 0 x /forged %s\n' $id $id >$S/status/record; echo >forged; done
			} &`)
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
		for status in 256 -1 99999999999999999999 x ''; do printf '%s %s x %s %s\n' $id "$status" "$W" $id >>/proc/$$/fd/11; done
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
		r := w.do(finds + ends(`head -c 16M /dev/zero >$S/exit`))
		if w.control {
			b, err := os.ReadFile(filepath.Join(s, "exit"))
			return err == nil && bytes.Count(b, []byte{0})*int(unsafe.Sizeof(b)) > most // It is a list, of slices.
		}
		return r.Memory > before+most || !w.carriesOn()
	}},
	{name: "a last state that is a script", own: true, try: func(w *world) bool {
		s := w.session()
		w.do(finds + forges(`"$PWD" '' "$(printf '\ntouch %s/new #' $OUT)" '' '' '' '' ''`))
		if w.control {
			cmd := exec.Command("bash")
			cmd.Stdin, _ = os.Open(filepath.Join(s, "exit")) // It was written.
			_ = cmd.Run()                                    // What it does is harm.
			return false
		}
		return !w.carriesOn()
	}},
	{name: "a last state that no parser comes to the end of", own: true, try: func(w *world) bool {
		s := w.session()
		w.do(finds + forges(`"$PWD" 'f ' '' "$(head -c 8M /dev/zero | tr '\0' '(')" '' '' '' ''`))
		if w.control {
			return deep(os.ReadFile(filepath.Join(s, "exit")))
		}
		return !w.carriesOn()
	}},
	{name: "a directory with many parts", own: true, try: func(w *world) bool {
		r := w.do(`PWD=/$(yes a/ | head -n 500000 | tr -d '\n'); echo ${#PWD}; [[ $CONTROL ]] || exit 3`)
		if w.control {
			return r.Output == "1000001\n" // Who goes up one by one reads all of the rest each time.
		}
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
		w.do("exit 3") // Before that the state is saved.
		w.tell(order{Script: "sleep 600", Timeout: stop})
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
		script: finds + `cat ${S%/*}/*/eval ${S%/*/*}/*/*/eval`},
	{name: "all events are taken", own: true, try: func(w *world) bool {
		w.do(`$TOOL inotify >events & until [[ -s events ]]; do :; done`)
		if w.control {
			b, err := os.ReadFile(filepath.Join(w.Work, "events"))
			return err == nil && string(b) == "bites\n"
		}
		return w.do("exit 3").Restart == "" || !w.carriesOn()
	}},
}

// findsID finds what the report of the present command is sealed with, as id.
// The names of files look the same.
const findsID = `for x in $(grep -o '[0-9a-f]\{24\}' $S/eval); do [[ $S == *$x* || -e $S/out/$x ]] || id=$x; done`

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
	return `[[ $CONTROL ]] && ` + last + ` || { trap "` + last + `" EXIT; exit 3; }`
}

// forges has bash end with a state that was made up: its parts, and the seal
// that a state has, by which it is believed. Scripts that mention traps see none
// of limpet's.
func forges(parts string) string {
	return `t=tra
		for x in $(${t}p -p EXIT | grep -o '[0-9a-f]\{24\}'); do [[ $S == *$x* ]] || seal=$x; done
		forge() { printf '%s\0' ` + parts + ` >$S/exit; printf %s $seal >>$S/exit; }
		[[ $CONTROL ]] && forge || { ${t}p forge EXIT; exit 3; }`
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
