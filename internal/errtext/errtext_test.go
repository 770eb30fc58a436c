package errtext_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/errtext"
)

func TestWhatIsNotKnownIsLeftOut(t *testing.T) {
	wrong := errors.New("there is none")
	assert.Equal(t, `jobs: poll "a b": there is none; start one`, errtext.Of("jobs", "poll", "a b", wrong, "start one"))
	assert.Equal(t, "jobs: list: there is none", errtext.Of("jobs", "list", "", wrong, ""))
}
