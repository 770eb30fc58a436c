// Package wire is how a session is used that another program has: a [Handler] serves sessions by
// HTTP, and a [Client] reaches them. Who has a [Session] of a Client need not know where it is: it
// has the methods of a session of this program, with the same errors for errors.Is and errors.As,
// and the same texts.
//
// # Protocol
//
// All is below /v1, and of /v1/sessions/NAME where the path begins with a dot. Bodies and answers
// are JSON; times are in nanoseconds. What is run, and where, may be no UTF-8: such a string is {"bytes": BASE64}.
//
//	GET  /v1                        Hello: the versions of the protocol that are spoken, and who speaks
//	GET  /v1/sessions               a list of session.Info
//	GET  .                          session.Info
//	GET  ./events?after=N           a list of session.Event, when there are some, or an empty one after 20 s
//	GET  ./noticed?after=N          the same of those that are notices
//	POST ./interrupt                stops the command that runs; {"ran": true}
//	POST ./background               makes a job of it
//	POST ./fork                     {"name"}; session.Info of the fork
//	POST ./checkpoint ./rollback    {"name"}
//	POST ./reset ./close
//	POST ./upgrade                  another executable for the program that has the session: see Upgrade
//	GET  ./look                     {"state", "dir", "mark", "mounts"}: what the shell has that decides what a script means
//	POST ./at/MARK/commands         as ./commands; nothing runs, and the error is "state_changed", if a command has begun since that look
//	POST ./commands                 a command, with an id that its caller has drawn at random: {"id", "script", "dir",
//	                                "env", "unset", "update_env", "stdin", "timeout_ns", ...}. Asked again with the same id it is found,
//	                                and not run once more; with "remember", an id that its caller has chosen, also when the
//	                                program has died: "may_have_run", or the error of kind "ended". Answered at once; with ?out=0 or ?err=0 by the stream below
//	GET  ./commands                 those that run, and the last ones
//	GET  ./commands/ID              how far it is, and, when it has ended, what came of it
//	GET  ./commands/ID/output?out=N&err=N    a stream: what is printed from those offsets on. A stream that is not named is left out
//	POST ./commands/ID/stdin?offset=N        a piece of at most 256 KiB, when the one before it was read; &eof=1 with
//	                                the last. {"next": N}, the offset of the next one; "ended" if nobody reads any more. What comes
//	                                behind the end is an error
//	POST ./commands/ID/stop         stops it, as the end of its caller's context does
//
//	POST ./mcp                      {"alone", "options"}; 101, and from then on the Model Context Protocol, a message a line
//	GET  ./jobs                     a list of jobs.Job
//	POST ./jobs                     a jobs.Spec: starts a job in the session; jobs.Job. It is not to be asked for twice
//	POST ./jobs/list ./jobs/stop    a jobs.Filter: a list of jobs.Job, of jobs.Stopped
//	POST ./jobs/wait                jobs.WaitOptions; jobs.Waited, when it has come
//	GET  ./jobs/ID                  jobs.Job
//	POST ./jobs/ID/poll ./log       jobs.PollOptions, jobs.LogOptions; jobs.Polled, jobs.Log, with the bytes as "raw" if they are no text
//	POST ./jobs/ID/search           {"pattern"} and jobs.SearchOptions; jobs.Found
//	POST ./jobs/ID/history          a list of jobs.Event
//	GET  ./jobs/ID/output?from=N    a stream, as that of a command: what the job prints
//	POST ./jobs/ID/write ./submit   the bytes; {"written": N}
//	POST ./jobs/ID/eof ./resize ./stop ./forget
//	POST ./terminals                a terminal.Spec: starts a program on a terminal; terminal.Info
//	     ./terminals...             as package terminal/remote has it
//
// A stream is frames, and ends with the command:
//
//	1 OFFSET MISSED LENGTH\n    and so many bytes of stdout, the first of them at OFFSET; MISSED bytes before it are not kept
//	2 OFFSET MISSED LENGTH\n    of stderr
//	0 LENGTH\n                  and {"result": ..., "error": ...}, the last
//
// One that breaks off is asked for again from where it was. Reading takes nothing away. A command
// waits for nobody who reads: who is too slow misses something, and is told.
//
// A failure has a status of 400 or more and is {"error": "...", "is": ["closed"], "tree": {...}}: its
// text, what it is for errors.Is, and the error as a tree, from which a client makes it again. What was done all
// the same is in "value".
//
// A session may move to another program, which is found where this one was. Requests that wait for its
// shell are held up while it does. Then all are answered by "moved", but for those about commands that ran
// here: nothing was done, and they are to be sent there.
//
// Fields are only added, and unknown ones are ignored. A header has at most 32 KiB, a body 8 MiB. A
// command runs on when its caller's connection breaks. Its stdin stays open for 30 s then, or "away_ns" of its request; if nobody reads its output
// by then the stdin ends, what comes of the command is an error that says so, and so is each further piece. Commands that have ended are kept: the last
// 64, and for an hour as many as there is room for.
package wire
