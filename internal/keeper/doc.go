// Package keeper keeps sessions by name, each by a process of its own, which outlives the
// program that asked for it:
//
//	r, err := keeper.Open("")
//	...
//	kept, err := r.Session(ctx, "build", &keeper.Spec{Dir: dir, Env: env})
//	...
//	defer kept.Disconnect()
//	res, err := kept.Run(ctx, "cd src && make")
//
// There is no server. A program that asks for a name which is not in use starts a keeper, by executing
// itself again (Registry.Execute). A directory says which keepers there are:
//
//	DIR/BOOT/lock              held while a name is looked up, or taken
//	        /ID/record.json    who has which name, whole whenever it is read
//	           /lock           held as long as the keeper lives
//	           /s              its socket; internal/wire is what is spoken there
//	           /now            where the session is, and what it runs
//	           /journal        the commands that may be asked for again
//	           /said           what the keeper had to say; nothing, as a rule
//	           /started        there when the keeper answers, or was given up before it did
//	        /of/NAME/jobs /of/NAME/terminals   those of the sessions of a name
//	                /agent     a link to the socket of the last caller's SSH agent
//
// BOOT is the machine since it was started: what is there of another one has ended. Locks are held
// by flock(2), so that one which is free says that its keeper is dead, also one that was killed, and
// in whatever process namespace. What has ended leaves its record, for who asks for the name
// next; see [End].
//
// A fork is started by the keeper of the session that is forked, which has all that the new one needs: the
// state, and what it was itself started with. The state is passed on as a descriptor; see given.go.
//
// A session can be upgraded to another executable, by its own keeper: see upgrade.go.
//
// The main path is in open.go (who asks), start.go (how a keeper is started) and serve.go (what it does).
package keeper
