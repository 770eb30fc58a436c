// Package capture keeps what commands print: each stream goes into a file of its own, a
// capture, which bash, or the process that a command is, writes to by itself.
//
// A [Pool] makes captures and uses them again; [Outputs] are those of one command; a [Monitor]
// looks after them while the command runs, streams them to Writers and keeps them bounded; and a
// [Tender] does so once the command has ended and left a job behind that still writes.
package capture
