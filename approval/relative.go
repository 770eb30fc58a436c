package approval

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// mostDirs and mostNear bound the directories of a script, and those among them that are near: each relative path is judged in all of these.
const mostDirs, mostNear = 128, 16

// A directory is one that the script may be in.
type directory struct {
	value
	near bool // what is below it, or in it, may be secret, or limpet's own: elsewhere it takes a path that goes up
}

// enters notes the directory that a command changes to, for the relative paths in it and behind it. The argument of env's -C is noted by wrapper.
func (c *call) enters() {
	switch {
	case c.name == "cd" || c.name == "pushd":
		to := c.operands()
		if len(to) == 0 && c.name == "cd" {
			to = []value{{text: "~", pattern: "~", home: true}}
		}
		for _, v := range to {
			c.w.enter(v)
		}
	case c.name == "git":
		for i, v := range c.args {
			if v.pattern == "-C" && i+1 < len(c.args) {
				c.w.enter(c.args[i+1])
			}
		}
	}
}

// enter notes that what follows may run in a directory. The directories before it count still: a cd may fail, or run in a subshell.
func (w *walker) enter(to value) {
	s := w.s
	if to.pattern == "" || to.pattern == "-" {
		return // cd - goes back to one that is noted already.
	}
	list := []value{to}
	if to.relative() {
		list = nil
		for _, dir := range s.dirs {
			list = append(list, dir.join(to))
		}
	}
	for _, dir := range list {
		dir.pattern = w.normal(dir)
		dir.text, dir.home = dir.pattern, strings.HasPrefix(dir.pattern, "~")
		if slices.ContainsFunc(s.dirs, func(one directory) bool { return one.pattern == dir.pattern }) {
			continue
		}
		noted := directory{dir, w.isNear(dir)}
		if noted.near {
			s.near++
		}
		if len(s.dirs) == mostDirs || s.near > mostNear {
			w.addAt(KindCommand, to.from, to.to, Ask, ruleUnreadable, "the script may be in more directories than are looked at")
			return
		}
		s.dirs = append(s.dirs, noted)
	}
}

func (v value) relative() bool {
	return v.pattern != "" && !v.home && !strings.HasPrefix(v.pattern, "/")
}

// isNear reports whether a relative path in a directory may be secret, or limpet's own, without going up.
func (w *walker) isNear(dir value) bool {
	p := w.normal(dir)
	return w.isSecret(dir) || slices.ContainsFunc(w.homes(p), w.isAbove) || slices.Contains([]string{"/tmp", "/var", "/var/tmp", "/dev/shm"}, p) ||
		slices.Contains([]string{".git", ".config", ".local", "state"}, base(p))
}

// isAbove reports whether a path is, or may be by a pattern, a directory that files with secrets, or limpet's own, are below.
func (w *walker) isAbove(p string) bool {
	if p == "/" || p == "/sys" || isSecretOfProcess(within(p, "environ")) || isSecretOfProcess(within(p, "1/environ")) {
		return true
	}
	n := strings.Count(p, "/") + 1
	holds := func(file string) bool {
		parts := strings.Split(file, "/")
		return len(parts) > n && matches(p, strings.Join(parts[:n], "/"))
	}
	return (p == "~" || strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~/")) && slices.ContainsFunc(slices.Concat(secretFiles, floorDirs, w.s.opts.Protected), func(file string) bool {
		rest, ofHome := strings.CutPrefix(file, "~")
		return holds(file) || ofHome && (holds("/root"+rest) || holds("/home/*"+rest) || holds(w.s.opts.Home+rest))
	})
}

// join is a relative path in a directory.
func (d directory) join(v value) value {
	in := d.value
	in.text, in.pattern = within(d.text, v.pattern), within(d.pattern, v.pattern)
	in.known, in.from, in.to = d.known && v.known, v.from, v.to
	return in
}

// placed are the paths that a relative one may be, in each directory where that matters; none for another value.
func (w *walker) placed(v value) (paths []value) {
	if !v.relative() {
		return nil
	}
	up := strings.Contains(v.pattern, "..")
	for _, dir := range w.s.dirs {
		if dir.near || up {
			paths = append(paths, dir.join(v))
		}
	}
	return paths
}

// subshell walks what runs in another process: what it changes to is not where the script is behind it.
func (w *walker) subshell(walk func()) {
	dirs, near := len(w.s.dirs), w.s.near
	w.apart(walk)
	w.s.dirs, w.s.near = w.s.dirs[:dirs], near
}

// repeats notes the directories that a loop changes to: what is before the cd runs behind it, too.
func (w *walker) repeats(loop syntax.Node) {
	if int(loop.End().Offset()) <= w.repeated {
		return // It is in a loop of which they are noted.
	}
	w.repeated = int(loop.End().Offset())
	syntax.Walk(loop, func(node syntax.Node) bool {
		cmd, ok := node.(*syntax.CallExpr)
		if !ok {
			return true
		}
		for i, arg := range cmd.Args {
			name := arg.Lit()
			if name != "cd" && name != "pushd" && name != "git" {
				continue
			}
			c := &call{w: w, name: name}
			for _, word := range cmd.Args[i+1:] {
				c.args = append(c.args, w.value(word))
			}
			c.enters()
			break
		}
		return true
	})
}
