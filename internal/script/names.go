package script

// Names says how to reach a builtin past functions that the user may have
// named like it.
type Names string

// The ways to name a builtin. The backslash keeps aliases out.
const (
	ViaBuiltin Names = `\builtin ` // whatever the function is named, but for "builtin"
	ViaCommand Names = `\command ` // when there is a function named builtin
	Plain      Names = `\`         // when there are functions named builtin and command
)
