package supervisor

import (
	"os"
	"strings"
	"sync"
)

// boot tells one start of the machine from another (random(4)).
var boot = sync.OnceValue(func() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // "" compares equal to itself.
	return strings.TrimSpace(string(b))
})

// namespace is the pid namespace of this program (pid_namespaces(7)).
var namespace = sync.OnceValue(func() string {
	name, _ := os.Readlink("/proc/self/ns/pid") // As above.
	return name
})
