package sandbox_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/sandbox"
)

// findings are the ways out that were found in other sandboxes. The control is a
// bwrap with the arguments with which they were found.
var findings = []probe{
	// Root keeps all its capabilities if it is not told to drop them (bubblewrap issues 287 and 561).
	{name: "root mounts what is read-only again", policy: outside, naive: bare("--ro-bind", "OUT", "OUT"),
		script: `mount -o remount,rw,bind $OUT; echo x >$OUT/new`},
	{name: "root takes a mask off", policy: masks(".env"), naive: bare("--ro-bind", "/dev/null", "WORK/.env"),
		script: `umount .env; cat .env`},

	// Bwrap's cover of /proc/sys is left out if access(2) refuses to write the
	// directory, as it does for root too, though not for what is in it.
	{name: "root without capabilities sets the core pattern", own: true,
		naive:  bare("--unshare-user", "--unshare-pid", "--cap-drop", "ALL", "--proc", "/proc"),
		script: `(exec 3>>/proc/sys/kernel/core_pattern) && echo bites`},

	// Git runs hooks wherever its config, or its commondir, says that they are.
	{name: "a hook is planted beside the hooks", policy: hasRepository,
		naive: bare("--ro-bind", "WORK/.git/hooks", "WORK/.git/hooks", "--ro-bind", "WORK/.git/config", "WORK/.git/config"),
		try:   hooked(`mv .git .old; cp -r .old .git; ` + hook(`.git/hooks`))},
	{name: "a hook is planted by commondir", policy: hasRepository,
		naive: bare("--bind", "WORK/.git", "WORK/.git", "--ro-bind", "WORK/.git/hooks", "WORK/.git/hooks", "--ro-bind", "WORK/.git/config", "WORK/.git/config"),
		try:   hooked(`cp -r .git evil; mkdir evil/planted; ` + hook(`evil/planted`) + `; git config -f evil/config core.hooksPath $W/evil/planted; echo ../evil >.git/commondir`)},
	{name: "a hook is planted in a nested repository", policy: nested,
		naive: bare("--ro-bind", "WORK/sub/repo/.git", "WORK/sub/repo/.git"),
		try:   hooked(`mv sub/repo sub/old; cp -r sub/old sub/repo; `+hook(`sub/repo/.git/hooks`), "sub", "repo")},

	// The kernel drops a mount when what it is mounted on is renamed over.
	{name: "a mask is lost to an editor", policy: masks(".env"), naive: bare("--ro-bind", "/dev/null", "WORK/.env"),
		try: func(w *world) bool {
			w.do(`cat .env`)
			w.put(filepath.Join(w.Work, ".env.new"), w.secret+"\n")
			require.NoError(w, os.Rename(filepath.Join(w.Work, ".env.new"), filepath.Join(w.Work, ".env")))
			w.do(`cat .env`)
			return false
		}},
	{name: "a protection is lost to git", policy: func(w *world, p *sandbox.Policy) {
		hasRepository(w, p)
		p.FS.Protect = append([]string{".git/config"}, sandbox.DefaultProtect...)
		p.FS.Git = sandbox.GitCommit
	}, naive: bare("--ro-bind", "WORK/.git/config", "WORK/.git/config"), try: func(w *world) bool {
		w.git(w.Work, "config", "user.nick", "x")
		w.guarded = []string{filepath.Join(w.Work, ".git", "config")} // Git may lock it.
		w.before = w.look()
		w.do(`git config core.hooksPath evil; echo x >>.git/config`)
		return false
	}},

	// --clearenv is for what bwrap starts. --setenv is for everybody to read.
	{name: "the environment of bubblewrap", own: true, naive: func(w *world) []string {
		return append(bare("--unshare-pid", "--proc", "/proc")(w), "--clearenv", "--setenv", "PATH", usualPath)
	}, script: `cat /proc/1/environ | tr '\0' '\n'`},
	{name: "the arguments of bubblewrap", policy: func(w *world, p *sandbox.Policy) {
		p.Env.Set = map[string]string{"PLAIN": w.secret}
	}, naive: func(w *world) []string { return append(bare()(w), "--setenv", "PLAIN", w.secret) }, try: func(w *world) bool {
		all, err := proc.List()
		require.NoError(w, err)
		for _, st := range all {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", st.PID)) // Gone meanwhile.
			if bytes.Contains(b, []byte(w.secret)) {
				return true
			}
		}
		return false
	}},

	// A parent-death signal is sent when the thread ends that forked.
	{name: "the sandbox ends with a thread", own: true, setup: func(w *world) { w.config.OnDyingThread = true },
		naive: bare("--die-with-parent"), try: func(w *world) bool {
			r := w.do("echo alive")
			return r.Output != "alive\n" || r.Restart != ""
		}},

	// What is not to be closed on exec is inherited, by bwrap and by what it starts.
	{name: "a descriptor of the program", own: true, setup: func(w *world) { w.config.Leaks = filepath.Join(w.Out, "secret") },
		naive: bare(), script: `cat <&77`},

	// CVE-2026-87766: bwrap makes a mount point by a symlink that leads to the
	// host's root, which is there while it works.
	{name: "a mount point is made by a link", own: true, setup: func(w *world) {
		require.NoError(w, os.Symlink("/oldroot"+w.Out, filepath.Join(w.Work, ".claude")))
		w.own(filepath.Join(w.Work, ".claude"))
	}, policy: func(_ *world, p *sandbox.Policy) {
		p.FS.Protect = []string{".claude/commands"}
	}, naive: bare("--ro-bind", "/dev/null", "WORK/.claude/commands"), try: func(*world) bool { return false }},
	// It makes a file even where the link itself is the mount point, which is there.
	{name: "a mount point is made by a link, for a bind", own: true, setup: func(w *world) {
		require.NoError(w, os.Symlink("/oldroot"+filepath.Join(w.Out, "made"), filepath.Join(w.Work, "tool")))
		w.own(filepath.Join(w.Work, "tool"))
	}, policy: func(w *world, p *sandbox.Policy) {
		p.FS.ExtraRO = append(p.FS.ExtraRO, sandbox.Bind{Src: "/etc/passwd", Dst: filepath.Join(w.Work, "tool")})
	}, naive: bare("--ro-bind", "/etc/passwd", "WORK/tool"), try: func(*world) bool { return false }},
}

// bare is a bwrap that shows everything, with more arguments. OUT and WORK are
// the directories of the world.
func bare(args ...string) func(*world) []string {
	return func(w *world) []string {
		all := []string{"--dev-bind", "/", "/"}
		for _, arg := range args {
			all = append(all, strings.NewReplacer("OUT", w.Out, "WORK", w.Work).Replace(arg))
		}
		return all
	}
}

// hook plants one that shows that it ran.
func hook(dir string) string {
	return `printf '#!/bin/sh\necho x >$OUT/ran\n' >` + dir + `/pre-commit; chmod +x ` + dir + `/pre-commit`
}

// hooked runs a script, and then commits on the host, in a directory of the
// workspace.
func hooked(script string, dir ...string) func(*world) bool {
	return func(w *world) bool {
		w.do(script)
		w.guarded = nil // What the commit itself changes is no harm.
		w.before = w.look()
		cmd := w.gitCommand(filepath.Join(append([]string{w.Work}, dir...)...), "commit", "-q", "--allow-empty", "-m", "x")
		said, err := cmd.CombinedOutput()
		w.Logf("git: %v %s", err, said)
		return false
	}
}
