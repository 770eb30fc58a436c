package keeper

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// A keeper that hangs at its end holds the name: it is said how to have that.
func TestAKeeperThatDoesNotEndIsToBeForced(t *testing.T) {
	r := &Registry{dir: t.TempDir(), endPatience: time.Millisecond}
	dir := filepath.Join(r.dir, "id")
	require.NoError(t, os.Mkdir(dir, 0o700))
	lock, err := os.Create(filepath.Join(dir, lockFile))
	require.NoError(t, err)
	defer lock.Close()
	require.NoError(t, flock(lock, syscall.LOCK_EX))
	err = r.awaitEnd(testenv.Context(t), "id")
	require.EqualError(t, err, "it is being closed, and its keeper does not end in 1ms")
	assert.Equal(t, "if it is stuck, limpet session close --force build ends it, with all that runs in it", endingRemedy("build", err))
	assert.Empty(t, endingRemedy("build", fs.ErrNotExist))
}

// A keeper that leaves after an upgrade removes its directory while it holds the lock. Who makes a session meanwhile has to read all.
func TestAKeeperThatLeavesHidesNoName(t *testing.T) {
	r, aside := &Registry{dir: t.TempDir()}, t.TempDir()
	over := make(chan struct{})
	go func() {
		defer close(over)
		for i := range testenv.Repeats(200, 1000, 10_000) {
			record := Record{ID: fmt.Sprint(i), Name: "s", Next: "other"}
			dir := filepath.Join(r.dir, record.ID)
			made := filepath.Join(aside, record.ID) // It is seen when it is whole: this is not about the start.
			assert.NoError(t, os.Mkdir(made, 0o700))
			lock, err := os.Create(filepath.Join(made, lockFile))
			if !assert.NoError(t, err) {
				return
			}
			assert.NoError(t, flock(lock, syscall.LOCK_EX))
			assert.NoError(t, record.write(made))
			assert.NoError(t, os.Rename(made, dir))
			removeLeaving(dir)
			assert.NoError(t, lock.Close())
		}
	}()
	defer func() { <-over }()
	for {
		list, err := r.readEntries()
		require.NoError(t, err)
		for _, e := range list {
			require.False(t, e.alive && e.err != nil, "%s: %v", e.dir, e.err)
		}
		select {
		case <-over:
			return
		default:
		}
	}
}

// Records are read one after the other, while an upgrade goes on: whatever is read of old (o), new (n) and
// the one behind that (x), no two have the name.
func TestWhoHasTheNameDuringAnUpgrade(t *testing.T) {
	gone := entry{dir: "/o", err: fs.ErrNotExist}
	entryOf := func(r Record) entry { return entry{dir: "/" + r.ID, record: r, alive: true} }
	for _, row := range []struct {
		what  string
		list  []entry
		has   string
		whole bool
	}{
		{"nothing is upgraded", []entry{entryOf(Record{ID: "o"})}, "o", true},
		{"it has begun", []entry{entryOf(Record{ID: "o"}), entryOf(Record{ID: "n", From: "o"})}, "o", true},
		{"it is done", []entry{entryOf(Record{ID: "o", Next: "n"}), entryOf(Record{ID: "n", From: "o"})}, "n", true},
		{"and settled", []entry{entryOf(Record{ID: "o", Next: "n"}), entryOf(Record{ID: "n", From: "o", Settled: true})}, "n", true},
		{"the old one was read before that", []entry{entryOf(Record{ID: "o"}), entryOf(Record{ID: "n", From: "o", Settled: true})}, "n", true},
		{"the old one was removed", []entry{entryOf(Record{ID: "n", From: "o", Settled: true})}, "n", true},
		{"the old one is another's, with another next", []entry{entryOf(Record{ID: "o", Next: "x"}), entryOf(Record{ID: "n", From: "o"}), entryOf(Record{ID: "x", From: "o"})}, "x", true},
		{"the new one was not there", []entry{entryOf(Record{ID: "o", Next: "n"})}, "", false},
		{"the old one was removed while it was read", []entry{gone, entryOf(Record{ID: "n", From: "o"})}, "", false},
		{"its tombstone was told and removed", []entry{entryOf(Record{ID: "n", From: "o"})}, "", false},
		{"once more", []entry{entryOf(Record{ID: "n", From: "o", Settled: true, Next: "x"}), entryOf(Record{ID: "x", From: "n"})}, "x", true},
		{"once more, of which it knows nothing", []entry{entryOf(Record{ID: "n", From: "o", Settled: true}), entryOf(Record{ID: "x", From: "n", Settled: true})}, "x", true},
	} {
		assert.Equal(t, row.whole, markOthers(row.list), row.what)
		has := ""
		for _, e := range row.list {
			if e.err == nil && !e.other {
				has += e.record.ID
			}
		}
		assert.Equal(t, row.has, has, row.what)
	}
}
