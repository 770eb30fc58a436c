// Package ipc is the conversation between limpet and a bash that stays: how a
// command is put into files that bash sources, how bash reports that it is
// done, and how the report and the output are read. An [Exchange] is the whole of it:
//
//	x, err := ipc.Open(options)         // the files; bash is started with x.Stdout()
//	rec, err := x.Greet(ctx, conn)      // bash is ready
//	r, err := x.Begin(call, merge)      // a command is put into files,
//	err = r.Send()                      // run,
//	why := r.Await(ctx, ipc.Wait{})     // and waited for;
//	rec, pipeline, done := r.Record()   // how it ended
//	stdout, stderr, err := r.Read(max)  // what it printed
//	held := r.Release()                 // its files are free again
//
// What happens meanwhile:
//
//	limpet                                      bash
//	  |-- writes DIR/eval ------------------------>|
//	  |-- two lines on bash's stdin -------------->|
//	  |   1  . DIR/eval; printf RECORD             |  sources eval, which says
//	  |   2  case $? in 0) ;; *) printf RECORD ... |    eval 'SCRIPT' </dev/null >>OUT 2>>ERR
//	  |                                            |
//	  |<-- DIR/status/record, "ID STATUS ... ID" --|  bash's own stdout, written last
//	  |    (seen by fsnotify, or by polling)       |
//	  |<-- OUT, ERR by descriptors that limpet ----|
//	       opened before bash knew their names
//
// Line 2 acts only when line 1 was thrown away, by a signal or a fatal
// expansion: bash then leaves a status other than 0, and a completed line 1
// always leaves 0, the status of its printf. docs/protocol.md tells it in
// full, with the reasons.
//
// A [Exchange] belongs to one bash and is used by one command at a time. What keeps the output is
// in internal/capture, and what takes saved states apart is in internal/saved.
package ipc
