// Package errtext words errors that say what could not be done, with what, why, and what
// to do about it.
package errtext

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
)

// Of words an error: who says so, a package; what it was about to do; with what, if that is
// not empty; what is wrong; and the remedy, if that is not empty. Those of a full disk, and of
// too many open files, are known.
func Of(who, doing, with string, wrong error, remedy string) string {
	text := who + ": " + doing
	if with != "" {
		text += fmt.Sprintf(" %q", with)
	}
	text += ": " + wrong.Error()
	if remedy == "" {
		remedy = Remedy(wrong)
	}
	if remedy != "" {
		text += "; " + remedy
	}
	return text
}

const (
	makeRoom   = "make room"
	raiseLimit = "ulimit -n"
)

// Remedy returns what to do about an error that is about a full disk, or about too many open files, and does not say so; else
// nothing.
func Remedy(err error) string {
	switch {
	case NoRoom(err) && !strings.Contains(err.Error(), makeRoom):
		return makeRoom + " there"
	case errors.Is(err, syscall.EMFILE) && !strings.Contains(err.Error(), raiseLimit):
		return "raise the limit of open files: see " + raiseLimit + "H"
	}
	return ""
}

// NoRoom reports whether a disk, or a quota, is full. A process that cannot be started has ENOSPC where there can be no more
// namespaces.
func NoRoom(err error) bool {
	if at, ok := errors.AsType[*fs.PathError](err); ok && at.Op == "fork/exec" {
		return false
	}
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
