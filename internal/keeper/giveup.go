package keeper

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/limpet-sh/limpet/internal/private"
)

var errGivenUp = errors.New("it was given up before it had started")

// endStart ends the start of the keeper of a directory, and reports whether this call has. A keeper calls it before it answers anybody, and
// giveUp before it kills one that was started in vain. Of the two only the first may go on, also if the other process is killed.
func endStart(dir string) (first bool, err error) {
	f, err := private.OpenFile(filepath.Join(dir, startFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err == nil {
		err = f.Close()
	}
	return err == nil, err
}

// giveUp ends a keeper whose caller does not get its session, and leaves nothing of it. A keeper that has begun to answer stays, as if the
// caller had gone away a moment later: another client may have found it by its name, and run commands there.
func (r *Registry) giveUp(k *Kept) {
	if first, err := endStart(k.dir()); err != nil || !first { // After an error the keeper cannot end its start either, and fails.
		k.Disconnect()
		return
	}
	r.discard(k)
}

// discard ends a keeper that nobody else can have reached, and leaves nothing of it.
func (r *Registry) discard(k *Kept) {
	k.Disconnect()
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	if err := r.kill(ctx, k.Record); err == nil {
		_ = os.RemoveAll(k.dir()) // Best effort: sweep forgets it in a week.
	}
}

// forgetBefore removes the directories of the sessions that had the name before this one. Their journals are in that of this one's keeper, so it
// must not be called before the keeper answers, or has ended and is remembered: one that does not answer yet may be removed.
func (k *Kept) forgetBefore() {
	for _, dir := range k.before {
		_ = os.RemoveAll(dir) // Best effort: how it ended is told once more.
	}
}
