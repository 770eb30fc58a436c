// Package remote lets other programs of the same user reach the terminals of a
// [terminal.Registry], by HTTP over a unix socket beside its records. [Serve] listens, and
// [Dial] reaches the terminals of the program that is the Owner in their records:
//
//	server, err := remote.Serve(registry)
//	...
//	client, err := remote.Dial(ctx, dir, info.Owner)
//	t := client.Terminal(info.ID)
//	err = t.Send(keys.Text("ls"), enter)
//
// A [Terminal] has the methods of a [terminal.Terminal], with the same errors for errors.Is
// and the same texts. Who is not of the same user is refused.
//
// # Protocol
//
// The socket is OWNER.sock in the directory of the registry, as long as OWNER.lock is
// locked. What is there without a lock was left by a program that was killed. All is
// below /v1, and of /v1/terminals/ID where the path below begins with a dot:
//
//	GET  /v1                           {"version": 1, "owner": "...", "pid": 17}
//	GET  /v1/terminals                 the terminals of this program: a list of terminal.Info; all=1 for those that others
//	                                   had, too
//	GET  .                             terminal.Info
//	POST ./write                       types the body as it is; {"written": 3}
//	POST ./send                        types a list of keys.Input, or of what keys.Parse knows:
//	                                   ["ls -l", "Enter", {"text": "Enter"}, {"paste": "..."}]
//	POST ./resize                      {"cols": 80, "rows": 24}
//	POST ./signal                      {"signal": 2}, to the process group in the foreground
//	POST ./close                       ends the program, and answers when it has ended
//	POST ./forget                      removes what is written down, if the program has ended
//	GET  ./attach?offset=0             a stream: see below; offset=now for what comes
//	GET  ./output?from=0&most=65536    what is kept, raw; Limpet-Offset and Limpet-Missed are in the header
//	GET  ./text?from=0&most=65536      terminal.Text
//	GET  ./screen                      {"offset": 17, "screen": {...}}; format=text and format=ansi as such
//	GET  ./scrollback                  a list of lines
//	POST ./wait                        {"text", "pattern", "gone", "silence_ns", "prompt", "prompt_pattern",
//	                                   "from", "timeout_ns"}, all of which may be left out; terminal.Waited
//	GET  ./record?from_start=1&title=  asciicast lines as they come, until the program ends
//
// A failure has a status of 400 or more and is {"error": "...", "is": ["ended"], ...}. Where
// a stream fails later, the same is in its trailer Limpet-Error. That of record has
// Limpet-Recorded, a terminal.Recorded.
//
// The stream of attach is frames, each a line of three numbers and then so many bytes. It
// ends when the program has, behind the last byte:
//
//	OFFSET MISSED LENGTH\n
//	<LENGTH bytes of output, the first of them at OFFSET; MISSED bytes before it are not kept any more>
//
// A connection that is lost is no end of the program: ask again with the offset of the next byte.
// Nothing is buffered for who reads slowly: what leaves the ring of the terminal meanwhile,
// they miss. By hand:
//
//	curl --unix-socket "$dir/$owner.sock" "http://limpet/v1/terminals/$id/screen?format=text"
//	curl --unix-socket "$dir/$owner.sock" "http://limpet/v1/terminals/$id/send" -d '["ls", "Enter"]'
package remote
