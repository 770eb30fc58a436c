package remote

import (
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

// A program that cannot be started for want of a namespace has the number of a full disk, and is none.
func TestAFullDiskIsTold(t *testing.T) {
	assert.Equal(t, []string{"ENOSPC"}, pack(&fs.PathError{Op: "write", Path: "log", Err: syscall.ENOSPC}).Is)
	assert.Empty(t, pack(&fs.PathError{Op: "fork/exec", Path: "/usr/bin/bwrap", Err: syscall.ENOSPC}).Is)
}
