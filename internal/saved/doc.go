// Package saved reads what a bash has saved of its state, and compares states.
//
// [Commands] has bash print its state, and [Parse] takes that apart. [State.Since] and
// [State.Pieces] compare two states, and return the pieces in which they differ: variables,
// functions, options and so on. [Script] renders what brings pieces back, and [State.Missing]
// says what has not come back. Nothing here touches a bash: package ipc brings the text
// to and fro.
//
// A [State] is never changed by its methods, but for those with a pointer, and is then safe for
// concurrent use. A command may have forged it: whatever is in it must be read in little time.
package saved
