package approval

// Names of rules that are no rows of a table.
const (
	ruleUnreadable  = "unreadable"       // it cannot be parsed, or is too long or too deep
	ruleUnknown     = "unknown"          // only bash can tell
	ruleOther       = "other"            // no rule knows it
	ruleShell       = "shell"            // it changes the shell, or is no command that is known
	ruleExpansion   = "expansion"        // an expansion that evaluates a value
	ruleArithmetic  = "arithmetic"       // arithmetic that evaluates a value
	ruleAssignment  = "assignment"       // a variable that programs or the shell read
	ruleVariable    = "variable"         // a variable that they do not
	ruleDeclaration = "declaration"      // export, declare and the like
	ruleDefinition  = "definition"       // a function
	ruleWrite       = "write"            // a redirection that writes
	ruleNull        = "null"             // one that writes nothing
	ruleRefused     = "confined.write"   // one that fails: see Options.Confined
	ruleConnection  = "confined.connect" // one that opens a connection, and cannot
	ruleState       = "state"            // what the shell has
	ruleFile        = "file"             // a program's file that can be replaced
	ruleInput       = "input"            // what is typed to a program
	ruleRead        = "ask.read"         // a file that may have secrets
	ruleFloor       = "floor.limpet"     // limpet's own files
	ruleFloorOrPath = "deny.write-login" // a file or device that nobody shall write to
)

// A Rule is what rules tell of themselves.
type Rule struct {
	Name    string
	Verdict Verdict
	Reason  string
	Yes, No []string // scripts of which it decides a part, and scripts of which it does not
}

// Rules returns the rules of the tables: those that deny, that ask with a reason of their own, and that allow. What
// no rule knows asks. [ConfinedRules] has those for scripts in a sandbox.
func Rules() []Rule {
	var all []Rule
	for _, r := range denying {
		all = append(all, Rule{r.name, Deny, r.reason, r.yes, r.no})
	}
	for _, r := range asking {
		all = append(all, Rule{r.name, Ask, r.reason, r.yes, r.no})
	}
	for _, r := range wrapping {
		all = append(all, Rule{"wrapper." + firstField(r.programs), r.verdict, r.reason, r.yes, r.no})
	}
	for _, list := range readerTables {
		for _, r := range list {
			all = append(all, Rule{r.name, Allow, r.reason, r.yes, r.no})
		}
	}
	return all
}

// ConfinedRules returns the rules that allow what a sandbox prevents, where all of Options.Confined is so.
func ConfinedRules() []Rule {
	var all []Rule
	for _, r := range confinedRules {
		all = append(all, Rule{r.name, Allow, r.reason, r.yes, r.no})
	}
	return all
}
