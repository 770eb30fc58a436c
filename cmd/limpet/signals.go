package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
)

// stopSignals are the signals that stop a command or limpet. SIGQUIT is one of
// them because Go would answer it with a page of goroutines and exit code 2.
var stopSignals = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}

// catch sends the signals to c, but for those that whoever started limpet had
// switched off: nohup means it, and a shell's "&" too.
func catch(c chan<- os.Signal, signals ...os.Signal) {
	for _, sig := range signals {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
}

// ignoreSuspend makes nothing of Ctrl-Z: who stopped limpet would not stop its
// command, which is on no terminal, and would get the terminal back without
// echo. It does not ignore the signal itself: commands would inherit that.
func ignoreSuspend() { catch(make(chan os.Signal, 1), syscall.SIGTSTP) }

// untilSignal returns a context that ends, with a *signalError as its cause,
// when limpet is told to stop. A SIGINT after that ends limpet at once, for
// users who will not wait until the command is stopped in good order; what it
// left running is ended all the same, by the guard of its shell, or, on another
// machine, by the process that shares the connection.
func untilSignal(parent context.Context) (_ context.Context, stop func()) {
	return untilOneOf(parent, stopSignals...)
}

// untilOneOf is untilSignal for some signals alone.
func untilOneOf(parent context.Context, stopping ...os.Signal) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	catch(signals, stopping...)
	go func() {
		defer close(done)
		select {
		case sig := <-signals:
			cancel(&signalError{sig.(syscall.Signal)})
			signal.Reset(syscall.SIGINT)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel(nil)
		<-done
	}
}

// untilUnread returns a context that ends, with a *signalError as its cause, when nobody reads any more what is printed, as behind
// "| head -1". Go would end limpet there, and what runs in a session that is kept would run on. Call stop.
func untilUnread(parent context.Context, c *console) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	broken := make(chan os.Signal, 1) // It is not read: writes to other pipes and sockets give it, too.
	catch(broken, syscall.SIGPIPE)
	c.unread = func() { cancel(&signalError{syscall.SIGPIPE}) }
	return ctx, func() {
		signal.Stop(broken)
		cancel(nil)
	}
}

// leaveOnHangup has a SIGHUP end limpet, and nothing else: a command in a session that is kept runs on
// when the terminal is gone. Call stop.
func leaveOnHangup() (stop func()) {
	hangup, done := make(chan os.Signal, 1), make(chan struct{})
	catch(hangup, syscall.SIGHUP)
	go func() {
		select {
		case <-hangup:
			os.Exit(codeSignal + int(syscall.SIGHUP))
		case <-done:
		}
	}()
	return func() {
		signal.Stop(hangup)
		close(done)
	}
}

// endedBySignal is what limpet ends with after a signal, which is no error to be told of; nil if there was none.
func endedBySignal(ctx context.Context) error {
	if sig := gotSignal(ctx); sig != nil {
		return exit(codeOf(sig))
	}
	return nil
}

// gotSignal returns the *signalError that ended ctx, or nil.
func gotSignal(ctx context.Context) error {
	if e, ok := errors.AsType[*signalError](context.Cause(ctx)); ok {
		return e
	}
	return nil
}

// withSignal returns an error together with the *signalError that ended ctx, unless the error has that already.
func withSignal(ctx context.Context, err error) error {
	if sig := gotSignal(ctx); !errors.Is(err, sig) {
		return errors.Join(sig, err)
	}
	return err
}
