package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Numbers returns the numbers of the descriptors that the process has open.
func Numbers(pid int) (numbers []int, err error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	for _, entry := range entries {
		if n, err := strconv.Atoi(entry.Name()); err == nil { // There are no others.
			numbers = append(numbers, n)
		}
	}
	return numbers, err
}

// Libraries returns the files of code that the process has loaded, its program among them.
func Libraries(pid int) (files []string, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	for line := range strings.Lines(string(b)) {
		if fields := strings.Fields(line); len(fields) > 5 && strings.Contains(fields[1], "x") && strings.HasPrefix(fields[5], "/") {
			files = append(files, strings.Join(fields[5:], " "))
		}
	}
	return files, err
}
