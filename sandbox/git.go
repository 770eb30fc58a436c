package sandbox

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// guard is a file or directory that others must not have their way with, and
// what may be done to its parts: parents come before what is in them. It
// holds wherever the root can be written.
type guard struct {
	root  string
	parts []part
	links bool // symlinks in it are looked for: git writes through them

	scanned bool   // found by its name: what FS.ExtraRW shows may hold it
	why     string // empty: as for most
}

// part is below the root of a guard; an empty rel is the root itself. It is
// read-only, or it can be written but not be renamed.
type part struct {
	rel      string
	writable bool
}

func whole(path string) guard { return guard{root: path, parts: []part{{}}} }

// gitParts are what makes git run programs, or take another directory for its
// own, as of Git 2.50 (gitrepository-layout(5), git-config(1)).
var gitParts = []string{
	"branches",  // old names for URLs, as is remotes
	"commondir", // where hooks, config and the rest are
	"config",    // hooksPath, fsmonitor, pager, filters, aliases, include.path
	"config.worktree",
	"gitdir",
	"hooks",
	"modules", // the git directories of submodules, each with a config and hooks
	"objects/info/alternates",
	"remotes",
	"worktrees", // the git directories of worktrees, each with a commondir
}

// gitGuards are for the directories that git takes for its own when it is run
// in the workspace, and for what it trusts besides. They may be outside of the
// workspace: then the guard holds where the sandbox has them by another field.
func gitGuards(p Policy) ([]guard, error) {
	if p.FS.Git == GitWritable {
		return nil, nil
	}
	w := p.FS.Workspace
	f := finder{workspace: w}
	if isGitDir(w) { // It is a bare repository. All of it cannot be read-only.
		f.guards = append(f.guards, partsOf(w, gitParts))
	}
	repo, err := f.repository(w)
	if err != nil {
		return nil, err
	}
	f.own(repo, p.FS.Git)
	if err := f.configured(repo); err != nil {
		return nil, err
	}
	if repo.dir == "" {
		return f.guards, nil
	}
	return f.guards, f.submodules(repo, 0)
}

// finder collects the guards for one workspace.
type finder struct {
	workspace string
	guards    []guard
	links     int // submodules
}

// repository is what git finds in a directory.
type repository struct {
	top         string // the directory
	dir, common string // git's directories; empty if there are none
}

func (r repository) dot() string { return filepath.Join(r.top, ".git") }

// repository looks for a .git, and where it leads if it is a file.
func (f *finder) repository(top string) (repository, error) {
	r := repository{top: top}
	if info, err := os.Lstat(r.dot()); err == nil && info.IsDir() {
		r.dir, r.common = r.dot(), r.dot()
		return r, nil
	}
	dir, err := leadsTo(r.dot(), "gitdir: ", f.workspace)
	if err != nil || dir == "" || pathWithin(dir, f.workspace) {
		return r, err // If it is the workspace, that is a bare repository.
	}
	common, err := leadsTo(filepath.Join(dir, "commondir"), "", f.workspace)
	if err != nil {
		return r, err
	}
	r.dir, r.common = dir, cmp.Or(common, dir)
	return r, nil
}

// own guards the repository of the workspace.
func (f *finder) own(r repository, mode GitMode) {
	add := func(guards ...guard) { f.guards = append(f.guards, guards...) }
	isFile := r.dir != r.dot()
	if mode == GitReadOnly && isFile {
		f.readOnly(r)
	}
	if mode == GitReadOnly {
		return // The .git itself is one of FS.Protect.
	}
	if isFile { // Or missing. It never changes.
		add(whole(r.dot()))
	}
	switch {
	case r.dir == "":
	case r.dir == r.common:
		add(committed(r.dir, ""))
	case pathWithin(r.common, r.dir): // Of the worktrees, this one can be written.
		own := partsOf(r.dir, gitParts)
		own.links = true
		add(committed(r.common, strings.TrimPrefix(r.dir, r.common+"/")), own)
	default:
		add(committed(r.common, ""), committed(r.dir, ""))
	}
}

// configured guards what git's configuration names when git is run in the repository.
func (f *finder) configured(r repository) error {
	paths, err := r.hooksAndIncludes()
	for _, path := range paths {
		if !pathWithin(f.workspace, path) {
			path = realPath(path) // The workspace may have another name there.
		}
		if !pathWithin(path, f.workspace) { // What holds the workspace cannot be read-only.
			f.guards = append(f.guards, whole(path))
		}
	}
	return err
}

// readOnly guards all of git's directories.
func (f *finder) readOnly(r repository) {
	if r.common != "" && r.common != r.dir {
		f.guards = append(f.guards, whole(r.common))
	}
	if r.dir != "" {
		f.guards = append(f.guards, whole(r.dir))
	}
}

// The bounds of a search for submodules.
const (
	submodulesMax  = 500
	submodulesDeep = 10
)

// submodules guards the repositories that the index names: git runs itself in
// each of them for "git status", with what their configuration says. One that is
// not there could be made.
func (f *finder) submodules(r repository, depth int) error {
	links, _, err := r.gitlinks()
	if err != nil {
		return &Error{Code: ErrProtect, Detail: fmt.Sprintf("cannot find the submodules of %s: %v", r.top, err), Hint: "set FS.Git=GitWritable to accept"}
	}
	if f.links += len(links); f.links > submodulesMax || depth > submodulesDeep {
		return &Error{Code: ErrProtect, Detail: fmt.Sprintf("cannot protect the submodules of %s: there are more than %d", r.top, submodulesMax),
			Hint: "set FS.Git=GitWritable to accept"}
	}
	for _, link := range links {
		if !filepath.IsLocal(link) || link == "." {
			continue // Git refuses it too.
		}
		top := filepath.Join(r.top, link)
		f.guards = append(f.guards, whole(filepath.Join(top, ".git")))
		sub, err := f.repository(top)
		if err != nil {
			return err
		}
		if sub.dir == "" {
			continue
		}
		f.readOnly(sub)
		if err := f.configured(sub); err != nil {
			return err
		}
		if err := f.submodules(sub, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// committed guards a directory of git's into which can be committed. Besides,
// which may be empty, is a directory in one of its parts that can be written.
func committed(dir, besides string) guard {
	g := partsOf(dir, gitParts)
	g.links, g.parts = true, append([]part{{writable: true}}, g.parts...)
	if besides != "" {
		g.parts = append(g.parts, part{besides, true})
	}
	return g
}

func partsOf(root string, rels []string) guard {
	g := guard{root: root}
	for _, rel := range rels {
		g.parts = append(g.parts, part{rel: rel})
	}
	return g
}

// isGitDir says whether git would take the directory for a repository without a
// worktree, if there is no .git in it (gitrepository-layout(5)).
func isGitDir(dir string) bool {
	there := func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	}
	return there("HEAD") && (there("objects") && there("refs") || there("commondir"))
}

// leadsTo is the directory that a file of git's names, without symlinks, or ""
// if it names none. Who may write the workspace must not be able to change
// what it is.
func leadsTo(file, prefix, workspace string) (string, error) {
	text, ok := strings.CutPrefix(readLine(file), prefix)
	if !ok || text == "" {
		return "", nil
	}
	if !filepath.IsAbs(text) {
		text = filepath.Dir(file) + "/" + text // Not cleaned: ".." may be behind a symlink.
	}
	links, err := linksOn(text)
	if err != nil {
		return "", &Error{Code: ErrProtect, Detail: fmt.Sprintf("cannot protect what %s names: %v", file, err)}
	}
	if i := slices.IndexFunc(links, func(link string) bool { return pathWithin(workspace, link) }); i >= 0 {
		return "", &Error{Code: ErrProtect, Detail: fmt.Sprintf("cannot protect what %s names: %s is a symlink", file, links[i]),
			Hint: "name in it where the symlink leads, or set FS.Git=GitWritable to accept"}
	}
	return realPath(text), nil
}

// readLine reads a file of one line that somebody else may have made.
func readLine(path string) string {
	const most = 4096 // PATH_MAX
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close() // Read only.
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	b, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil || strings.ContainsRune(string(b), 0) {
		return ""
	}
	return strings.TrimRight(string(b), "\r\n")
}
