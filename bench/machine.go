package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// machine says where the numbers come from. It names no host and no path: the
// results are for everybody to read.
type machine struct {
	CPU                   string
	Cores                 int
	OS, Arch, Kernel      string
	Go, Bash              string
	FileSystem            string // of the runtime directory
	LoadBefore, LoadAfter string // averages over 1, 5 and 15 minutes
}

func thisMachine(bash, dir string) machine {
	return machine{
		CPU: cpuModel(), Cores: runtime.NumCPU(),
		OS: runtime.GOOS, Arch: runtime.GOARCH, Kernel: said("uname", "-sr"),
		Go: runtime.Version(), Bash: said(bash, "--norc", "-c", "echo $BASH_VERSION"),
		FileSystem: fileSystem(dir), LoadBefore: loadAverage(),
	}
}

// String is a Markdown list.
func (m machine) String() string {
	return fmt.Sprintf("- %s, %d cores; %s, %s; %s, bash %s\n- runtime directory on %s; load average %s before, %s after\n",
		m.CPU, m.Cores, m.Kernel, m.Arch, m.Go, m.Bash, m.FileSystem, m.LoadBefore, m.LoadAfter)
}

// said is what a program says, or "unknown": the machine is for information.
func said(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return said("sysctl", "-n", "machdep.cpu.brand_string") // As darwin has it.
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown CPU"
}

// fileSystem is the type of the file system that dir is on: that of the longest
// mount point above it (proc(5), mountinfo).
func fileSystem(dir string) string {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "unknown"
	}
	kind, longest := "unknown", -1
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(line, " - ")
		fields, types := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(types) == 0 {
			continue
		}
		rel, err := filepath.Rel(fields[4], dir)
		if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
			continue
		}
		if len(fields[4]) >= longest { // A later mount hides an earlier one.
			kind, longest = types[0], len(fields[4])
		}
	}
	return kind
}

// loadAverage says how busy the machine was with other things.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return said("sysctl", "-n", "vm.loadavg")
	}
	return strings.Join(strings.Fields(string(text))[:3], " ")
}
