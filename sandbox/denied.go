package sandbox

import (
	"bytes"
	"cmp"
	"strings"
)

// denials tell what a program says when the sandbox has refused it something. Others
// say the same for other reasons: it is a hint.
var denials = []struct {
	said  string
	means func(Policy) string // "": it was not the sandbox
}{
	{"Read-only file system", func(p Policy) string {
		return "it wrote where the sandbox is read-only; it can write to " + strings.Join(p.writablePlaces(), ", ")
	}},
	{"Device or resource busy", pinned},
	{"Invalid cross-device link", pinned},
	{"Address family not supported by protocol", func(p Policy) string {
		if p.Net.Unix == UnixAllowed {
			return ""
		}
		return "Unix sockets are blocked in the sandbox"
	}},
	// Of curl and cargo, pip, wget, npm, go.
	{"tunnel failed, response 403", refusedHost},
	{"Tunnel connection failed: 403", refusedHost},
	{"Proxy tunneling failed: Forbidden", refusedHost},
	{"npm error code E403", refusedHost},
	{": Forbidden", refusedHost},
	{"Bad response: 403", refusedHost},   // Yarn.
	{"etwork is unreachable", noNetwork}, // Go does not begin it with a capital.
	{"Could not resolve host", noNetwork},
	{"Temporary failure in name resolution", noNetwork},
	{"Name or service not known", noNetwork},
	{"getaddrinfo E", noNetwork}, // Node: EAI_AGAIN, ENOTFOUND.
	{"(from versions: none)", noNetwork},
	{"Bad system call", badCall},
}

func pinned(p Policy) string {
	if len(p.guards) == 0 && len(p.masks) == 0 {
		return ""
	}
	return "what the sandbox protects or hides, and the directories that hold it, cannot be moved or removed"
}

func noNetwork(p Policy) string {
	switch p.Net.Mode {
	case NoNet:
		return "there is no network in the sandbox: ask for one that may reach the host, by Net.Allow=HOST"
	case DomainsNet:
		return "the sandbox has no network but a proxy, which programs find in http_proxy and https_proxy"
	}
	return ""
}

func refusedHost(p Policy) string {
	if p.Net.Mode != DomainsNet {
		return ""
	}
	return "the sandbox may not reach the host: ask for one that may, by Net.Allow=HOST"
}

func badCall(Policy) string { return "it made a system call that the sandbox does not know" }

// exitSIGSYS is the exit code of what the filter killed (seccomp(2)).
const exitSIGSYS = 128 + 31

// denied guesses what the sandbox has refused to a command that failed.
func (p Policy) denied(exitCode int, output ...[]byte) string {
	for _, d := range denials {
		for _, text := range output {
			if bytes.Contains(text, []byte(d.said)) {
				if why := d.means(p); why != "" {
					return why
				}
			}
		}
	}
	if exitCode == exitSIGSYS {
		return badCall(p)
	}
	return ""
}

// writablePlaces are those of which a program can know.
func (p Policy) writablePlaces() []string {
	var places []string
	if p.FS.Access != ReadOnlyAccess {
		places = append(places, p.FS.Workspace+" (but for what is protected, as .git)")
	}
	for _, b := range p.FS.ExtraRW {
		places = append(places, cmp.Or(b.Dst, b.Src))
	}
	places = append(places, "/tmp")
	if p.FS.Home != ReadOnlyHome {
		places = append(places, "$HOME")
	}
	return places
}
