// Package errtext words errors that say what could not be done, with what, why, and what
// to do about it.
package errtext

import "fmt"

// Of words an error: who says so, a package; what it was about to do; with what, if that is
// not empty; what is wrong; and the remedy, if that is not empty.
func Of(who, doing, with string, wrong error, remedy string) string {
	text := who + ": " + doing
	if with != "" {
		text += fmt.Sprintf(" %q", with)
	}
	text += ": " + wrong.Error()
	if remedy != "" {
		text += "; " + remedy
	}
	return text
}
