package sandbox

// SetBackendDirs has bwrap looked for elsewhere, and says where it was looked for.
func SetBackendDirs(dirs []string) (before []string) {
	before, backendDirs = backendDirs, dirs
	return before
}
