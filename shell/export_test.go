package shell

import "time"

// SetRestorePatience sets how long a bash may take to read a state, before any shell is
// started.
func SetRestorePatience(d time.Duration) { restorePatience = d }
