package approval_test

import (
	"testing"

	"github.com/limpet-sh/limpet/approval"
)

// FuzzJudge: there is no panic, findings are in the script, and the verdict is theirs.
func FuzzJudge(f *testing.F) {
	for _, file := range []string{"ways.txt", "denied.txt"} {
		for _, script := range scripts(f, file) {
			f.Add(script)
		}
	}
	for _, r := range approval.Rules() {
		for _, script := range r.Yes {
			f.Add(script)
		}
	}
	f.Fuzz(func(t *testing.T, script string) {
		j := approval.Judge(script, nil)
		strictest := approval.Allow
		for _, one := range j.Findings {
			if one.From < 0 || one.To < one.From || one.To > len(script) || script[one.From:one.To] != one.Text {
				t.Fatalf("%q: a finding is at %d to %d, and says %q", script, one.From, one.To, one.Text)
			}
			if one.Rule == "" || one.Reason == "" || one.Kind == "" {
				t.Fatalf("%q: a finding says nothing: %+v", script, one)
			}
			strictest = min(strictest, one.Verdict)
		}
		if j.Verdict != strictest {
			t.Fatalf("%q: the verdict is %v, and the strictest finding's %v", script, j.Verdict, strictest)
		}
		if again := approval.Judge(script, nil); again.Verdict != j.Verdict || len(again.Findings) != len(j.Findings) {
			t.Fatalf("%q: judged again, it is something else", script)
		}
	})
}
