// Package approval reads a script before it runs, and says whether a person should be asked first.
//
// It is a seat belt and no sandbox. A script that it allows can still do harm: a program that is
// named cat may be another program, a file that is read may be a secret, and what a program does
// depends on configuration that is not read here. It finds accidents, and the ways around it that
// are known; package sandbox is what holds against a program that wants to do harm.
//
// [Judge] parses a script, makes a [Finding] of each command, redirection and assignment in it,
// and decides about each by rules: [Allow] for what is known to change nothing, [Deny] for what
// nobody wants, and [Ask] for everything else. What cannot be read or known asks. The strictest
// verdict of the findings is that of the script.
//
// docs/approval.md has the limits, the rules, and how often ordinary scripts ask.
package approval
