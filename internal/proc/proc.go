// Package proc reads what the kernel says about processes, and signals them
// only when they still are who they were: a process is known by its pid and
// its start time, since a pid alone can be somebody else's by now.
//
// It has its facts from /proc and pidfds, so it works on Linux. Elsewhere
// listing finds nothing and reading returns errors.ErrUnsupported.
package proc

import (
	"syscall"
	"time"
)

// Stat is what proc(5) says about one process in /proc/PID/stat.
type Stat struct {
	PID, PPID   int
	PGRP, SID   int
	State       byte           // R, S, D, T, Z, ...
	Execed      bool           // it is a program of its own; else its parent's, since its fork
	Exiting     bool           // it is about to end, and does nothing more
	Threads     int            // that live; the first one, whose PID it is, may have ended
	Ended       syscall.Signal // of a zombie: what ended it; 0 if it exited, or may not be known
	Start       uint64         // clock ticks after boot
	User        time.Duration
	System      time.Duration
	ChildUser   time.Duration // of children that were waited for
	ChildSystem time.Duration
	ChildFaults int // page faults of children that were waited for: more after each of them

	kernel bool // it is a thread of the kernel's
	image  image
}

// image tells one program of a process from the next: an execve puts it, its
// environment and its stack elsewhere (proc(5), /proc/PID/stat). It errs where the
// kernel puts all programs at one address (randomize_va_space), and the two have
// environments of one length.
type image struct {
	at     [4]uint64 // its code, its stack, its environment's beginning and end; 0 where we may not look
	execed bool
}

// CPU returns the user and system time of the process and the children that
// it waited for, in steps of a clock tick (10 ms).
func (s Stat) CPU() (user, system time.Duration) {
	return s.User + s.ChildUser, s.System + s.ChildSystem
}

// Zombie reports whether the process has ended and waits for its parent. One whose
// first thread has ended says Z too, as long as others live.
func (s Stat) Zombie() bool { return s.State == 'X' || s.State == 'Z' && s.Threads <= 1 }

// State returns the state of the process, 0 where it is gone.
func State(id ID) byte {
	st, err := Read(id.PID)
	if err != nil || st.ID() != id {
		return 0
	}
	return st.State
}

// ID is the identity of a process.
type ID struct {
	PID   int
	Start uint64
}

// ID returns the identity of the process.
func (s Stat) ID() ID { return ID{s.PID, s.Start} }

// Below reports whether a process descends from the one that id names, by looking at
// each of those between them. It errs on the side of no.
func Below(st Stat, id ID) bool {
	const deepest = 1 << 10
	for range deepest {
		parent, err := Read(st.PPID)
		if err != nil || parent.PID <= 1 {
			return false
		}
		if parent.ID() == id {
			return true
		}
		st = parent
	}
	return false
}

// Signals says how a process deals with signals.
type Signals struct{ ignored, caught, blocked, pending uint64 }

// Ignores reports whether the process ignores the signal.
func (s Signals) Ignores(sig syscall.Signal) bool { return s.ignored&bit(sig) != 0 }

// Handles reports whether the process has a handler for the signal.
func (s Signals) Handles(sig syscall.Signal) bool { return s.caught&bit(sig) != 0 }

// Awaits reports whether the signal was sent to the process, which has not got it
// yet but will as soon as it runs.
func (s Signals) Awaits(sig syscall.Signal) bool { return s.pending&^s.blocked&bit(sig) != 0 }

func bit(sig syscall.Signal) uint64 { return 1 << (uint(sig) - 1) }

// bare reports whether the program was started without an environment.
func (i image) bare() bool { return i.at[2] != 0 && i.at[2] == i.at[3] }

// commandMax bounds [Command]: it is for people to recognise a process.
const commandMax = 200
