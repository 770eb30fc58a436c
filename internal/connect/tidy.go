package connect

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

// A copied program is removed when no connection has used it for unusedFor and no process runs it; what was left of a copy or of a trial
// that broke off, after partFor.
const (
	unusedFor = 30 * 24 * time.Hour
	partFor   = 24 * time.Hour
)

// The names that far.sh of package host gives to what it makes: directories of programs, and files that it removes itself unless it is cut. Others
// are not limpet's: the directory of the program may be behind a link, and beside things of the user's.
var (
	hash = lazyregexp.New(`^[0-9a-f]{64}$`)
	part = lazyregexp.New(`^(part|try)-limpet-[A-Z2-7]{26}(\.out)?$`)
)

// tidy notes that this program is used, if it was brought, and removes others of a directory that are not. It removes nothing outside of that.
func tidy(now time.Time) {
	self, err := os.Executable()
	if err != nil || filepath.Base(self) != Argv0 || !hash().MatchString(filepath.Base(filepath.Dir(self))) {
		return // It was not.
	}
	own := filepath.Dir(self)
	_ = os.Chtimes(own, now, now) // Best effort, as all here: the next one does it again.
	dir, err := os.OpenRoot(filepath.Dir(own))
	if err != nil {
		return
	}
	defer dir.Close() // Nothing is written.
	all, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		return
	}
	for _, one := range all {
		info, err := one.Info()
		name := one.Name()
		switch {
		case err != nil || name == filepath.Base(own):
		case part().MatchString(name) && info.Mode().IsRegular() && now.Sub(info.ModTime()) > partFor:
			_ = dir.Remove(name) // As above.
		case one.IsDir() && hash().MatchString(name) && now.Sub(info.ModTime()) > unusedFor && !runs(filepath.Join(filepath.Dir(own), name, Argv0)):
			_ = dir.Remove(filepath.Join(name, Argv0)) // As above.
			_ = dir.Remove(name)                       // It stays if something else is in it.
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
