package command

// LiveState is what a shell has at a moment that decides what a script means there. A shell that has just started has no functions, no
// aliases and no traps, and its variables are those of Env.
type LiveState struct {
	Functions []string
	Aliases   []string // also if the shell does not expand them
	Traps     []string // signals, also DEBUG, ERR, RETURN and EXIT
	Builtins  []string // those that are enabled
	Disabled  []string // builtins that are not
	Options   []string // those of set -o and of shopt that are on

	// Hashed are the files of programs by their names, which the shell runs without a look at PATH.
	Hashed map[string]string

	Variables []LiveVariable

	// Env is what the shell was started with, and what callers have set since, as "NAME=value". The last entry of a name counts; "NAME"
	// is a variable that a caller has unset.
	Env []string

	// Descriptors are the numbers from 3 on that the shell has open. Libraries are the files of code that it has loaded.
	Descriptors []int
	Libraries   []string
}

// LiveVariable is a variable of a shell.
type LiveVariable struct {
	Name       string
	Attributes string // the letters of declare: "x" if it is exported, "i" for a number, "n" for a reference
	Value      string // empty for arrays, and for a variable without a value
}
