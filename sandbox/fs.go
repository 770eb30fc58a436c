package sandbox

// FS says which files are there.
type FS struct {
	// Workspace is the directory that the session works in. It is required, and
	// is not "/", the home directory or one above it, or one of the system's.
	Workspace string
	Access    Access // to the workspace

	Root RootScope

	// Home is what is at $HOME, and Tmp what is at /tmp. HomeDir and TmpDir are
	// the directories of SharedHome and SharedTmp: they are there, belong to the
	// user that the sandbox runs as, and get the mode 0700.
	Home            HomeMode
	Tmp             TmpMode
	HomeDir, TmpDir string

	// TmpSize, HomeSize and ShmSize bound what is written to a private /tmp, to
	// the private home and to /dev/shm, in bytes. 0 is 256 MiB, 256 MiB, 64 MiB.
	TmpSize, HomeSize, ShmSize int64

	// ExtraRO and ExtraRW are shown besides. A source that is missing is an
	// error unless the Bind is Optional, and so is one behind a symlink that the
	// sandbox can make.
	ExtraRO, ExtraRW []Bind

	// Mask hides files of the host from when the sandbox starts, wherever they
	// would be seen: a directory is empty, a file is /dev/null. Paths that are
	// relative are meant in the workspace, where none may be a symlink. What is
	// missing then is not hidden if it comes later.
	Mask []string

	// ScanMasks are globs, as of [path.Match], for the names of files that are
	// masked too: those in the workspace, its directories and theirs, as they
	// are when the sandbox starts. Nil means [DefaultScanMasks]; a list that is
	// empty looks for nothing. It is a net with holes, for those who forgot
	// to say what is secret, and never the only defence: a file deeper down,
	// one with another name or one that comes later is seen.
	ScanMasks []string

	// Protect is read-only although it lies in the workspace, as far as it is
	// there. Nil means [DefaultProtect]. Git says the same about .git.
	Protect []string
	Git     GitMode

	// ScanProtect are names of files and directories that are read-only too: those in
	// the workspace, its directories and theirs, as they are when the sandbox starts, but
	// for what ExtraRW names and for directories of packages, such as node_modules. In the
	// workspace itself they are looked for as Missing says if they are not there; what is
	// made deeper down is read-only in the next sandbox. Nil means [DefaultScanProtect]; a
	// list that is empty looks for nothing.
	ScanProtect []string

	// Missing says what becomes of protected paths that are not there. With
	// Quarantine, one that is made while the sandbox runs is renamed, to a name
	// beside it that no program reads, even if it was made outside.
	Missing    MissingMode
	Quarantine bool
}

// Bind shows a file or directory of the host at a path of the sandbox. An
// empty Dst is Src.
type Bind struct {
	Src, Dst string
	Optional bool
}

// DefaultScanMasks are the names under which secrets mostly lie in a workspace.
// Names that end in .example, .sample, .template, .dist or .pub are no secrets,
// and are seen unless a glob ends so too.
var DefaultScanMasks = []string{".env", ".env.*", "*.pem", "id_rsa*"}

// Access is what may be done to the workspace.
type Access int

// The kinds of access, from the widest to the narrowest.
const (
	ReadWrite Access = iota
	Overlay          // writes go to a layer that is thrown away; needs bwrap 0.11
	ReadOnlyAccess
)

// RootScope is what is shown of the host's system.
type RootScope int

// The scopes, from the narrowest.
const (
	System RootScope = iota // /usr, /bin and its like, /etc, /opt, /nix/store, read-only
	All                     // everything, read-only, less Mask
)

// HomeMode is what is shown of the home directory.
type HomeMode int

// The modes.
const (
	PrivateHome  HomeMode = iota // an empty one that goes with the session
	ReadOnlyHome                 // the host's, less Mask
	SharedHome                   // FS.HomeDir, for all sandboxes of one agent
)

// TmpMode is what /tmp is.
type TmpMode int

// The modes.
const (
	PrivateTmp TmpMode = iota // an empty one that goes with the session
	SharedTmp                 // FS.TmpDir, for all sandboxes of one agent
)

// GitMode is what may be done to the workspace's .git, and to the directories
// that it names if it is a file.
type GitMode int

// The modes, from the narrowest.
const (
	GitReadOnly GitMode = iota
	GitCommit           // written, but for what makes git run programs or look elsewhere: see docs/sandbox.md
	GitWritable         // as any directory: hooks that are written there run on the host
)

// MissingMode says what becomes of protected paths that are missing when the
// sandbox starts. Nothing can be mounted on them, and a placeholder in a
// directory that others write may be made elsewhere (CVE-2026-87766), and stays.
type MissingMode int

// The modes.
const (
	// MissingTripwire looks for them before each command of a shell, which then
	// fails with an [*Error], ErrViolation, and when the sandbox ends:
	// [Transport.Violations] is told of both. In between they are not
	// looked for.
	MissingTripwire MissingMode = iota

	// MissingRefuse does not start a sandbox that could make them. Files within
	// git's own directories are looked for all the same, as are the names of
	// ScanProtect: some never are there.
	MissingRefuse
)
