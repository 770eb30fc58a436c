package errtext_test

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/errtext"
)

func TestWhatIsNotKnownIsLeftOut(t *testing.T) {
	wrong := errors.New("there is none")
	assert.Equal(t, `jobs: poll "a b": there is none; start one`, errtext.Of("jobs", "poll", "a b", wrong, "start one"))
	assert.Equal(t, "jobs: list: there is none", errtext.Of("jobs", "list", "", wrong, ""))
}

func TestTheRemediesOfLimitsAreKnownAndSaidOnce(t *testing.T) {
	full := fmt.Errorf("writing: %w", syscall.ENOSPC)
	assert.Equal(t, "jobs: start: writing: no space left on device; make room there", errtext.Of("jobs", "start", "", full, ""))
	assert.Equal(t, "jobs: start: writing: no space left on device; stop one", errtext.Of("jobs", "start", "", full, "stop one"))
	for err, want := range map[error]string{
		full: "make room there", syscall.EDQUOT: "make room there", fmt.Errorf("%w; make room on /x", full): "",
		fmt.Errorf("pipe2: %w", syscall.EMFILE): "raise the limit of open files: see ulimit -nH", fmt.Errorf("%w; see ulimit -n", syscall.EMFILE): "",
		syscall.EACCES: "", nil: "",
	} {
		assert.Equal(t, want, errtext.Remedy(err), "%v", err)
	}
}
