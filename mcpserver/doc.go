// Package mcpserver offers sessions to agents, by the Model Context Protocol: to run
// commands in them, to read more of what those printed, to look after background jobs and
// to type on terminals. Any host that speaks the protocol can use it, over stdio or HTTP.
//
//	sessions, err := session.New(nil)
//	...
//	server, err := mcpserver.New(sessions, nil)
//	...
//	err = server.ServeStdio(ctx, os.Stdin, os.Stdout)
//
// What a tool returns is text for a model: bounded, without escape sequences, and with
// words on what was left out and how to get it. Options.Structured adds fields for
// programs. Exit codes, timeouts and stops are results. What goes wrong is a result that
// says so, with the remedy; arguments that cannot be meant are one, too (specification
// 2026-07-28, "Error Handling" of tools).
//
// The way of a call, which is that of the files here: tool.go has the arguments checked by
// arguments.go, with the other names of aliases.go and the schemas of schema.go, and calls
// the tool; run.go is the one that runs commands, with run_check.go before it,
// progress.go while it takes, show.go for what it printed and run_text.go for how that reads; output.go
// reads more of it. jobs*.go and
// terminals*.go are the tools of those, resources.go lets clients follow them. stdio.go and
// http.go are the ways in. docs/mcp.md has what users want to know.
package mcpserver
