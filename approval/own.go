package approval

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// Own is a rule that a person has made. A rule that allows applies to a command only if all words of the command are known. It says
// nothing about the rest of the script, such as redirections. It never allows what limpet's rules deny.
type Own struct {
	Verdict Verdict `json:"verdict"`

	// Words are the first words of the command. To deny, or to ask, they may stand anywhere in it, in that order behind the program.
	Words []string `json:"words"`

	// Options may be among the words that follow, as "-v" or "--run", also as "--run=x"; and words that do not begin with
	// a dash may, if Operands is set. It is for a rule that allows: others hold whatever follows.
	Options  []string `json:"options,omitempty"`
	Operands bool     `json:"operands,omitempty"`

	// File is the path of the program's file, with all symbolic links followed, in a rule that allows. If it is empty, the rule holds for each file that
	// only an administrator can replace: see Options.File. Otherwise it holds for that file alone, and other users may be able to write to it.
	File string `json:"file,omitempty"`

	// FileState is the state that the file must have: see File.State. Empty means any.
	FileState string `json:"file_state,omitempty"`

	// Dir is the directory at or below which it holds; empty means everywhere.
	Dir string `json:"dir,omitempty"`

	// Until is when it ends; the zero time is never.
	Until time.Time `json:"until,omitzero"`

	// Reason is shown, and told to whoever wanted to run what is denied.
	Reason string `json:"reason,omitempty"`
}

// Validate says what cannot be meant.
func (o Own) Validate() error {
	switch {
	case len(o.Words) == 0 || slices.Contains(o.Words, ""):
		return errors.New("a rule wants words, none of them empty")
	case o.Verdict == Allow && strings.Contains(o.Words[0], "/"):
		return fmt.Errorf("%q: a rule that allows wants the name of a program: a path may lead to another one by then", o.Words[0])
	case o.Verdict == Allow && neverAlways(o.Words[0]):
		return fmt.Errorf("%q: it runs what its arguments say, or changes the shell: no rule allows it", o.Words[0])
	case o.Verdict == Allow && strings.HasPrefix(last(o.Words), "-") && (o.Operands || len(o.Options) > 0):
		return fmt.Errorf("%q: what follows may belong to it: leave operands and options out, or name it among the options", last(o.Words))
	case o.Verdict != Allow && (len(o.Options) > 0 || o.Operands):
		return errors.New("options and operands are for a rule that allows: others hold whatever follows")
	case o.Verdict != Allow && o.File != "":
		return errors.New("a file is for a rule that allows: others hold for whatever file has that name")
	case o.File != "" && (!path.IsAbs(o.File) || path.Clean(o.File) != o.File):
		return fmt.Errorf("%q: the file of a rule is an absolute path, without symbolic links", o.File)
	case o.File == "" && o.FileState != "":
		return errors.New("the state of a file wants the file")
	case o.Dir != "" && !path.IsAbs(o.Dir):
		return fmt.Errorf("%q: the directory of a rule is an absolute path", o.Dir)
	}
	for _, option := range o.Options {
		if !strings.HasPrefix(option, "-") || strings.Trim(option, "-") == "" || strings.Contains(option, "=") {
			return fmt.Errorf("%q is no option: as in -v or --run", option)
		}
	}
	return nil
}

func last(words []string) string { return words[len(words)-1] }

// String is the command, as people would say it.
func (o Own) String() string {
	text := strings.Join(o.Words, " ")
	for _, option := range o.Options {
		text += " [" + option + "]"
	}
	if o.Operands {
		text += " ..."
	}
	if o.File != "" {
		text += " (" + o.File + ")"
	}
	return text
}

// Name is that of the rule, in findings.
func (o Own) Name() string { return "own." + o.Verdict.String() }

// holds reports whether the rule is for that directory now.
func (o Own) holds(dir string, now time.Time) bool {
	if !o.Until.IsZero() && now.After(o.Until) {
		return false
	}
	if o.Dir == "" {
		return true
	}
	return path.IsAbs(dir) && isWithin(path.Clean(dir), path.Clean(o.Dir))
}

func isWithin(dir, of string) bool {
	return dir == of || of == "/" || strings.HasPrefix(dir, of+"/")
}

// allows reports whether all of a command is what the rule is for.
func (o Own) allows(words []string) bool {
	if slices.ContainsFunc(words, namesProjectRules) {
		return false
	}
	if len(words) < len(o.Words) || !slices.Equal(words[:len(o.Words)], o.Words) {
		return false
	}
	ended := false
	for _, word := range words[len(o.Words):] {
		name, _, _ := strings.Cut(word, "=")
		switch {
		case ended || !strings.HasPrefix(word, "-") || word == "-":
			if !o.Operands {
				return false
			}
		case word == "--" && o.Operands:
			ended = true
		case !slices.Contains(o.Options, name):
			return false
		}
	}
	return true
}

// projectDir is the directory of a project that has its rules. No rule allows what names it.
const projectDir = ".limpet"

func namesProjectRules(word string) bool {
	return slices.Contains(strings.FieldsFunc(word, func(r rune) bool { return r == '/' || r == '=' }), projectDir)
}

// stops reports whether a command is what the rule denies, or asks about: its words are among those of the command, in that order.
func (o Own) stops(words []string) bool {
	if base(words[0]) != o.Words[0] && words[0] != o.Words[0] {
		return false
	}
	wanted := o.Words[1:]
	for _, word := range words[1:] {
		if len(wanted) > 0 && word == wanted[0] {
			wanted = wanted[1:]
		}
	}
	return len(wanted) == 0
}

// own returns the first of the caller's rules of a verdict that asks about a command, or denies it.
func (s *session) own(v Verdict, words []string) (Own, bool) {
	return s.first(v, func(o Own) bool { return len(words) > 0 && o.stops(words) })
}

// allowing returns the first of the caller's rules that allows a command.
func (s *session) allowing(c *call) (Own, bool) {
	return s.first(Allow, func(o Own) bool { return o.allows(c.known) && c.fits(o) })
}

// first returns the first of the caller's rules of a verdict that holds here and decides.
func (s *session) first(v Verdict, decides func(Own) bool) (Own, bool) {
	for _, o := range s.opts.Own {
		if o.Verdict == v && o.holds(s.opts.Dir, s.now()) && o.Validate() == nil && decides(o) {
			return o, true
		}
	}
	return Own{}, false
}

// staysWithin reports whether the script, which begins at or below a directory, stays there, as far as its cd commands tell: an absolute
// one leads there, and a relative one has no "..".
func (s *session) staysWithin(dir string) bool {
	return !slices.ContainsFunc(s.moves, func(to string) bool {
		if path.IsAbs(to) {
			return !isWithin(path.Clean(to), dir)
		}
		return to == "" || strings.HasPrefix(to, "-") || strings.Contains("/"+to+"/", "/../")
	})
}

// move notes where a command leads, if it is a cd; "" if that is not known.
func (c *call) move() {
	c.enters()
	if !slices.Contains([]string{"cd", "pushd", "popd"}, c.name) {
		return
	}
	to := ""
	if len(c.known) == 2 && c.name != "popd" {
		to = c.known[1]
	}
	c.w.s.moves = append(c.w.s.moves, to)
}

// settle takes back what rules of a directory allow, if the script may leave that: elsewhere the same words may do something else.
func (s *session) settle() {
	for i, f := range s.findings {
		if f.within != "" && !s.staysWithin(f.within) {
			s.findings[i].Verdict, s.findings[i].Rule, s.findings[i].Reason = Ask, ruleOther, "a rule of yours allows it below "+f.within+" alone, and the script may be elsewhere"
		}
		if f.git.looks && f.Verdict == Allow {
			s.settleGit(&s.findings[i])
		}
	}
}

func (s *session) now() time.Time {
	if s.opts.Now != nil {
		return s.opts.Now()
	}
	return time.Now()
}

// why is the reason of a finding.
func (o Own) why() string {
	if o.Reason != "" {
		return o.Reason
	}
	switch o.Verdict {
	case Allow:
		return "a rule of yours allows it: " + o.String()
	case Ask:
		return "a rule asks about it: " + o.String()
	}
	return "a rule denies it: " + o.String()
}

// naming is how many words name a command of a program, for the programs of which it may be allowed with other operands. "*" is any
// word that is no option.
var naming = func() map[string][][]string {
	all := make(map[string][][]string)
	for line := range strings.Lines(`
		go build|go test|go vet|go fmt|go list|go version|go mod tidy|go mod download|go mod verify|go doc
		cargo build|cargo check|cargo test|cargo clippy|cargo fmt|cargo doc|cargo tree|cargo metadata
		npm test|npm run *|npm ci|npm ls|yarn test|yarn run *|yarn list|pnpm test|pnpm run *|pnpm ls
		pytest|tox|ruff|mypy|eslint|prettier|tsc|jest|gofmt|staticcheck|shellcheck
		git add|git commit|git status|git diff|git log|git show|git blame|git grep|git fetch|git stash push|git stash list|git branch|git switch|git push *|git pull *|git tag
		docker ps|docker images|docker logs|docker inspect|kubectl get *|kubectl describe *|kubectl logs
		gh pr view|gh pr list|gh pr diff|gh issue view|gh issue list|gh run view|gh run list
		mkdir|touch`) {
		for form := range strings.SplitSeq(strings.TrimSpace(line), "|") {
			if words := strings.Fields(form); len(words) > 0 {
				all[words[0]] = append(all[words[0]], words)
			}
		}
	}
	return all
}()

// telling are options whose value says where a program works, or what it runs: with one of them a command is allowed word for word alone.
var telling = strings.Fields(`-C -c -f -o --prefix --dir --directory --cwd --config --file --manifest-path --work-tree --git-dir --output --target-dir --rootdir
	-exec -toolexec -vettool -overlay -modfile --exec --upload-pack --receive-pack --repo --context --kubeconfig --host --server`)

// neverAlways reports whether a program runs what its words say, or changes what later commands mean.
func neverAlways(name string) bool {
	if shells[name] || builtins[name] && name != "kill" {
		return true
	}
	for _, r := range wrapping {
		if slices.ContainsFunc(strings.Fields(r.programs), func(p string) bool { ok, _ := path.Match(p, name); return ok }) {
			return true
		}
	}
	for _, r := range asking {
		if (r.name == "ask.interpreter" || r.name == "ask.editor" || r.name == "ask.environment") && r.program(name) {
			return true
		}
	}
	return slices.Contains([]string{"awk", "gawk", "mawk", "nawk", "sed", "find", "make-kpkg", "rm", "rmdir", "unlink", "shred", "dd"}, name)
}

// Always returns the rules that would let the question's script pass from now on, at and below a directory. There are none, and it is not
// ok, if a part of it is not known, is no command, or is such as no rule may allow.
func (q Question) Always(dir string, until time.Time) (rules []Own, ok bool) {
	if q.Changed || q.Input != "" || q.Judgement.Verdict != Ask {
		return nil, false
	}
	for _, f := range q.Judgement.Findings {
		if f.Verdict == Allow {
			continue
		}
		if f.File != "" && f.FileState == "" {
			return nil, false // It may be another file next, and an empty FileState means any.
		}
		if f.Kind != KindCommand || len(f.Words) == 0 || neverAlways(f.Words[0]) || strings.HasPrefix(f.Rule, "own.") {
			return nil, false
		}
		rule := ruleFor(f.Words)
		if slices.Contains(harmful, f.Rule) {
			rule = Own{Verdict: Allow, Words: f.Words}
		}
		rule.Dir, rule.Until, rule.File, rule.FileState = dir, until, f.File, f.FileState
		if rule.Validate() != nil || !rule.allows(f.Words) {
			return nil, false
		}
		if !slices.ContainsFunc(rules, func(o Own) bool { return o.String() == rule.String() }) {
			rules = append(rules, rule)
		}
	}
	return rules, len(rules) > 0
}

// ruleFor is the rule that allows a command, and as little else as makes sense.
func ruleFor(words []string) Own {
	exact := Own{Verdict: Allow, Words: words}
	for _, form := range naming[words[0]] {
		if len(words) < len(form) || !slices.EqualFunc(form, words[:len(form)], func(want, word string) bool {
			return want == word || want == "*" && !strings.HasPrefix(word, "-")
		}) {
			continue
		}
		rule := Own{Verdict: Allow, Words: words[:len(form)], Operands: true}
		for _, word := range words[len(form):] {
			if word == "--" {
				break
			}
			name, _, _ := strings.Cut(word, "=")
			if slices.Contains(telling, name) {
				return exact
			}
			if strings.HasPrefix(word, "-") && word != "-" && !slices.Contains(rule.Options, name) {
				rule.Options = append(rule.Options, name)
			}
		}
		return rule
	}
	return exact
}
