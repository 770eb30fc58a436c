package files

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatCannotBeGivenAwayIsAnErrorWithItsRemedy(t *testing.T) {
	err := &DiskError{Dir: "/d", Err: &ownerError{Owner{UID: 12345, GID: 12346}, syscall.EPERM}}
	assert.EqualError(t, err, `ipc: runtime directory "/d": giving it to user 12345, group 12346: operation not permitted; `+
		"it takes root with CAP_CHOWN to run a shell as another user")
	assert.ErrorIs(t, err, syscall.EPERM)
}

func TestAFullDiskNamesItsRemedy(t *testing.T) {
	assert.ErrorContains(t, &DiskError{Dir: "d", Err: syscall.ENOSPC}, "make room there")
	assert.ErrorContains(t, &DiskError{Dir: "d", Err: syscall.EDQUOT}, "make room there")
}
