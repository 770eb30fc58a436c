// Package transfer copies files and directories between this machine and another one. A [Copier] reads by a [Source] and
// writes by a [Sink]. [Local] is both, for the files of the machine that runs it. [Remote] is both, for those of another
// machine, which has a [Handler].
//
//	near                                       far
//	Copier -- Local                            Handler -- Local
//	       -- Remote -- POST /v1/files/... -->
//
// # Protocol
//
// Each request is a POST below /v1/files. Paths are bytes, in base64, since a file's name need not be UTF-8. A request names
// a root, which is a directory, and a path below it. A relative root begins at the home directory.
//
//	stat     {"root"}: what has that path, links followed; Named
//	list     {"root", "path", "after"}: the entries of a directory behind the name after, in the order of their bytes; Page
//	read     {"root", "path", "entry", "offset", "sum"}: a stream of the file from the offset on, if the bytes before it have
//	         that SHA-256, and else of all of it
//	prepare  {"root", "path", "entries"}: makes directories and links below a directory, and says of each file whether it is
//	         there already; a list of Prepared
//	begin    {"root", "path", "entry", "id"}: how much of a file is there from an earlier copy, and its SHA-256; State
//	write    a line of JSON, {"root", "path", "entry", "id", "offset", "restart", "end"}, and at most 256 KiB of the file from
//	         the offset on. {"next": N}, the offset of the next chunk. With "end", which has the size and the SHA-256 of the
//	         whole, the file gets its name, and the answer says "done"
//	release  {"root", "path", "entry", "id", "discard"}: no more is written; what is there stays, or is removed
//	finish   {"root", "path", "entry"}: sets mode and time of a directory, when all that is in it is written
//
// The stream of read is frames, of at most 256 KiB:
//
//	OFFSET LENGTH\n    in hexadecimal, of 16 and 8 digits, and so many bytes
//	end      LENGTH\n    padded to the same length, and so many bytes of JSON: {"size", "sum", "error"}, the last
//
// Each request can be sent twice, and names all that it needs: a connection that is lost, and dialled again, may lead to
// another process.
//
// # Trust
//
// A writer trusts nobody. All that is written is written below an [os.Root], beside the file in a temporary file, which gets
// the name of the file when its size and SHA-256 are right. A reader of another machine's listing refuses names that are no
// names, lists that do not end, and more data than was announced.
package transfer
