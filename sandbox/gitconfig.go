package sandbox

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// hooksPath and include.path, in whatever section they are: a path too many does
// no harm (git-config(1)).
var configPath = regexp.MustCompile(`(?i)^\s*(?:\[[^\]]*\]\s*)?(hookspath|path)\s*=\s*(.*)$`)

// hooksAndIncludes lists files and directories of which the configuration of a
// repository says that git runs, or reads as configuration, what is in them.
// Includes of includes are not looked for.
func (r repository) hooksAndIncludes() []string {
	var paths []string
	for _, name := range []string{"config", "config.worktree"} {
		file := filepath.Join(r.common, name)
		if name != "config" {
			file = filepath.Join(r.dir, name)
		}
		for _, line := range configLines(file) {
			m := configPath.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			value, _, _ := strings.Cut(m[2], " #")
			value, _, _ = strings.Cut(value, " ;")
			value = strings.ReplaceAll(strings.Trim(strings.TrimSpace(value), `"`), `\\`, `\`)
			switch base := filepath.Dir(file); {
			case value == "" || strings.HasPrefix(value, "~") || strings.HasPrefix(value, "%") || hasNUL(value):
				continue // Not in the workspace.
			case filepath.IsAbs(value):
				paths = append(paths, filepath.Clean(value))
			case strings.EqualFold(m[1], "hookspath"): // From where hooks are run.
				paths = append(paths, filepath.Join(r.top, value))
			default:
				paths = append(paths, filepath.Join(base, value))
			}
		}
	}
	return paths
}

func configLines(path string) []string {
	const most = 1 << 20
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close() // Read only.
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	var lines []string
	for s := bufio.NewScanner(io.LimitReader(f, most)); s.Scan(); {
		lines = append(lines, s.Text())
	}
	return lines
}
