// Package sandbox runs a shell inside of bubblewrap: a [Policy] becomes an
// argv, and [New] a transport that wraps what it is asked to start. It fails
// closed: a policy that cannot be enforced is an [*Error] that names the cause
// and the remedy, and nothing runs.
//
// What holds, what does not, and how to read a refusal is in docs/sandbox.md.
package sandbox
