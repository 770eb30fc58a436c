package keeper

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/internal/uptime"
)

// laid makes the directory of a keeper that does not live, which noted something for the last time at a time.
func laid(t *testing.T, r *Registry, record Record, now time.Time) {
	t.Helper()
	dir := filepath.Join(r.dir, record.ID)
	require.NoError(t, os.MkdirAll(dir, statedir.DirMode))
	require.NoError(t, record.write(dir))
	for _, name := range []string{lockFile, nowFile, journalFile} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, statedir.FileMode))
	}
	require.NoError(t, os.Chtimes(filepath.Join(dir, nowFile), now, now))
}

func swept(t *testing.T, r *Registry) map[string]Record {
	t.Helper()
	list, err := r.sweep()
	require.NoError(t, err)
	found := make(map[string]Record)
	for _, e := range list {
		found[e.record.ID] = e.record
		assert.FileExists(t, filepath.Join(e.dir, journalFile))
	}
	dirs, err := os.ReadDir(r.dir)
	require.NoError(t, err)
	assert.Len(t, dirs, len(found), "what is forgotten has no directory")
	return found
}

// When a session is forgotten is counted from when its end was noticed, whatever its keeper noted last, and whatever the clock was set to since.
func TestWhenASessionIsForgotten(t *testing.T) {
	const day = 24 * time.Hour
	clock, up := time.Now(), uptime.Now()
	quiet := clock.Add(-8 * day) // since when its keeper had nothing to note
	for what, row := range map[string]struct {
		state   State
		noticed time.Time
		up      time.Duration
		stays   bool
		anew    bool // it is noticed now
	}{
		"it was killed just now":                          {Running, time.Time{}, 0, true, true},
		"it was killed while it started":                  {Starting, time.Time{}, 0, true, true},
		"an older limpet has noted its end":               {Ended, time.Time{}, 0, true, true},
		"a sweep has noticed it yesterday":                {Ended, clock.Add(-day), 0, true, false},
		"a sweep has noticed it eight days ago":           {Ended, clock.Add(-8 * day), 0, false, false},
		"the clock was set a year back since":             {Ended, clock.Add(365 * day), 0, true, true},
		"it was noticed just now, and the clock set on":   {Ended, clock.Add(-8 * day), up, up > 0, false},
		"it was noticed just now, and the clock set back": {Ended, clock.Add(8 * day), up, true, up == 0},
	} {
		r := &Registry{dir: filepath.Join(t.TempDir(), "boot")}
		record := Record{ID: "one", Name: "s", State: row.state, Created: quiet, Noticed: row.noticed, NoticedUp: row.up}
		if row.state == Ended {
			record.End = &End{At: quiet, Why: "was closed"}
		}
		laid(t, r, record, quiet)
		found := swept(t, r)
		require.Equal(t, row.stays, len(found) == 1, what)
		if !row.stays {
			continue
		}
		written, err := readRecord(filepath.Join(r.dir, "one"))
		require.NoError(t, err)
		assert.Equal(t, row.anew, !written.Noticed.Equal(row.noticed), what)
		assert.WithinDuration(t, clock, written.noticed(), day+time.Hour, what)
		assert.Equal(t, Ended, written.State, what)
		for range 2 { // Sweeps that follow do not put it off.
			assert.True(t, swept(t, r)["one"].Noticed.Equal(written.Noticed), what)
		}
	}
}

// A keeper that lived for long and was killed just now is not forgotten for younger ones that had ended before.
func TestTheLastThatEndedAreRemembered(t *testing.T) {
	r := &Registry{dir: filepath.Join(t.TempDir(), "boot")}
	clock := time.Now()
	for i := range mostRemembered + 5 {
		at := clock.Add(-time.Duration(100-i) * time.Minute)
		laid(t, r, Record{ID: fmt.Sprint("young", i), Name: fmt.Sprint("s", i), State: Ended, Created: at, End: &End{At: at}, Noticed: at}, at)
	}
	laid(t, r, Record{ID: "old", Name: "old", State: Running, Created: clock.Add(-24 * time.Hour)}, clock.Add(-23*time.Hour))
	for range 2 {
		found := swept(t, r)
		assert.Len(t, found, mostRemembered)
		assert.Contains(t, found, "old")
		assert.NotContains(t, found, "young5", "of the others the first that ended are forgotten")
		assert.Contains(t, found, "young6")
	}
}

func TestARecordOfAnEndThatHasNoneIsSwept(t *testing.T) {
	r := &Registry{dir: filepath.Join(t.TempDir(), "boot")}
	laid(t, r, Record{ID: "one", Name: "s", State: Ended, Created: time.Now()}, time.Now())
	assert.NotNil(t, swept(t, r)["one"].End)
}

// Several limpets sweep at once: all hold the names meanwhile, and the first counts.
func TestSweepsAtOnceNoticeAnEndOnce(t *testing.T) {
	r := &Registry{dir: filepath.Join(t.TempDir(), "boot")}
	quiet := time.Now().Add(-8 * 24 * time.Hour)
	laid(t, r, Record{ID: "one", Name: "s", State: Running, Created: quiet}, quiet)
	said := make(chan time.Time, 8)
	for range cap(said) {
		go func() {
			unlock, err := r.lock(t.Context())
			if !assert.NoError(t, err) {
				said <- time.Time{}
				return
			}
			defer unlock()
			list, err := r.sweep()
			assert.NoError(t, err)
			i := slices.IndexFunc(list, func(e entry) bool { return e.record.ID == "one" })
			if !assert.GreaterOrEqual(t, i, 0) {
				said <- time.Time{}
				return
			}
			said <- list[i].record.Noticed
		}()
	}
	first := <-said
	require.False(t, first.IsZero())
	for range cap(said) - 1 {
		assert.True(t, first.Equal(<-said))
	}
}
