package approve

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/command"
)

// A question may come of another machine, where each of its texts may be anything.
func TestNoTextOfAQuestionMovesTheCursor(t *testing.T) {
	const clear, shown = "\x1b[2J", `\x1b[2J`
	finding := func(f approval.Finding) approval.Question {
		f.Verdict = approval.Ask
		return approval.Question{Dir: "/", Judgement: approval.Judgement{Verdict: approval.Ask, Findings: []approval.Finding{f}}}
	}
	for name, text := range map[string]string{
		"the script":                      asked(approval.Question{Dir: "/", Script: clear}, About{}),
		"the directory":                   asked(approval.Question{Dir: clear}, About{}),
		"who asks":                        asked(approval.Question{Dir: "/"}, About{From: clear}),
		"what it is typed to":             asked(approval.Question{Input: clear}, About{}),
		"what it reads":                   asked(approval.Question{Dir: "/"}, About{Stdin: clear}),
		"the part of the script":          asked(finding(approval.Finding{Text: clear}), About{}),
		"the reason":                      asked(finding(approval.Finding{Reason: clear}), About{}),
		"the rule":                        asked(finding(approval.Finding{Rule: clear}), About{}),
		"the program":                     askedFor(command.PasswordQuestion{Kind: command.AskPassword, Program: clear}),
		"the program that asks for a yes": askedFor(command.PasswordQuestion{Kind: command.AskConfirm, Program: clear}),
		"the words":                       askedFor(command.PasswordQuestion{Kind: command.AskPassword, Prompt: clear}),
		"the chain":                       askedFor(command.PasswordQuestion{Kind: command.AskPassword, Chain: []command.AskingProcess{{Command: clear}}}),
	} {
		t.Run(name, func(t *testing.T) {
			assert.NotContains(t, text, "\x1b")
			assert.Contains(t, text, shown)
		})
	}
}
