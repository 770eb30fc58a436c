package approval

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// File is what Options.File says about a path.
type File struct {
	// Path is the file that the path leads to, with all symbolic links followed; empty if a shell would run nothing there.
	Path string
	// Why says why the file is not trusted, as in "which this user can write". It is empty if nobody but an administrator can replace the
	// file, a directory that leads to it, or a symbolic link on the way.
	Why string
	// State changes when the file is replaced, or written to; empty if that is not known.
	State string
	// Program is what env looks for in PATH when the file runs: that of a first line "#!/usr/bin/env node" is node. Empty for other files.
	Program string
	// SetUID says that the file is root's and has the set-user-ID bit, so that it runs as root.
	SetUID bool
}

// found is the file of a program, as a judgement remembers it.
type found struct{ path, state string }

// lookup is a name and the path where it was found. A script may use one name for two files: bash runs the one it remembers, env searches PATH.
type lookup struct{ name, at string }

// besides are programs that others look for in PATH by themselves, though no word of the command line names them. Some are shell scripts, as egrep is.
var besides = map[string]string{
	"egrep": "grep", "fgrep": "grep", "zcat": "gzip", "gzcat": "gzip", "git": "pager less", "systemctl": "pager less more", "journalctl": "pager less more",
	"gh": "git", "watch": "sh", "dpkg-query": "pager less", "dpkg": "dpkg-query pager less", "fd": "ls", "fdfind": "ls", "npx": "npm",
	"tar": "gzip bzip2 xz lzma zstd lzip lzop compress", "file": "uncompress bzip2 lzip lz4 lrzip gzip xz zstd",
}

// mostInterpreters bounds how many programs env looks for, each for the one before.
const mostInterpreters = 5

// locate finds the file that runs for the command's name, and why that is not trusted. Without a PATH, or Options.File, nothing is known of it.
func (c *call) locate(text string) {
	s := c.w.s
	if s.opts.File == nil {
		return
	}
	if c.w.isBuiltin(text) {
		return
	}
	file, remembered := s.hashed(text)
	switch {
	case strings.HasPrefix(text, "/"):
		c.judgeFile(text, text, s.fileAt(text))
	case remembered && !c.w.outside && !c.w.another:
		c.judgeFile(text, file, s.fileAt(file))
	default:
		c.search(text)
	}
	for other := range strings.FieldsSeq(besides[c.name]) {
		if !c.doesWithout(other) {
			c.aside(other)
		}
	}
}

// aside looks for a program that the one of the command looks for by itself.
func (c *call) aside(other string) {
	if c.distrust != "" {
		return
	}
	own := c.file
	c.search(other)
	c.file, c.beside = own, c.distrust != ""
}

// doesWithout reports whether the command's options keep its program from starting the other one.
func (c *call) doesWithout(other string) bool {
	switch {
	case c.name == "file": // It looks into a compressed file only if it is told to.
		return !slices.ContainsFunc(c.args, func(v value) bool {
			return !v.known || v.many || strings.HasPrefix(v.text, "--u") || strings.HasPrefix(v.text, "-") && strings.ContainsAny(v.text, "zZ")
		})
	case c.name == "git" && (other == "pager" || other == "less"):
		return len(c.args) > 0 && c.args[0].is("--no-pager") && !slices.ContainsFunc(c.args, func(v value) bool {
			return !v.known || v.many || v.is("-p") || strings.HasPrefix(v.text, "--p")
		})
	}
	return false
}

// builtInPath are directories in which a bash that has no PATH looks, as it may be built: the last one is where it is.
var builtInPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "."}

// search looks for a program in the directories of PATH, and where a program without one looks, if there may be none.
func (c *call) search(text string) {
	s := c.w.s
	if s.opts.File == nil || len(s.path) == 0 {
		return
	}
	c.searchIn(text, s.path)
	if own := c.file; s.pathless && c.distrust == "" {
		if c.searchIn(text, builtInPath); c.distrust == "" {
			c.file = own
		}
	}
}

func (c *call) searchIn(text string, dirs []string) {
	s := c.w.s
	for _, dir := range dirs {
		if !path.IsAbs(dir) {
			which := "PATH"
			if changed := s.changedPath(); changed != "" {
				which = changed + "it"
			}
			c.distrust = which + " has a directory that is not absolute before that of " + text
			return
		}
		at := within(dir, text)
		if f := s.fileAt(at); f.Path != "" {
			c.judgeFile(text, at, f)
			return
		}
	}
	s.resolved[lookup{text, ""}] = found{} // It cannot run: limpet looks again before the script does.
}

// fileAt is what Options.File says of a path. It is asked once in a judgement.
func (s *session) fileAt(path string) File {
	f, known := s.files[path]
	if !known {
		f = s.opts.File(path)
		s.files[path] = f
	}
	return f
}

func (c *call) judgeFile(text, at string, f File) {
	c.file, c.setUID = found{f.Path, f.State}, f.SetUID
	c.w.s.resolved[lookup{text, at}] = c.file
	if f.Program != "" {
		c.interpreter(text, f)
	}
	if f.Why == "" {
		return
	}
	if c.distrust = c.w.s.changedPath() + text + " is " + at; text == at {
		c.distrust = text
	}
	if f.Path != at {
		c.distrust += ", which leads to " + f.Path
	}
	c.distrust += ", " + f.Why
}

// interpreter looks for what env runs for a file. Of a file that is not trusted the state is then that of both: a rule is for them as they were.
func (c *call) interpreter(text string, f File) {
	if c.depth >= mostInterpreters {
		c.distrust, c.beside = text+" is run by too many interpreters", true
		return
	}
	own := c.file
	c.file = found{}
	c.depth++
	c.search(f.Program)
	c.depth--
	by := c.file
	c.file = own
	if f.Why == "" {
		c.beside = c.distrust != ""
		return
	}
	c.file.state = fmt.Sprintf("%s by %q %s", own.state, by.path, by.state)
	if own.state == "" || by.path != "" && by.state == "" {
		c.file.state = ""
	}
}

// fits reports whether a rule that allows is for the file that runs. A rule without a file is for files that are trusted, as far as that is known. No rule is
// for a program that looks for others which are not: it names one file.
func (c *call) fits(o Own) bool {
	if o.File == "" || c.beside {
		return c.distrust == ""
	}
	return c.file.path == o.File && (o.FileState == "" || o.FileState == c.file.state)
}

// changedPath begins a reason where the shell has another PATH than at first.
func (s *session) changedPath() string {
	if s.live != nil && s.live.changed {
		return "PATH was changed here: "
	}
	return ""
}

// hashed is the file that bash remembers for a program.
func (s *session) hashed(text string) (string, bool) {
	if s.live == nil {
		return "", false
	}
	file, is := s.live.hashed[text]
	return file, is
}

// inside are the programs that run builtins, too.
var inside = []string{"command", "builtin", "exec"}

// runsOutside reports whether what a wrapper runs is a program, also where it has the name of a builtin.
func (c *call) runsOutside() bool {
	return c.w.outside || !slices.Contains(inside, c.name)
}
