package sandbox

// Policy says what the processes of a sandboxed session may see and do. The
// zero Policy is invalid: begin with a preset. A Policy is a value; whoever
// runs under it, a shell, a one-shot command, gets a copy, and no call turns it
// off for one command.
type Policy struct {
	Name   string // for errors and Explain
	FS     FS
	Net    Net
	Env    Env
	Proc   Proc
	Limits Limits
	Drift  DriftMode

	unconfined string // why there is no sandbox; see [Unconfined]

	// Set when the policy is resolved.
	protected []string // what of Protect is there
	masks     []entry  // what of Mask is there
}

// FS says which files are there.
type FS struct {
	// Workspace is the directory that the session works in. It is required, and
	// is not "/", the home directory or one above it, or one of the system's.
	Workspace string
	Access    Access // to the workspace

	Root RootScope
	Home HomeMode

	// TmpSize, HomeSize and ShmSize bound what is written to /tmp, to the
	// private home and to /dev/shm, in bytes. 0 is 256 MiB, 256 MiB, 64 MiB.
	TmpSize, HomeSize, ShmSize int64

	// ExtraRO and ExtraRW are shown besides. A source that is missing is an
	// error unless the Bind is Optional.
	ExtraRO, ExtraRW []Bind

	// Mask hides what would be seen otherwise: a directory is empty, a file is
	// /dev/null. Paths that are relative are meant in the workspace.
	Mask []string

	// Protect is read-only although it lies in the workspace, as far as it is
	// there. Nil means [DefaultProtect]. Git says the same about .git.
	Protect []string
	Git     GitMode
}

// Bind shows a file or directory of the host at a path of the sandbox. An
// empty Dst is Src.
type Bind struct {
	Src, Dst string
	Optional bool
}

// DefaultProtect are paths in a workspace that make other programs run what
// they say. They are read-only.
var DefaultProtect = []string{".git", ".hg", ".svn", ".vscode", ".idea", ".envrc", ".mcp.json", ".claude", ".codex"}

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

// The modes, from the narrowest.
const (
	PrivateHome  HomeMode = iota // an empty one that goes with the session
	ReadOnlyHome                 // the host's, less Mask
)

// GitMode is what may be done to the workspace's .git.
type GitMode int

// The modes, from the narrowest.
const (
	GitReadOnly GitMode = iota
	GitWritable         // as any directory: hooks that are written there run on the host
)

// Net says what can be reached.
type Net struct {
	Mode NetMode
	Unix UnixMode
}

// NetMode is the network that there is.
type NetMode int

// The modes, from the narrowest.
const (
	NoNet   NetMode = iota // a loopback device of its own
	HostNet                // the host's network, its abstract sockets included
)

// UnixMode says whether Unix sockets may be made.
type UnixMode int

// The modes, from the narrowest.
const (
	UnixBlocked UnixMode = iota // by seccomp; socketpair(2) stays
	UnixAllowed
)

// Env says which variables of the host the sandbox has, besides PATH, HOME,
// USER, LANG, LC_*, TERM, TZ and SHELL.
type Env struct {
	Pass []string
	Set  map[string]string
}

// Proc says what processes may do to each other.
type Proc struct {
	AllowPtrace bool
	Allow32Bit  bool
	Hostname    string // empty: "sandbox"
}

// Limits bound what the sandbox may use; 0 is no limit of its own. They are set
// before anything runs in it. NProc counts all processes of the user, and does
// nothing for root.
type Limits struct {
	NProc, NoFile, FileSize, AddressSpace, CPU uint64
}

// DriftMode says what is done when the host detached a mount of a running
// sandbox, by renaming a file over it: see docs/sandbox.md.
type DriftMode int

// The modes.
const (
	DriftRespawn DriftMode = iota // a new sandbox takes over with the shell's state
	DriftFail                     // the command fails with an [*Error], ErrDrift
)

// ReadOnly shows the workspace, and lets nothing be written but to /tmp and the
// private home.
func ReadOnly(workspace string) Policy {
	return Policy{Name: "read-only", FS: FS{Workspace: workspace, Access: ReadOnlyAccess}}
}

// WorkspaceWrite is the usual policy: the workspace may be written, but for
// Protect; there is no network.
func WorkspaceWrite(workspace string) Policy {
	return Policy{Name: "workspace-write", FS: FS{Workspace: workspace}}
}

// HostNetwork is WorkspaceWrite with the host's network. Services that listen
// on the host's loopback or on abstract sockets can be reached.
func HostNetwork(workspace string) Policy {
	p := WorkspaceWrite(workspace)
	p.Name, p.Net.Mode = "host-network", HostNet
	return p
}

// Scratch is WorkspaceWrite with writes that are thrown away at the end of the
// session. It needs bwrap 0.11 or newer.
func Scratch(workspace string) Policy {
	p := WorkspaceWrite(workspace)
	p.Name, p.FS.Access = "scratch", Overlay
	return p
}

// Unconfined is no sandbox at all, by the caller's wish. The reason is required;
// it stands in Explain.
func Unconfined(reason string) Policy {
	return Policy{Name: "unconfined", unconfined: reason}
}

// NoNetwork returns p without a network.
func (p Policy) NoNetwork() Policy {
	p.Net.Mode = NoNet
	return p
}

// With returns p with more that is shown, read-only and writable.
func (p Policy) With(ro, rw []string) Policy {
	binds := func(had []Bind, paths []string) []Bind {
		had = had[:len(had):len(had)]
		for _, path := range paths {
			had = append(had, Bind{Src: path})
		}
		return had
	}
	p.FS.ExtraRO, p.FS.ExtraRW = binds(p.FS.ExtraRO, ro), binds(p.FS.ExtraRW, rw)
	return p
}
