// Package approve is the noun approve of limpet's command line: what limpet would ask a person about a script.
package approve

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/sandbox"
)

// Exit codes of explain.
const (
	CodeAsk  = 3
	CodeDeny = 4
)

// Sandbox is how the command line names a sandbox.
type Sandbox struct {
	Add    func(cmd *cobra.Command)                               // adds the flags
	Policy func(cmd *cobra.Command) (sandbox.Policy, bool, error) // false if none is asked for
}

// Command is limpet approve. Exit makes an error of an exit code, which says nothing.
func Command(exit func(code int) error, box Sandbox, help *cobra.Command, noCommand cobra.PositionalArgs) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approve",
		Short: "What a person would be asked about a script",
		Long: `Approve reads a script without running it, and says whether it is known to change nothing (allow), whether a
person should decide (ask), or whether nobody wants it (deny).

With --approve ask, limpet run, repl, jobs start and term start ask so at the terminal before a script runs, term send, jobs write and jobs submit
before anything is typed, and limpet mcp has a person answer by limpet approvals; with --approve deny, what would ask does not run. On the command line the exit code is 126 then.

It is a seat belt and no sandbox: a script that it allows can still do harm. See docs/approval.md, and limpet help run for
--sandbox.`,
		Example: "  limpet approve explain 'grep -rn TODO . | sort'\n  limpet run --approve ask 'rm -rf build'",
		Args:    noCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(explainCommand(exit, box), help)
	return cmd
}

func explainCommand(exit func(code int) error, box Sandbox) *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "explain [flags] script|-",
		Short: "Say what limpet makes of a script, and why",
		Long: `Explain prints the verdict about a script, and the parts that decide it, each with its rule. With - the script is read
from standard input. Nothing is run. Characters that move the cursor or cannot be seen are shown as \x1b or \u202e.

With --sandbox it says what would be asked in that sandbox. The exit code is 0 for allow, 3 for ask and 4 for deny.

With --json, it prints one object with verdict, findings and rules.`,
		Example: `  limpet approve explain 'ls -l && rm -r build'
  limpet approve explain --all --sandbox workspace-write 'kill %1; rm -r /tmp/build'
  limpet approve explain --json - <script.sh`,
		Args: noun.Wants(1, 1, "wants a script, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			script := args[0]
			if script == "-" {
				text, err := io.ReadAll(io.LimitReader(os.Stdin, 1<<20))
				if err != nil {
					return fmt.Errorf("reading the script from standard input: %w", err)
				}
				script = string(text)
			}
			home, _ := os.UserHomeDir() // Without it, more paths are taken for homes.
			dir, _ := os.Getwd()        // Where it is gone, no project's rules hold.
			own, err := Rules(dir)
			if err != nil {
				return err
			}
			opts := &approval.Options{Home: home, Own: own, Dir: dir, Git: Git(nil), Exported: Exported(nil), Path: PathOf(nil), File: File, Directory: Directory}
			policy, asked, err := box.Policy(cmd)
			if err != nil {
				return err
			}
			if asked {
				Confine(opts, policy)
			}
			j := approval.Judge(script, opts)
			if asJSON {
				err = noun.JSON(os.Stdout, toJSON(j))
			} else {
				err = explain(os.Stdout, script, j, all, asked)
			}
			if err != nil {
				return err
			}
			return exit(code(j.Verdict))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object with verdict, findings and rules")
	cmd.Flags().BoolVarP(&all, "all", "a", false, "print the parts that are allowed, too")
	box.Add(cmd)
	return cmd
}

func code(v approval.Verdict) int {
	switch v {
	case approval.Allow:
		return 0
	case approval.Ask:
		return CodeAsk
	}
	return CodeDeny
}

// judgementJSON is what explain --json prints. Its names are a promise: they only ever grow.
type judgementJSON struct {
	Verdict  approval.Verdict `json:"verdict"`
	Findings []findingJSON    `json:"findings"`
	Rules    []string         `json:"rules"` // of the findings, each once
}

type findingJSON struct {
	Kind    approval.Kind    `json:"kind"`
	Verdict approval.Verdict `json:"verdict"`
	From    int              `json:"from"` // bytes of the script
	To      int              `json:"to"`
	Text    string           `json:"text"`
	Rule    string           `json:"rule"`
	Reason  string           `json:"reason"`
}

func toJSON(j approval.Judgement) judgementJSON {
	out := judgementJSON{Verdict: j.Verdict, Findings: []findingJSON{}, Rules: []string{}}
	for _, f := range j.Findings {
		out.Findings = append(out.Findings, findingJSON{f.Kind, f.Verdict, f.From, f.To, f.Text, f.Rule, f.Reason})
		if !slices.Contains(out.Rules, f.Rule) {
			out.Rules = append(out.Rules, f.Rule)
		}
	}
	return out
}

// explain prints a judgement: the strictest findings first.
func explain(w io.Writer, script string, j approval.Judgement, all, sandboxed bool) error {
	var b strings.Builder
	findings := slices.Clone(j.Findings)
	slices.SortStableFunc(findings, func(a, b approval.Finding) int { return int(a.Verdict - b.Verdict) })
	fmt.Fprintf(&b, "%s\n", j.Verdict)
	if j.Verdict == approval.Allow {
		what := "is known to change nothing"
		if sandboxed {
			what += ", or the sandbox prevents what it would do"
		}
		fmt.Fprintf(&b, "  each part of it %s\n", what)
	}
	for _, f := range findings {
		if f.Verdict == approval.Allow && !all {
			continue
		}
		fmt.Fprintf(&b, "\n%s: %s (%s)\n", f.Verdict, f.Reason, f.Rule)
		mark(&b, script, f)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// linesMax bounds the lines of the script that are shown for a finding.
const linesMax = 12

// mark prints the lines of the script that a finding is in, with the part underlined.
func mark(b *strings.Builder, script string, f approval.Finding) {
	at, shown := 0, 0
	for i, line := range strings.Split(script, "\n") {
		end := at + len(line)
		if end >= f.From && at < max(f.To, f.From+1) {
			if shown == linesMax {
				b.WriteString("       | ...\n")
				return
			}
			shown++
			from, to := max(f.From-at, 0), min(f.To-at, len(line))
			before, part := Escape(line[:min(from, len(line))]), ""
			if from < to {
				part = Escape(line[from:to])
			}
			fmt.Fprintf(b, "%6d | %s\n", i+1, Escape(line))
			fmt.Fprintf(b, "       | %s%s\n", strings.Repeat(" ", len([]rune(before))), strings.Repeat("^", max(len([]rune(part)), 1)))
		}
		at = end + 1
	}
}
