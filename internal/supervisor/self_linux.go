package supervisor

// self is this program's executable, also when its file was replaced or removed
// since. The child looks the name up (proc_pid_exe(5)), and is this program until
// then.
func self() string { return "/proc/self/exe" }
