package keeper

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// A command that was written down and has ended must not be the one that a keeper ran when it is killed, not even for a moment.
func TestAnEndedCommandIsNotWrittenDownAsTheOneThatRuns(t *testing.T) {
	k := &keeper{dir: testenv.TempDir(t)}
	var err error
	k.noting, err = openNoting(k.dir)
	require.NoError(t, err)
	defer k.noted()
	k.note(now{Dir: "/", Running: "make"})
	testenv.Await(t, "what runs to be written down", func() bool { return readNow(k.dir).Running == "make" })
	k.note(now{Dir: "/usr", Running: "next"}) // It has waited for its turn.
	assert.Equal(t, now{Dir: "/usr", Running: "next"}, readNow(k.dir))
	k.note(now{})
	assert.Equal(t, now{Dir: "/usr"}, readNow(k.dir))
}
