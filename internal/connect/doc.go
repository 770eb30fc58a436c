// Package connect is the far side of a connection to another machine: a program there that has its standard input and
// output for a pipe, and passes requests on to the keepers of that machine.
//
//	GET  /v1/kept?all=1             a list of keeper.Listed
//	PUT  /v1/kept/NAME              {"spec"}: opens the session, which is made if there is a spec; keeper.Opened, with its session.Info
//	POST /v1/kept/NAME/run          {"spec", "command", "close"}: a Run, which opens the session and runs a command in it; a keeper.Opened, and the answer
//	                                to the command behind it. It is not to be asked for twice: the second one may make another session
//	POST /v1/kept/NAME/close        {"session", "forget"}: ends the session of that name and ID, and waits until its keeper is gone
//	POST /v1/kept/NAME/upgrade      {"session", "no_wait", "force"}: has the session kept by this program; {"lost"}
//	POST /v1/kept/NAME/kill         ends a keeper that does not answer
//	     /v1/kept/NAME/terminals... as package terminal/remote has it, for those of a session that has ended, from their records
//	POST /v1/sessions/NAME/follow   looks for another keeper of the session; {"found"}
//	     /v1/sessions/NAME...       as package wire has it, by the keeper of the session
//	POST /v1/files/...              as package transfer has it: files of this machine, read and written
//
// A request below /v1/sessions/NAME says in the header Limpet-Session which session is meant: one that has got the name since
// is another one, and the answer is the error that the program of the session is gone.
//
// Before all that the program prints a line, "limpet-ready NONCE HELLO", with the nonce that it was started with.
//
// Importing the package has a program that is executed under the name "limpet-connect" be such a program, and nothing else.
package connect
