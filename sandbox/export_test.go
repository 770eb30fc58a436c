package sandbox

// SetBackendDirs has bwrap looked for elsewhere.
func SetBackendDirs(dirs []string) { backendDirs = dirs }
