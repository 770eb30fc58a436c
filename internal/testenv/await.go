// Package testenv is what tests of running shells share: waiting for events,
// and counting what a program has open, what it runs and what it left behind.
package testenv

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// Patience is how long an event may take. It bounds hangs and asserts no
// speed: the machines that run the tests are shared.
const Patience = 30 * time.Second

// Context returns a context that ends with the test, or after Patience.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// pause between two looks.
const pause = 2 * time.Millisecond

// pauseSince pauses after a check that began then. The pause is at least twice as long as the check, so that waiting takes a third of a processor at most.
func pauseSince(began time.Time) { time.Sleep(max(pause, 2*time.Since(began))) }

// Await waits until the condition holds, and fails the test when it does not
// come to hold. It must be called by the test's goroutine.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(Patience)
	for began := time.Now(); !holds(); began = time.Now() {
		if began.After(deadline) {
			t.Fatalf("waited %v in vain for %s", Patience, what)
		}
		pauseSince(began)
	}
}

// AwaitFile waits until a script has written a line to the file, and returns
// what is in it without the last newline.
func AwaitFile(t testing.TB, path string) string {
	t.Helper()
	var text string
	Await(t, path, func() bool {
		b, _ := os.ReadFile(path) // Not there yet is what we wait out.
		text = string(b)
		return strings.HasSuffix(text, "\n")
	})
	return strings.TrimSuffix(text, "\n")
}
