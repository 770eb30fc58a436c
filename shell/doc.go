// Package shell keeps a bash where you left it: a [PersistentShell] runs
// command after command in one long-lived bash, so that cd, variables,
// functions, options, traps and jobs stay. What ends "bash -c" (exit, set -e, ${x?},
// exec) ends the command and not the bash: see place.go, and docs/adr/0009.
//
//	sh, err := shell.Start(ctx, nil)
//	...
//	defer sh.Close()
//	sh.Run(ctx, "cd /tmp; x=1")
//	res, err := sh.Run(ctx, "echo $x in $PWD")
//
// A command that exits non-zero is no error: see [command.Result]. An error
// means that the command did not run, that it was stopped, that it is not known how
// it ended, or that something is missing of what it wrote:
//
//	situation                                  Result             error
//	exit 0, n, or a signal killed the command  full; 0, n, 128+n  nil
//	exit 7, set -e, ${x?}, exec, kill $$:      full; true code;   nil
//	    the script ended its own shell         bash is the same
//	Timeout, IdleTimeout                       partial, 124       *InterruptError, Is ErrTimeout, ErrIdle
//	the caller's deadline                      partial, 124       *InterruptError, Is context.DeadlineExceeded
//	ctx cancelled, Interrupt, Source stopped   partial, 130       *InterruptError, Is context.Canceled,
//	                                                              ErrInterrupted
//	... but it had ended before any signal     full               nil: the record wins
//	handed over, on request or at a limit      partial, -1;       *HandedOverError; the command runs on
//	                                           Restart set
//	bash was killed or crashed                 partial, -1;       *DeadError
//	                                           Restart set
//	a Writer failed                            full, true code    the Writer's
//	a Writer did not return, and ctx ended     full, true code    ipc.ErrWriterStuck
//	    behind the command
//	the Reader of Request.Stdin failed         full, true code    the Reader's
//	the disk was full, or the runtime          what is left;      *ipc.DiskError
//	    directory deleted, under the command   true code, or -1
//	refused: by Before, Admit, bad request, no bash,  none, -1           the typed error; nothing ran
//	    closed, disk full before, a variable
//	    that is readonly
//	stopped before bash had it: by ctx, in     none, -1           "nothing ran: ...", Is context.Canceled,
//	    the queue too                                             context.DeadlineExceeded
//	    ... by Interrupt, or a Source          none, -1           *InterruptError with NothingRan, Is
//	                                                              ErrInterrupted
//	    ... by Close                           none, -1           Is ErrClosed
//
// So -1 says that nothing ran, or that it is not known how the command ended; 130 and 124
// are for commands that had begun. [command.Result.Elapsed] is 0 if nothing ran.
package shell
