package page

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Act is what a person does by the page, for [Options.Record]. It is a value.
type Act struct {
	Time    time.Time
	Kind    ActKind
	Session string
	By      string // the ID of the share link by which it is done; empty for the owner's
	About   string // the ID of the question, the terminal, the job, or the share link

	// Script is the question, in some words, and Answer what is answered. It is never a password. Of a share link Answer is for what it is.
	Script, Answer string

	// Typed is how many bytes were typed before the terminal was handed back. They are not recorded.
	Typed int64

	// Err is why it was not done, of what was recorded before.
	Err error
}

// ActKind says what a person does.
type ActKind string

// The kinds of acts: to answer a question, to take a terminal over and hand it back, to stop a job, to make and revoke a share link.
const (
	AnswerAct ActKind = "answer"
	TakeAct   ActKind = "take"
	BackAct   ActKind = "back"
	StopAct   ActKind = "stop"
	ShareAct  ActKind = "share"
	RevokeAct ActKind = "revoke"
)

// errUnrecorded refuses what cannot be recorded.
var errUnrecorded = errors.New("what cannot be written down is not done")

// acts records what is about to be done. The error refuses it; else call done with what came of it.
func (h *Handler) acts(a Act) (done func(error), err error) {
	if h.opts.Record == nil {
		return func(error) {}, nil
	}
	a.Time = time.Now()
	if err := h.opts.Record(context.WithoutCancel(h.life), a); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnrecorded, err)
	}
	return func(err error) {
		if err != nil {
			a.Time, a.Err = time.Now(), err
			_ = h.opts.Record(context.WithoutCancel(h.life), a) // It was not done: nothing can be refused.
		}
	}, nil
}

// by is the ID of the share link, for an Act.
func (as rights) by() string {
	if as.share == nil {
		return ""
	}
	return as.share.id
}
