// Package session keeps named environments. A session owns one shell, the background jobs
// and the terminals that were started in it, and is under one policy with all of them:
//
//	r, err := session.New(nil)
//	...
//	defer r.Close()
//	s, err := r.Open(ctx, "build", nil)
//	res, err := s.Run(ctx, "cd src && make")
//	job, err := s.StartJob(ctx, jobs.Spec{Command: "make serve"}) // in src
//
// A session costs next to nothing until it is used: then its shell is started. Sessions
// never see each other's state. One can be forked, and brought back to a checkpoint; one
// that nobody uses is closed after [Options.IdleTimeout].
//
// The main path is in registry.go (Open), session.go (Do), background.go (what runs
// besides: jobs, terminals, commands that were moved to the background), state.go (Fork,
// Checkpoint, Rollback), look.go (Look, DoAt), close.go (Close) and idle.go (who is closed for being idle).
package session
