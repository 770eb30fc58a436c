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
	"disabled-builtin": {
		Text: "A bash whose `printf` was taken away by `enable -n` cannot report. " +
			"It is replaced, and the error says so.",
		Example: "enable-n-top",
		Ours:    true,
	},
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
	"exit-trap-later": {
		Text: "An EXIT trap runs when bash ends. The bash of a persistent shell does not end with the command: " +
			"the trap stays, and runs at `exit` or at Close.",
		Example: "trap-exit-top",
	},
	"fatal-expansion": {
		Text: "An expansion that fails for good (`${x?}`, a missing variable under `set -u`) ends bash -c with status 127. " +
			"An interactive bash gives up the line, with status 1, and goes on with the next one. limpet makes it end the script, with 127, " +
			"but not where it stands in an `eval` or a sourced file of the script's, and in a pipeline or a background job the status is still 1. " +
			"Neither does it help a bad `${x@Z}`, or a syntax error inside of `$( )`.",
		Example: "fatal-question-eval",
	},

	"no-kill-message": {
		Text: "A script says which child a signal killed (`bash: line 1: 4711 Killed  sleep 9`). " +
			"An interactive bash would say so at its prompt, but not while it sources a file. The status is the same.",
		Example: "signal-message-child-dies",
	},
	"noexec": {
		Text:    "An interactive bash ignores `set -n`.",
		Example: "setn-subshell",
	},
	"not-dash-c": {
		Text: "What tells an interactive bash that reads a pipe from bash -c: the letters in `$-`, `BASH_EXECUTION_STRING`, " +
			"a `PIPESTATUS` before the first pipeline, an open descriptor 255.",
		Example: "edge-dash-flags",
	},

	"own-death": {
		Text: "A bash that a signal ends cannot say how the command did: there is a `DeadError` and no status. " +
			"Who started bash -c sees 128+n. The shell goes on with a new bash.",
		Example: "signal-self-kill-top",
	},
	"return": {
		Text:    "At top level `return` ends the command with its status, since a command is sourced. For bash -c it is an error.",
		Example: "func-return-top-level",
	},
	"session-variable": {
		Text: "`LIMPET_SESSION` is in the environment, and `LIMPET_COMMAND` in that of a one-shot bash: " +
			"they mark the processes that have to end with it.",
		Example: "edge-exported-names",
	},
	"signal-ignored": {
		Text:    "An interactive bash ignores SIGTERM, also its own.",
		Example: "signal-self-term-top",
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

	"xtrace-depth": {
		Text: "`set -x` writes one more `+` for each `eval` and each sourced file around a command. " +
			"In a persistent shell these are two.",
		Example: "setx-top",
	},
}
