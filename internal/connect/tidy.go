package connect

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A copied program is removed when no connection has used it for unusedFor and no process runs it; an incomplete copy after partFor.
const (
	unusedFor = 30 * 24 * time.Hour
	partFor   = 24 * time.Hour
)

var hash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// tidy notes that this program is used, if it was brought, and removes others of a directory that are not.
func tidy(now time.Time) {
	self, err := os.Executable()
	if err != nil || filepath.Base(self) != Argv0 || !hash.MatchString(filepath.Base(filepath.Dir(self))) {
		return // It was not.
	}
	own := filepath.Dir(self)
	_ = os.Chtimes(own, now, now) // Best effort, as all here: the next one does it again.
	all, err := os.ReadDir(filepath.Dir(own))
	if err != nil {
		return
	}
	for _, one := range all {
		info, err := one.Info()
		path := filepath.Join(filepath.Dir(own), one.Name())
		switch {
		case err != nil || path == own:
		case strings.HasPrefix(one.Name(), "part-") && now.Sub(info.ModTime()) > partFor:
			_ = os.Remove(path) // As above.
		case one.IsDir() && hash.MatchString(one.Name()) && now.Sub(info.ModTime()) > unusedFor && !runs(filepath.Join(path, Argv0)):
			_ = os.RemoveAll(path) // As above.
		}
	}
}

// runs reports whether a process of this user, as far as they are to be seen, is a program.
func runs(program string) bool {
	links, err := filepath.Glob("/proc/[0-9]*/exe")
	if err != nil || len(links) == 0 {
		return true // There is no telling.
	}
	for _, link := range links {
		if exe, err := os.Readlink(link); err == nil && exe == program {
			return true
		}
	}
	return false
}
