package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Name returns the name of the program that the process runs, without its directory and cut at 15 bytes; a process can give itself
// another. It is empty when the process is gone.
func Name(pid int) string {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm") // Gone: empty is right.
	return strings.TrimSuffix(string(b), "\n")
}

// EUID returns the effective user of the process.
func EUID(pid int) (int, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	_, after, _ := bytes.Cut(b, []byte("\nUid:"))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	const effective = 1 // Behind the real one (proc(5), /proc/PID/status).
	fields := strings.Fields(string(line))
	if len(fields) <= effective {
		return 0, fmt.Errorf("proc: no user of process %d", pid)
	}
	return strconv.Atoi(fields[effective])
}
