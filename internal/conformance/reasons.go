package conformance

// Reason says why rows may differ from bash -c.
type Reason struct {
	// Text is for docs/fidelity.md: what a user of the shell should know.
	Text string

	// Example is the name of a row that shows it.
	Example string

	// Ours means that limpet does it, not bash, and could do without.
	Ours bool
}

// Reasons are all there are. A row that differs for another one has found an
// error.
var Reasons = map[string]Reason{
	"empty-script": {
		Text: "A script without a word in it is refused with `ErrEmptyScript`: " +
			"it is rather a mistake of the caller's than a command that does nothing.",
		Example: "misc-only-spaces",
	},
	"error-prefix": {
		Text: "Error messages of an interactive bash have no line number. " +
			"The comparison overlooks that on stderr, but not where a script sends its errors to stdout.",
		Example: "redir-exec-stderr-to-stdout",
	},
	"errexit-trap": {
		Text: "When `set -e` ends a subshell, bash takes back the redirections of the commands around it " +
			"before it runs the subshell's EXIT trap. What the trap prints goes where bash itself writes, and is lost. " +
			"In bash -c that happens around an `eval` with a redirection; each command of a persistent shell is one.",
		Example: "trap-exit-set-e",
		Ours:    true,
	},
	"descriptor-stays": {
		Text: "A descriptor that a script opens stays open in the shell, also one that leads to a process substitution. " +
			"The process goes on reading, and prints what it has when the descriptor is closed. bash -c closes it by ending.",
		Example: "whole-fd-number-left",
	},
	"fatal-expansion": {
		Text: "An expansion that fails for good (`${x?}`, a missing variable under `set -u`) ends bash -c with status 127. " +
			"It ends a script of a persistent shell, too, but with status 1 where it stands in a pipeline, in a background job, " +
			"or in the list of a `for`: there the fork that runs the script does not tell what ended it.",
		Example: "fatal-question-in-for-list",
	},
	"no-kill-message": {
		Text: "A script says which child a signal killed (`bash: line 1: 4711 Killed  sleep 9`). " +
			"An interactive bash would say so at its prompt, but not while it sources a file. The status is the same.",
		Example: "signal-message-child-dies",
	},
	"not-dash-c": {
		Text: "What tells an interactive bash that reads a pipe from bash -c: the letters in `$-`, `BASH_EXECUTION_STRING`, " +
			"a `PIPESTATUS` before the first pipeline, an open descriptor 255.",
		Example: "edge-dash-flags",
	},
	"session-variable": {
		Text: "`LIMPET_SESSION` is in the environment, and `LIMPET_COMMAND` in that of a one-shot bash: " +
			"they mark the processes that have to end with it.",
		Example: "edge-exported-names",
	},
	"source-frame": {
		Text: "A command of a persistent shell is sourced, and sees that where it asks for it: in `BASH_SOURCE`, `FUNCNAME`, " +
			"`BASH_LINENO`, `BASH_ARGV`, `caller`, and in `$_` before its first word.",
		Example: "edge-bash-source-top",
	},
	"test-parse-status": {
		Text:    "A syntax error inside of `[[ ]]` has status 2, as any other has. bash -c returns 0.",
		Example: "cond-syntax-in-double-bracket",
	},
	"verbose-unread": {
		Text: "Of a script with a syntax error nobody can tell whether it says `set -v`. " +
			"If it does, bash also prints the command by which it saves its state.",
		Example: "verbose-syntax",
		Ours:    true,
	},
	"xtrace-depth": {
		Text: "`set -x` writes one more `+` for each `eval` and each sourced file around a command. " +
			"In a persistent shell these are two.",
		Example: "setx-top",
	},
}
