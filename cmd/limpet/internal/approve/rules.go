package approve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/statedir"
)

// ruleFile is a file of rules that people may edit.
type ruleFile struct {
	path  string
	Rules []approval.Own `json:"rules"`
}

// mostRules bounds a file of rules, in bytes.
const mostRules = 1 << 20

// projectFile is where a project has its rules, below its directory.
const projectFile = ".limpet/approvals.json"

// readRules reads a file, which need not be there. A rule that cannot be meant is an error: who wrote it relies on it.
func readRules(path string) (*ruleFile, error) {
	f := &ruleFile{path: path}
	if err := statedir.ReadJSON(path, f, mostRules); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for i, rule := range f.Rules {
		if err := rule.Validate(); err != nil {
			return nil, fmt.Errorf("%s: rule %d: %w", path, i+1, err)
		}
	}
	return f, nil
}

// userRules reads the user's: limpet/approvals.json in the directory for configurations.
func userRules() (*ruleFile, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return nil, fmt.Errorf("finding approvals.json: %w", err)
	}
	return readRules(filepath.Join(dir, "limpet", "approvals.json"))
}

// projectRules reads those of the project that a directory belongs to. They may ask and deny, and not allow: whoever
// writes there may be who is asked about.
func projectRules(dir string) (*ruleFile, error) {
	f, err := readRules(filepath.Join(projectOf(dir), projectFile))
	if err != nil {
		return nil, err
	}
	for i, rule := range f.Rules {
		if rule.Verdict == approval.Allow {
			return nil, fmt.Errorf("%s: rule %d allows %s: the rules of a project can ask and deny, and those of a user allow", f.path, i+1, rule)
		}
	}
	return f, nil
}

// projectOf is the directory of the project that a directory belongs to: the first one upwards that has rules, or a repository; else itself.
func projectOf(dir string) string {
	for at := dir; ; at = filepath.Dir(at) {
		for _, name := range []string{projectFile, ".git"} {
			if _, err := os.Lstat(filepath.Join(at, name)); err == nil {
				return at
			}
		}
		if at == filepath.Dir(at) {
			return dir
		}
	}
}

// Rules are those that hold in a directory, for approval.Options.Load.
func Rules(dir string) ([]approval.Own, error) {
	user, err := userRules()
	if err != nil {
		return nil, err
	}
	project, err := projectRules(dir)
	if err != nil {
		return user.Rules, err
	}
	return slices.Concat(user.Rules, project.Rules), nil
}

// alwaysFor is how long a rule holds that an answer has made.
const alwaysFor = 30 * 24 * time.Hour

// always are the rules that the answer "always" to a question would make, and where they would hold. There are none where that would be
// everywhere, or below the user's home.
func always(q approval.Question) (rules []approval.Own, ok bool) {
	if !filepath.IsAbs(q.Dir) {
		return nil, false
	}
	dir := projectOf(filepath.Clean(q.Dir))
	if home, err := os.UserHomeDir(); dir == "/" || err == nil && (dir == home || isAbove(dir, home)) {
		return nil, false
	}
	return q.Always(dir, time.Now().Add(alwaysFor).Truncate(time.Second))
}

func isAbove(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// remember adds rules to those of the user.
func remember(ctx context.Context, rules []approval.Own) error {
	return changeRules(ctx, func(f *ruleFile) error {
		f.Rules = append(f.Rules, rules...)
		return nil
	})
}

// changeRules changes those of the user, while no other limpet does: each would write what the other has not read.
func changeRules(ctx context.Context, change func(*ruleFile) error) error {
	dir, err := os.UserConfigDir()
	if err != nil {
		return fmt.Errorf("finding approvals.json: %w", err)
	}
	dir = filepath.Join(dir, "limpet")
	if err := private.MkdirAll(dir); err != nil {
		return err
	}
	unlock, err := statedir.Lock(ctx, filepath.Join(dir, "approvals.lock"))
	if err != nil {
		return err
	}
	defer unlock()
	f, err := userRules()
	if err == nil {
		err = change(f)
	}
	if err != nil {
		return err
	}
	return f.write()
}

func (f *ruleFile) write() error {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return statedir.Write(f.path, append(b, '\n'))
}

func rulesCommand(p Program) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "rules",
		Short: "List the rules of yours and of this project",
		Long: `Rules lists the rules that say what needs no question, what asks, and what is denied, besides those of limpet itself: first yours,
of limpet/approvals.json in ~/.config (or XDG_CONFIG_HOME), with a number each, and then those of the project of this directory, of .limpet/approvals.json
there, which can ask and deny, and not allow. The answer "always" to a question adds one of yours, which holds in the project for 30 days.

A rule that allows names the first words of a command, and which options and operands may follow:

  {"rules": [
    {"verdict": "allow", "words": ["go", "test"], "options": ["-run", "-v"], "operands": true, "dir": "/home/me/src/x"},
    {"verdict": "deny", "words": ["git", "push"], "reason": "the pipeline pushes"}
  ]}

It holds for a program whose file nobody but root can replace, or with "file": "/home/me/.cargo/bin/cargo" for that file alone, which a name
in the PATH must lead to, symbolic links followed. With "file_state", which "always" writes, it ends when the file changes.

With --json it prints one object a line.`,
		Args: noun.Wants(0, 0, "wants no arguments"),
		RunE: func(*cobra.Command, []string) error {
			user, err := userRules()
			if err != nil {
				return err
			}
			dir, _ := os.Getwd() // Where it is gone, no project's rules hold.
			project, err := projectRules(dir)
			if err != nil {
				return err
			}
			rows := [][]string{{"N", "VERDICT", "COMMAND", "BELOW", "UNTIL", "REASON"}}
			for _, f := range []*ruleFile{user, project} {
				for i, rule := range f.Rules {
					if asJSON {
						if err := noun.JSON(os.Stdout, ruleJSON{rule, f.path, i + 1}); err != nil {
							return err
						}
						continue
					}
					number := "project"
					if f == user {
						number = strconv.Itoa(i + 1)
					}
					rows = append(rows, []string{number, rule.Verdict.String(), Escape(rule.String()), orDash(Escape(rule.Dir)), until(rule.Until), Escape(rule.Reason)})
				}
			}
			if asJSON {
				return nil
			}
			if len(rows) == 1 {
				p.Note("there are no rules but those of limpet itself: limpet help approvals rules")
				return nil
			}
			return noun.Table(os.Stdout, rows...)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object a line")
	cmd.AddCommand(removeCommand(p))
	return cmd
}

// ruleJSON is a line of rules --json. Its names are a promise: they only ever grow.
type ruleJSON struct {
	approval.Own
	File   string `json:"file"`
	Number int    `json:"number"` // in the file, from 1 on
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// until says when a rule ends.
func until(t time.Time) string {
	switch {
	case t.IsZero():
		return "-"
	case time.Now().After(t):
		return "over"
	}
	return t.Local().Format("2006-01-02 15:04")
}

func removeCommand(p Program) *cobra.Command {
	return &cobra.Command{
		Use:     "remove N...",
		Short:   "Remove rules of yours, by their numbers",
		Long:    "Remove removes rules of yours, by the numbers that limpet approvals rules prints. It is for a terminal of yours: what runs in a session cannot.",
		Example: "  limpet approvals rules remove 2",
		Args:    noun.Wants(1, 1000, "wants the number of a rule"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if within() {
				return errors.New("what runs in a session, a job or a terminal of limpet cannot change rules: do it at a terminal of your own")
			}
			gone := make(map[int]bool)
			var left []approval.Own
			err := changeRules(cmd.Context(), func(f *ruleFile) error {
				if len(f.Rules) == 0 {
					return noun.Usagef(cmd, "there are no rules of yours")
				}
				for _, arg := range args {
					n, err := strconv.Atoi(arg)
					if err != nil || n < 1 || n > len(f.Rules) {
						return noun.Usagef(cmd, "%q: wants a number from 1 to %d: limpet approvals rules prints them", arg, len(f.Rules))
					}
					gone[n-1] = true
				}
				for i, rule := range f.Rules {
					if !gone[i] {
						left = append(left, rule)
					}
				}
				f.Rules = left
				return nil
			})
			if err != nil {
				return err
			}
			p.Note("%d removed, %d left", len(gone), len(left))
			return nil
		},
	}
}
