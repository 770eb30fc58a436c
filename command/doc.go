// Package command says what is asked of a shell and what came of it: a
// [Request] goes in, a [Result] comes out. The persistent shell, the one-shot
// runner and everything above them share these types, so that a caller can
// swap one for the other.
//
// The package depends on the standard library alone. Its values are plain
// data: safe to copy, and safe for concurrent use as long as nobody changes
// them.
package command
