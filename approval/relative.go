package approval

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

// mostDirs and mostNear bound the directories of a script, and those among them that are near: each relative path is judged in all of these. mostPaths
// bounds how often, in all; each 128 bytes of a path count. A script with more asks.
const mostDirs, mostNear, mostPaths = 128, 16, 12_000

// A directory is one that the script may be in.
type directory struct {
	value
	near bool   // what is below it, or in it, may be secret, or limpet's own: elsewhere it takes a path that goes up
	real string // its path, with the home's; empty: not known
}

// here is how the pattern of $PWD, ~+ or ~- begins. Without a directory that is known, it may be a home, as one of somebody is.
const here = "/" + hidden + hidden

// enters notes the directory that a command changes to, for the relative paths in it and behind it. The argument of env's -C is noted by wrapper.
func (c *call) enters() {
	switch {
	case c.w.s.stopped != nil:
	case c.name == "cd" || c.name == "pushd":
		to := c.operands()
		if len(to) == 0 && c.name == "cd" {
			to = []value{{text: "~", pattern: "~", home: true, known: true}}
		}
		for _, v := range to {
			if first, _, _ := strings.Cut(v.pattern, "/"); v.relative() && first != "." && first != ".." && c.w.s.opts.Exported != nil && c.w.s.opts.Exported("CDPATH") {
				c.w.s.stop(v, "CDPATH is exported, and leads a cd to another directory")
			}
			c.w.enter(v, c.name == "cd" && len(to) == 1 && len(c.args) < 2 && !c.w.outside && !c.w.broken)
		}
		if c.name == "pushd" || slices.ContainsFunc(c.args, func(v value) bool { return v.pattern == "-" || !v.known || v.many }) {
			c.w.s.at = slices.Clone(c.w.s.dirs) // It may lead back to any of them.
		}
	case c.name == "popd":
		c.w.s.at = slices.Clone(c.w.s.dirs)
	case c.name == "git":
		for i, v := range c.args {
			if v.pattern == "-C" && i+1 < len(c.args) {
				c.w.enter(c.args[i+1], false)
			}
		}
	}
}

// enter notes that what follows may run in a directory. A relative path leads there from where the script may be. That is only the new one
// behind a cd that cannot fail, and the ones before it, too, behind another. Relative paths are judged in all, whichever it is.
func (w *walker) enter(to value, surely bool) {
	s := w.s
	if to.pattern == "" || to.pattern == "-" || s.stopped != nil {
		return // cd - goes back to one that is noted already.
	}
	var list []directory
	if to.relative() {
		for _, dir := range s.at {
			next := directory{value: dir.join(to)}
			if dir.real != "" && to.known && !to.many {
				next.real = path.Join(dir.real, to.text)
			}
			list = append(list, next)
		}
	}
	if !to.relative() || strings.HasPrefix(to.pattern, hidden) { // That may be absolute.
		next := directory{value: to}
		if to.known && !to.many {
			if next.real = to.text; to.home && s.opts.Home == "" {
				next.real = ""
			} else if to.home {
				next.real = s.opts.Home + strings.TrimPrefix(to.text, "~")
			}
		}
		list = append(list, next)
	}
	if rest, ok := strings.CutPrefix(to.pattern, hidden); ok && (rest == "" || rest[0] == '/') {
		for _, dir := range s.above { // It may be one of these, or below it.
			below := to
			below.pattern = "." + rest
			list = append(list, directory{value: dir.join(below)})
		}
	}
	for i, dir := range list {
		if s.spend(dir.value); s.stopped != nil {
			return
		}
		surely = surely && s.leads(to, dir.real)
		dir.pattern = w.normal(dir.value)
		for strings.Contains(dir.pattern, hidden+"/"+hidden) { // One that is not known may have any number of parts.
			dir.pattern = strings.ReplaceAll(dir.pattern, hidden+"/"+hidden, hidden)
		}
		dir.text, dir.home = dir.pattern, strings.HasPrefix(dir.pattern, "~")
		if known := slices.IndexFunc(s.dirs, dir.same); known >= 0 {
			list[i] = s.dirs[known]
			continue
		}
		if dir.near = dir.pattern == hidden || w.isNear(dir.value); dir.near {
			s.near++
		}
		list[i] = dir
		if len(s.dirs) == mostDirs || s.near > mostNear {
			s.stop(to, "the script may be in more directories than are looked at")
			return
		}
		s.dirs = append(s.dirs, dir)
	}
	if surely {
		s.at = nil
	}
	s.at = s.union(s.at, list)
}

func (d directory) same(other directory) bool {
	return d.pattern == other.pattern && d.real == other.real
}

// union returns the directories of two lists, which stay as they are.
func (s *session) union(a, b []directory) []directory {
	if len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0]) {
		return a // Nothing has moved.
	}
	if s.stopped != nil {
		return a
	}
	if s.looks += 1 + len(a)*len(b)/mostDirs; s.looks > mostPaths {
		s.stop(value{to: len(s.text)}, tooManyPaths)
	}
	all := slices.Clone(a)
	for _, dir := range b {
		if !slices.ContainsFunc(all, dir.same) {
			all = append(all, dir)
		}
	}
	return all
}

// leads reports whether a cd to a path cannot fail: it goes up, or the directory is there.
func (s *session) leads(to value, real string) bool {
	below := to.text
	for strings.HasPrefix(below, "../") {
		below = strings.TrimLeft(below[len("../"):], "/")
	}
	switch {
	case !to.known || to.many || s.opts.Exported != nil && s.opts.Exported("CDPATH"):
		return false
	case below == "" || below == "." || below == "..":
		return true
	case strings.Contains(below, ".."):
		return false // It goes up from a directory that may not be there.
	}
	return s.opts.Directory == nil || path.IsAbs(real) && s.opts.Directory(real)
}

// stop notes that some of the script is not looked at, so that it asks.
func (s *session) stop(at value, reason string) {
	if s.stopped == nil {
		s.stopped = &Finding{Kind: KindScript, From: at.from, To: at.to, Rule: ruleRead, Reason: reason, Verdict: Ask}
	}
}

const tooManyPaths = "it has more paths, in more directories, than are looked at"

// spend counts that a path is judged in a directory.
func (s *session) spend(v value) {
	if s.looks += 1 + len(v.pattern)/128; s.looks > mostPaths {
		s.stop(v, tooManyPaths)
	}
}

func (v value) relative() bool {
	return v.pattern != "" && !v.home && (!strings.HasPrefix(v.pattern, "/") || strings.HasPrefix(v.pattern, here))
}

// gitURL is how a repository of another machine begins.
var gitURL = lazyregexp.New(`^((https?|ssh|git|file)://|[\w.-]+@[\w.-]+:)`)

// isNear reports whether a relative path in a directory may be secret, or limpet's own, without going up.
func (w *walker) isNear(dir value) bool {
	p := w.normal(dir)
	return w.isSecret(dir) || slices.ContainsFunc(w.homes(p), w.isAbove) || slices.Contains([]string{"/tmp", "/var", "/var/tmp"}, p) || strings.HasPrefix(p, "/dev/") ||
		slices.Contains([]string{".git", ".config", ".local", "state"}, base(p))
}

// isAbove reports whether a path is, or may be by a pattern, a directory that files with secrets, or limpet's own, are below.
func (w *walker) isAbove(p string) bool {
	if p == "/" || p == "/sys" || strings.HasSuffix(p, ".git") || isDevice(within(p, "x")) || strings.HasPrefix(base(p), ".") && component(base(p), ".git") || isSecretOfProcess(within(p, "environ")) || isSecretOfProcess(within(p, "1/environ")) {
		return true
	}
	n, pattern := strings.Count(p, "/")+1, strings.ContainsAny(p, "*?[")
	holds := func(file string) bool {
		if !pattern {
			return strings.HasPrefix(file, p+"/")
		}
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
	in, below := d.value, v.pattern
	if rest, ok := strings.CutPrefix(below, here); ok {
		below = "." + rest
	}
	if d.pattern == hidden {
		below = path.Clean("/" + below)[1:] // A path with ".." would lead above a directory that is not known.
	}
	in.text, in.pattern = within(d.text, below), within(d.pattern, below)
	in.known, in.from, in.to = d.known && v.known, v.from, v.to
	return in
}

// placed are the paths that a relative one may be, in each directory where that matters; none for another value.
func (w *walker) placed(v value) []value {
	if !v.relative() {
		return nil
	}
	up := strings.Contains(v.pattern, "..")
	return w.paths(w.s.dirs, v, func(dir directory) bool { return dir.near || up })
}

// belowKept are the paths that one may be which begins with a name that is not known: below the directories that were kept.
func (w *walker) belowKept(v value) []value {
	rest, ok := strings.CutPrefix(v.pattern, hidden+"/")
	if !ok {
		return nil
	}
	v.pattern = rest
	return w.paths(w.s.above, v, func(directory) bool { return true })
}

// filled are the paths that one may be which has parts that are not known: all of them empty, unless it begins with one, or one of them a name that
// was kept.
func (w *walker) filled(v value) (paths []value) {
	if w.s.stopped != nil || !strings.Contains(v.pattern, hidden) || strings.HasPrefix(v.pattern, here) {
		return nil
	}
	spent := func() bool {
		w.s.spend(v)
		return w.s.stopped != nil
	}
	if spent() {
		return nil // Before it is split: it may have many parts.
	}
	fill := func(pattern string) {
		one := v
		one.text, one.pattern = pattern, pattern
		paths = append(append(paths, one), w.placed(one)...)
	}
	parts := strings.Split(v.pattern, hidden)
	if parts[0] != "" { // Else see emptied.
		fill(strings.Join(parts, ""))
	}
	for _, name := range w.s.names {
		for i := range min(len(parts)-1, mostNear) {
			if spent() {
				return nil
			}
			fill(strings.Join(parts[:i+1], hidden) + name + strings.Join(parts[i+1:], hidden))
		}
	}
	return paths
}

// emptied is a path that begins with what is not known, as it is where that is empty.
func emptied(v value) []value {
	rest := strings.TrimLeft(v.pattern, hidden+"/")
	if before := v.pattern[:len(v.pattern)-len(rest)]; !strings.Contains(before, hidden) || !strings.Contains(before, "/") || strings.HasPrefix(before, here) {
		return nil
	}
	first, below, _ := strings.Cut(rest, "/")
	if first == "dev" && strings.Contains(below, "/") {
		first, below, _ = strings.Cut(below, "/") // Many a project has a directory of that name.
	}
	if strings.ContainsAny(first, "*?["+hidden) && !slices.ContainsFunc(strings.Split(below, "/"), func(part string) bool { return secretParts[part] }) {
		return nil // All that is known of it may be anywhere.
	}
	rest = "/" + rest
	return []value{named(value{text: rest, pattern: rest, from: v.from, to: v.to})}
}

// named is a path that does not begin, behind its first part, with all the files of a directory: in place of each such * is a name that nothing has.
func named(v value) value {
	parts := strings.Split(v.pattern, "/")
	for i := 1; i < len(parts) && parts[i] != "" && strings.Trim(parts[i], "*") == ""; i++ {
		parts[i] = "any"
	}
	v.pattern = strings.Join(parts, "/")
	return v
}

// paths are those that a path is in some of the directories; none if there are too many.
func (w *walker) paths(dirs []directory, v value, counts func(directory) bool) (paths []value) {
	if w.s.stopped != nil {
		return nil
	}
	for _, dir := range dirs {
		if !counts(dir) {
			continue
		}
		in := dir.join(v)
		if w.s.spend(in); w.s.stopped != nil {
			return nil
		}
		paths = append(paths, in)
	}
	return paths
}

// subshell walks what runs in another process: what it changes to is not where the script is behind it.
func (w *walker) subshell(walk func()) {
	dirs, near, at, repeated := len(w.s.dirs), w.s.near, w.s.at, w.repeated
	w.repeated = 0 // A loop around it does not see the directories.
	w.apart(walk)
	w.s.dirs, w.s.near, w.s.at, w.repeated = w.s.dirs[:dirs], near, at, repeated
}

// againMax bounds the bytes of loops that are walked once more, and mostRounds how often one is: behind so many, a loop goes down, and not above its beginning.
const againMax, mostRounds = 256 << 10, 40

// loop walks a loop. What is before a cd in it runs behind that, too: the loop is walked again until it leads to no other directory.
func (w *walker) loop(node syntax.Node, walk func()) {
	s, end := w.s, int(node.End().Offset())
	if end <= w.repeated {
		walk() // The loop around it is walked again.
		return
	}
	w.repeated = end
	found := make(map[string]bool)
	before, apart := s.findings, s.apart
	s.apart += len(before)
	defer func() { s.apart = apart }()
	for round, moves := 1, 0; ; round++ {
		dirs, at, near, kept := len(s.dirs), len(s.at), s.near, len(s.above)+len(s.names)
		s.findings = nil
		walk()
		for _, f := range s.findings { // What asked once asks, though more may be known of the variables now.
			all := f
			all.Text = "" // It is the bytes From to To. All else counts: words in a quoted text have the bytes of that.
			if k := fmt.Sprintf("%#v", all); !found[k] {
				found[k] = true
				before = append(before, f)
			}
		}
		if s.findings = before; round == 1 {
			moves = len(s.moves)
		}
		s.moves = s.moves[:moves]
		if len(s.dirs) == dirs && len(s.at) == at && len(s.above)+len(s.names) == kept || s.stopped != nil || round >= mostRounds && s.near == near {
			return
		}
		if s.again += end - int(node.Pos().Offset()); s.again > againMax {
			from, to := w.node(node)
			s.stop(value{from: from, to: to}, "its loops may lead to more directories than are looked at")
			return
		}
	}
}
