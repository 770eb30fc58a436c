package keeper

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/internal/wire"
)

func opened(t *testing.T, dir string) *journal {
	t.Helper()
	j, err := openJournal(dir)
	require.NoError(t, err)
	t.Cleanup(j.close)
	return j
}

func TestAJournalRemembers(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, dir)
	assert.NoFileExists(t, j.path, "nobody needs one yet")
	secret := []byte("secret script")
	for _, id := range []string{"ended", "running", "void", "again", "unknown"} {
		require.NoError(t, j.Ask(id, secret))
	}
	j.End("ended", 255, true)
	j.End("void", -1, false)
	j.End("again", -1, false)
	require.NoError(t, j.Ask("again", []byte("another script")))
	j.End("again", 0, true)
	j.End("unknown", -1, true)
	j.End("never asked", 1, true)
	check := func(j *journal) {
		t.Helper()
		assert.Equal(t, &wire.EndedError{Code: 255}, j.Ask("ended", secret))
		assert.Equal(t, &wire.EndedError{Code: 0}, j.Ask("again", []byte("another script")))
		assert.Equal(t, wire.ErrMayHaveRun, j.Ask("running", secret))
		assert.Equal(t, wire.ErrMayHaveRun, j.Ask("unknown", secret))
		assert.Equal(t, wire.ErrOtherCommand, j.Ask("running", []byte("another script")))
	}
	check(j)
	check(opened(t, dir))
	next := t.TempDir()
	require.NoError(t, inherit(next, []string{t.TempDir(), dir}))
	check(opened(t, next))
	last := t.TempDir()
	require.NoError(t, inherit(last, []string{dir, next}))
	j = opened(t, last)
	check(j)
	require.NoError(t, j.Ask("void", secret))
	b, err := os.ReadFile(j.path)
	require.NoError(t, err)
	assert.NotContains(t, string(b), "script")
	st, err := os.Stat(j.path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(statedir.FileMode), st.Mode().Perm())
}

// Wherever a journal is cut, it says less, and nothing else.
func TestAJournalThatWasNotWrittenToItsEnd(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, dir)
	for i := range 5 {
		require.NoError(t, j.Ask(fmt.Sprint("id", i), []byte("x")))
		j.End(fmt.Sprint("id", i), 100+i, true)
	}
	whole, err := os.ReadFile(j.path)
	require.NoError(t, err)
	for n := range whole {
		for _, behind := range []string{"", "\nasked more 00 .\n"} {
			cut := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(cut, journalFile), append(whole[:n:n], behind...), 0o600))
			said, err := readJournal(cut)
			require.NoError(t, err)
			asked := strings.Count(string(whole[:n]), "asked")
			for i := range 5 {
				one := said.asked[fmt.Sprint("id", i)]
				if one == nil {
					assert.LessOrEqual(t, asked, i+1, "cut at %d", n)
					continue
				}
				assert.Equal(t, j.asked[fmt.Sprint("id", i)].hash, one.hash)
				assert.Contains(t, []int{-1, 100 + i}, one.code)
			}
			assert.Equal(t, behind != "", said.asked["more"] != nil)
		}
	}
	for range 1000 { // Whoever owns the directory may have put anything there.
		b := append([]byte(nil), whole...)
		for range 1 + rand.IntN(20) {
			b[rand.IntN(len(b))] = byte(rand.IntN(256))
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, journalFile), b, 0o600))
		_, err := readJournal(dir)
		require.NoError(t, err)
	}
}

func TestAJournalIsBounded(t *testing.T) {
	dir := t.TempDir()
	j := opened(t, dir)
	require.NoError(t, j.Ask("running", []byte("x")))
	for i := range 3 * mostAsked {
		id := fmt.Sprint(i)
		require.NoError(t, j.Ask(id, []byte("x")))
		j.End(id, 0, true)
	}
	assert.Len(t, j.order, mostAsked)
	assert.Equal(t, wire.ErrMayHaveRun, j.Ask("running", []byte("x")), "one that runs is not forgotten")
	st, err := os.Stat(j.path)
	require.NoError(t, err)
	assert.Less(t, st.Size(), int64(mostJournal/2))
	assert.Len(t, opened(t, dir).order, len(opened(t, dir).asked))
}

func TestAJournalWithoutRoomLetsNothingRun(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("there is no /dev/full")
	}
	j := opened(t, t.TempDir())
	require.NoError(t, j.Ask("first", []byte("x")))
	good := j.f
	j.f = full
	require.ErrorIs(t, j.Ask("one", []byte("x")), syscall.ENOSPC)
	j.End("first", 1, true)
	j.close()
	j.f = good
	require.NoError(t, j.Ask("one", []byte("x")), "there is room again")
	said, err := readJournal(filepath.Dir(j.path))
	require.NoError(t, err)
	assert.Equal(t, []string{"first", "one"}, said.order)
	assert.Equal(t, -1, said.asked["first"].code, "that could not be written")
}
