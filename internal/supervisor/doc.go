// Package supervisor keeps a background job when the program that started it is
// gone: a process of its own reads what the job prints, feeds what it reads, waits
// for its end and writes all of it down, in the job's directory.
//
//	program                         supervisor                      job
//	   | exec, order on a pipe -------> |                             |
//	   |                                | fork, exec ---------------> |
//	   | <------------- its pid, or why |                             |
//	   |                                | <-------------- its output  |
//	   |   log/, beat <---------------- |                             |
//	   | stdin, control --------------> | --------------------------> |
//	   |                                | <----------------- its end  |
//	   |   exit.json <----------------- |
//
// The supervisor is the program's own executable, entered from init: a program that
// uses the package need do nothing for it. See docs/adr/0005. Everybody who may
// read the directory can see how the job is; there is nothing to be asked for.
package supervisor
