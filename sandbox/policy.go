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

	// RunAs is who runs in the sandbox; nil is the user of this program. Only
	// root can choose, and should. That user must be able to reach the workspace
	// and all else that the policy shows.
	RunAs *Credential

	unconfined string // why there is no sandbox; see [Unconfined]

	// Of a child; see [Policy.Narrow].
	settled bool   // its paths had no symlinks, and may have none later
	scans   []scan // that its parents have

	// Made from FS: what could be there, and when the policy is resolved what is.
	guards []guard
	masks  []entry
	wire   tripwire // when the policy is resolved
}

// Net says what can be reached.
type Net struct {
	Mode NetMode
	Unix UnixMode

	// The rest is for DomainsNet. An entry of Allow and Deny is "example.com";
	// "*.example.com", which is what is below it; or an IP address. Each may end
	// in a port, as in "example.com:8443". Deny wins.
	Allow, Deny []string

	// Ports are for entries without one. Nil is 80 and 443.
	Ports []uint16

	// Private allows addresses that are not public, such as the loopback and
	// the local network of this machine. SkipSNI allows tunnels to port 443 that
	// do not carry TLS to a host of Allow.
	Private, SkipSNI bool
}

// NetMode is the network that there is.
type NetMode int

// The modes, from the narrowest.
const (
	NoNet      NetMode = iota // a loopback device of its own
	DomainsNet                // and on it a proxy to the hosts that are allowed
	HostNet                   // the host's network, its abstract sockets included
)

// UnixMode says whether Unix sockets may be made.
type UnixMode int

// The modes, from the narrowest.
const (
	UnixBlocked UnixMode = iota // by seccomp; socketpair(2) stays, but for datagrams
	UnixAllowed
)

// Env says which variables of the host the sandbox has, besides PATH, HOME,
// USER, LANG, LC_*, TERM, TZ and SHELL. Pass names variables that the process would
// have without a sandbox: a shell's Options.Env must have them, whose default leaves
// out what looks like a secret (shell.DefaultEnv).
type Env struct {
	Pass []string
	Set  map[string]string
}

// Proc says what processes may do to each other.
type Proc struct {
	AllowPtrace bool
	Hostname    string // empty: "sandbox"

	// Allow32Bit lets programs of i386 run on amd64; elsewhere it is refused. They have
	// the same filter, but make no sockets if their C library does so by socketcall(2),
	// whose arguments no filter can read.
	Allow32Bit bool

	// NestedWeak is for a container in which no /proc can be mounted (ErrProc): /proc
	// is empty then, and never the host's. What needs it fails: process substitution,
	// /dev/stdout, and DomainsNet, which is refused.
	NestedWeak bool
}

// Limits bound what the sandbox may use; 0 is no limit of its own. They are set
// before anything runs in it, for each process (setrlimit(2)). NProc counts all
// processes of the user, and does nothing for root. NProc, NoFile, FileSize and
// AddressSpace bound the shell as well, whose output and state are files: one that
// meets a limit may end.
//
// MemoryMax, in bytes, and PidsMax are for all processes of one sandbox together,
// and hold for root too. The first process of the sandbox is one of them. What is
// written to a private /tmp or home is memory. They need a cgroup v2 in which this
// program can make others; where it cannot, the sandbox does not start, and the
// error is [ErrLimits].
type Limits struct {
	NProc, NoFile, FileSize, AddressSpace, CPU uint64
	MemoryMax, PidsMax                         uint64
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

// AllowDomains is WorkspaceWrite with a proxy to these hosts and no others: see
// [Net]. Programs find it in http_proxy and https_proxy, and ssh by git.
func AllowDomains(workspace string, domains ...string) Policy {
	p := WorkspaceWrite(workspace)
	p.Name, p.Net.Mode, p.Net.Allow = "allow-domains", DomainsNet, domains
	return p
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
	p.Net = Net{Unix: p.Net.Unix}
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

// Contains reports whether what runs under the policy can change nothing outside that stays, and reach nobody: the workspace cannot be
// written, nor anything else that is shared, and there are no networks and no Unix sockets. What it can see it may still print.
func (p Policy) Contains() bool {
	return p.unconfined == "" && p.FS.Access != ReadWrite && len(p.FS.ExtraRW) == 0 && p.FS.Home != SharedHome && p.FS.Tmp != SharedTmp &&
		p.Net.Mode == NoNet && p.Net.Unix == UnixBlocked
}

// Prevents says what no process under the policy can do. Network: reach another machine, or a service of this one; what runs in the same sandbox it can, by
// a loopback device. Processes: see or signal processes outside of the sandbox. Privileges: get more rights, by sudo or another file with a set-user-ID bit, for
// bwrap sets no_new_privs (PR_SET_NO_NEW_PRIVS), which no process can take back; false where root runs, who needs no more. Of the zero Policy and of Unconfined
// all are false.
func (p Policy) Prevents() (network, processes, privileges bool) {
	if p.Name == "" || p.unconfined != "" {
		return false, false, false
	}
	return p.Net.Mode == NoNet && p.Net.Unix == UnixBlocked, true, p.user().UID != 0
}
