// Package ipc is the file protocol between limpet and a bash that stays: how a
// command is put into files that bash sources, how bash reports that it is
// done, and how the report and the output are read.
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
// A [Dir] belongs to one bash and is used by one command at a time; a
// [Watcher] may be used by any number of goroutines.
package ipc
