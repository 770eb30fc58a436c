package approval

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/script"
)

// A Verdict says what to do with a script. The zero value denies.
type Verdict int

// The verdicts, from the strictest on.
const (
	Deny  Verdict = iota // do not run it
	Ask                  // a person decides
	Allow                // run it: it is known to change nothing
)

func (v Verdict) String() string {
	switch v {
	case Deny:
		return "deny"
	case Ask:
		return "ask"
	case Allow:
		return "allow"
	}
	return "verdict " + strconv.Itoa(int(v))
}

// MarshalText writes "deny", "ask" or "allow".
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (v *Verdict) UnmarshalText(text []byte) error {
	for _, one := range []Verdict{Deny, Ask, Allow} {
		if one.String() == string(text) {
			*v = one
			return nil
		}
	}
	return fmt.Errorf("approval: there is no verdict %q", text)
}

// A Kind says what a finding is about.
type Kind string

// The kinds of findings.
const (
	KindScript      Kind = "script"      // the script as a whole: it cannot be read
	KindCommand     Kind = "command"     // a program, builtin or function that is called
	KindRedirection Kind = "redirection" // a file or descriptor that is opened
	KindAssignment  Kind = "assignment"  // a variable that is set
	KindDefinition  Kind = "definition"  // a function, by which a name means something else
	KindExpansion   Kind = "expansion"   // an expansion that evaluates a value, or assigns
	KindTest        Kind = "test"        // a part of [[ ]]
	KindState       Kind = "state"       // something that the shell has, and a new one has not: see Options.Live
	KindInput       Kind = "input"       // text for a program that runs: see Question.Input
)

// A Finding is a part of a script, with the rule that decided about it.
type Finding struct {
	Kind     Kind
	From, To int    // the bytes of the script; those of the whole text, where one is quoted in another
	Text     string // the script's bytes From to To
	Rule     string // the name of the rule
	Reason   string // for a person
	Verdict  Verdict

	// Words are those of a command, if all of them are known, nothing is added to them, and it is known where PATH leads.
	Words []string

	// File is the file of a command's program, if that is known and not trusted, and FileState its state as in File.State.
	File, FileState string

	within string // the directory of the rule that allows it; empty: any
	change string // of KindState: what the shell has
	git    gitUse // of a command of git that is allowed if git is set up so
}

// A Judgement is what Judge found. The zero value denies.
type Judgement struct {
	// Verdict is the strictest of the findings'.
	Verdict Verdict
	// Findings are in the order of the script's bytes. A script without commands has none.
	Findings []Finding

	resolved map[lookup]found // the programs that were looked for; the file of one that PATH does not have is empty
	looked   bool             // it depends on how git is set up
}

// Options are what a caller knows about where the script will run. Nil and the zero value are fine.
type Options struct {
	// Home is the user's home directory. Without it, /root and every /home/NAME are taken for it.
	Home string
	// Protected are paths that no command may name, besides limpet's own state and configuration.
	Protected []string
	// Path is the PATH that the shell begins with; Live has another. Judge looks there, by File, for the program that a name means. A rule that allows
	// counts only for a file that is trusted, or that the rule names. If Path is empty, or File is nil, Judge takes each name for the usual program of that name.
	Path string
	// File says what is at an absolute path. Do not trust a file that the author of the script can replace. If File is nil, each program
	// asks where Live has a PATH that was changed.
	File func(path string) File
	// Exported reports whether the shell that the script runs in may have a variable of that name in its environment, which programs get.
	// With it, a script may set others that bash itself does not read. If it is nil, any name may be exported.
	Exported func(name string) bool
	// Contained says that the script runs where it can change nothing outside, and reach nobody, as in a sandbox that only reads. Then it asks
	// about what may tell secrets, about what cannot be read, and about what rules of Own ask about, and nothing else; what is denied stays so.
	Contained bool
	// Confined says what the place prevents where the script runs, as a sandbox does that may write to its workspace. Judge does not ask about that. It
	// asks as ever about secrets, about what the shell has, about programs that are not known or not trusted, and where a rule of Own says so; what is
	// denied stays denied.
	Confined Confined
	// Live is what the shell has that the script runs in. With it the script asks where that decides what it means: what it calls is a
	// function, say, or PATH leads to another program. Nil is a shell that has nothing but what it began with.
	Live *command.LiveState
	// Git returns how git is set up in a directory; Hooked and Nested are of no matter unless files that are checked out are read. With it, commands of
	// git that only read are allowed where git runs no other program then. If it is nil that is not known, and they ask, but for the form that is neutral.
	Git func(dir string, worktree bool) (Git, error)
	// Own are rules besides those of limpet. Of all rules that are about a command the strictest decides. A rule that allows
	// decides about what limpet would ask about, and never about what limpet denies. Rules that are not valid are left out.
	Own []Own
	// Dir is the directory that the script will run in, for Own and Git.
	Dir string
	// Load returns more of Own for a directory. It is for a Gate, which calls it about each script; if it fails the script asks. Judge does not call it.
	Load func(dir string) ([]Own, error)
	// Directory reports whether there is a directory at an absolute path, that the user may enter. A cd .. behind the cd to one leads back. If it is nil,
	// each directory that a cd names is taken to be there.
	Directory func(path string) bool
	// Now is the time, for Own; nil means time.Now.
	Now func() time.Time
}

// findingsMax bounds the findings of a script. A script with more asks.
const findingsMax = 2000

// Judge reads a script as bash does, and judges each part of it. It runs nothing and opens nothing itself, and is safe for
// concurrent use, if the functions of Options are.
func Judge(text string, opts *Options) Judgement {
	if opts == nil {
		opts = &Options{}
	}
	s := &session{opts: opts, text: text, resolved: make(map[lookup]found), files: make(map[string]File), sources: make(map[*syntax.Stmt]string), takes: make(map[*syntax.Stmt]bool)}
	if opts.Path != "" {
		s.path = strings.Split(opts.Path, ":")
	}
	if opts.Live != nil {
		s.see(newLive(opts.Live, opts))
	}
	read := script.Read(text)
	file := read.File()
	w := s.walker(file, place{})
	if s.dirs = []directory{{value: value{text: ".", pattern: ".", known: true}}}; path.IsAbs(opts.Dir) {
		s.dirs = nil
		w.enter(value{text: opts.Dir, pattern: opts.Dir, known: true}, true)
	}
	s.at = slices.Clone(s.dirs)
	switch {
	case file == nil:
		w.add(KindScript, 0, len(text), Ask, ruleUnreadable, "it cannot be read: it is too long, incomplete, or no bash that is known here")
	case containsCR(text):
		w.add(KindScript, 0, len(text), Ask, ruleUnreadable, "it has carriage returns, which programs read in different ways")
	}
	if opts.Exported != nil && opts.Exported("POSIXLY_CORRECT") {
		w.add(KindState, 0, len(text), Ask, ruleState, "POSIXLY_CORRECT is exported, with which bash reads scripts, and programs their options, in another way")
	}
	if file != nil {
		w.live(read.Parsed(), 0, len(text))
		w.statements(file.Stmts)
	}
	return s.judgement()
}

// session is what the walkers of a script and of the texts in it share.
type session struct {
	opts     *Options
	text     string
	findings []Finding
	apart    int // findings that loop has put aside
	full     bool
	inner    int // bytes of scripts within the script that were read
	expanded int // bytes of variables that have become parts of words
	sources  map[*syntax.Stmt]string
	moves    []string              // where its cd commands lead; "" where that is not known
	dirs     []directory           // where it may be, as far as that is known
	near     int                   // those of dirs that are near
	at       []directory           // where it is, so that a relative cd begins there; those before a cd that may fail, too
	looks    int                   // how often paths were judged in directories
	again    int                   // bytes of loops that were walked once more
	stopped  *Finding              // why some of it is not looked at; nil: all is
	refed    bool                  // exec may have redirected the standard input of all that follows
	printed  []value               // what substitutions print, in the words that are walked
	above    []directory           // words that are kept for later, or printed, and are above files with secrets
	names    []string              // those words that are in the paths of files with secrets
	walked   *value                // a word that is not known, below which a command reads all files
	takes    map[*syntax.Stmt]bool // see takesNames
	live     *live                 // nil: the shell is as a new one
	path     []string              // the directories of PATH; none: not known
	pathless bool                  // what is judged may run without a PATH
	homeless bool                  // it may run without a HOME
	resolved map[lookup]found
	files    map[string]File // by their paths: a look at one may read all of it
	looked   bool
}

func (s *session) judgement() Judgement {
	if len(s.above) > 0 && s.walked != nil {
		s.stop(*s.walked, readsBelow(s.above[0].pattern))
	}
	if f := s.stopped; f != nil {
		f.To = min(max(f.To, 0), len(s.text))
		f.From = min(max(f.From, 0), f.To)
		f.Text = s.text[f.From:f.To]
		s.findings = append(s.findings, *f)
	}
	s.settle()
	if s.opts.Contained {
		s.contain()
	}
	slices.SortStableFunc(s.findings, func(a, b Finding) int {
		if a.From != b.From {
			return a.From - b.From
		}
		return b.To - a.To
	})
	j := Judgement{Verdict: Allow, Findings: s.findings, resolved: s.resolved, looked: s.looked}
	for _, f := range s.findings {
		j.Verdict = min(j.Verdict, f.Verdict)
	}
	return j
}

// contain allows what does no harm where a script is contained.
func (s *session) contain() {
	for i, f := range s.findings {
		if f.Verdict == Ask && f.Rule != ruleRead && f.Rule != ruleUnreadable && f.Rule != "ask.environment" && !strings.HasPrefix(f.Rule, "own.") {
			s.findings[i].Verdict, s.findings[i].Reason = Allow, f.Reason+", and the sandbox keeps that from doing harm"
		}
	}
}

// place says where the bytes of a text are in the script.
type place struct {
	offset   int
	inside   bool // the text is a part of a word: it is all at from to to
	from, to int
}

func (s *session) walker(file *syntax.File, at place) *walker {
	w := &walker{s: s, at: at, vars: make(map[string]value)}
	if file != nil {
		w.assigned = countAssignments(file)
		w.unquoted, w.unseen = findUses(file)
	}
	return w
}

// add adds a finding about bytes of the walker's text.
func (w *walker) add(kind Kind, from, to int, v Verdict, rule, reason string) {
	from, to = w.at.bytes(from, to)
	w.addAt(kind, from, to, v, rule, reason)
}

// addAt adds a finding about bytes of the whole script.
func (w *walker) addAt(kind Kind, from, to int, v Verdict, rule, reason string) {
	s := w.s
	to = min(max(to, 0), len(s.text))
	from = min(max(from, 0), to)
	if s.apart+len(s.findings) >= findingsMax && v != Deny {
		if s.full {
			return
		}
		s.full = true
		kind, from, to, v, rule, reason = KindScript, 0, len(s.text), Ask, ruleUnreadable, "it has more parts than anybody can look at"
	}
	s.findings = append(s.findings, Finding{Kind: kind, From: from, To: to, Text: s.text[from:to], Rule: rule, Reason: reason, Verdict: v})
}

func (p place) bytes(from, to int) (int, int) {
	if p.inside {
		return p.from, p.to
	}
	return from + p.offset, to + p.offset
}

// node returns the bytes of the whole script that a node is at.
func (w *walker) node(n syntax.Node) (from, to int) {
	return w.at.bytes(int(n.Pos().Offset()), int(n.End().Offset()))
}

func (w *walker) ask(kind Kind, n syntax.Node, rule, reason string) {
	from, to := w.node(n)
	w.addAt(kind, from, to, Ask, rule, reason)
}
