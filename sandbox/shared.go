package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// shared checks the directories that sandboxes share for /tmp and the home. What
// is in one is written by all of them, so it must hold nothing else.
func (r *resolver) shared() error {
	for _, s := range []struct {
		field string
		dir   *string
		on    bool
		mode  string
	}{
		{homeDir, &r.p.FS.HomeDir, r.p.FS.Home == SharedHome, "FS.Home=SharedHome"},
		{tmpDir, &r.p.FS.TmpDir, r.p.FS.Tmp == SharedTmp, "FS.Tmp=SharedTmp"},
	} {
		if !s.on && *s.dir != "" {
			return mountError("set "+s.mode, "%s: %s is not asked for", s.field, *s.dir)
		}
		if !s.on {
			continue
		}
		path, err := r.sharedDir(s.field, *s.dir)
		if err != nil {
			return err
		}
		*s.dir = path
	}
	home, tmp := r.p.FS.HomeDir, r.p.FS.TmpDir
	if home != "" && tmp != "" && (pathWithin(home, tmp) || pathWithin(tmp, home)) {
		return mountError("choose directories beside each other", "%s: %s is in %s, or holds it", tmpDir, tmp, home)
	}
	if home != "" && userHome() == "" {
		return mountError("set HOME", "%s: there is no home directory in whose place it could be", homeDir)
	}
	return nil
}

func (r *resolver) sharedDir(field, asked string) (string, error) {
	no := func(hint, format string, args ...any) (string, error) {
		return "", mountError(hint, field+": "+format, args...)
	}
	if asked == "" || hasNUL(asked) {
		return no("name a directory for it", "%q is not a path", asked)
	}
	path, err := filepath.Abs(asked)
	if err != nil {
		return no("", "%s: %v", asked, err)
	}
	r.named = append(r.named, named{field, path})
	info, err := os.Lstat(path)
	switch {
	case isMissing(err):
		return no("create it", "%s does not exist", path)
	case err != nil:
		return no("", "%v", err)
	case info.Mode()&fs.ModeSymlink != 0:
		return no("name where it leads", "%s is a symlink", path)
	case !info.IsDir():
		return no("choose a directory", "%s is not a directory", path)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return no("", "%v", err)
	}
	if why, err := tooWide(path); err != nil {
		return no("", "%s: %v", path, err)
	} else if why != "" {
		return no("choose a sub directory", "%s %s", path, why)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Uid != r.p.user().UID {
		return no("choose a directory of its own", "%s does not belong to user %d, who runs in the sandbox", path, r.p.user().UID)
	}
	if w := r.p.FS.Workspace; pathWithin(path, w) || pathWithin(w, path) {
		return no("choose a directory beside it", "%s is in the workspace, or holds it", path)
	}
	_, elsewhere := r.p.guarded()
	for _, guarded := range elsewhere {
		if pathWithin(path, guarded) || pathWithin(guarded, path) {
			return no("choose a directory beside it", "%s: %s would be writable by it", path, guarded)
		}
	}
	return path, nil
}

// apart refuses other binds that could put a shared directory away.
func (r *resolver) apart() error {
	for _, dir := range []named{{homeDir, r.p.FS.HomeDir}, {tmpDir, r.p.FS.TmpDir}} {
		for _, b := range r.p.FS.ExtraRW {
			if dir.path != "" && (pathWithin(b.Src, dir.path) || pathWithin(dir.path, b.Src)) {
				return mountError("choose a directory beside it", "%s: %s is in %s of FS.ExtraRW, or holds it", dir.field, dir.path, b.Src)
			}
		}
	}
	return nil
}
