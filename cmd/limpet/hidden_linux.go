package main

import "golang.org/x/sys/unix"

// hide keeps what limpet runs, as the same user, from limpet's own descriptors, memory and
// environment in /proc (prctl(2), PR_SET_DUMPABLE; proc(5)): a command could write to the
// protocol, and read the token. Root is not kept from anything.
func hide() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) } // It cannot fail.
