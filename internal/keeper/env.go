package keeper

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/shell"
)

// agentVar has the path of the socket of the SSH agent.
const agentVar = "SSH_AUTH_SOCK"

// CallerVars say where a caller is: they are not those of the program that made the session. The model is
// update-environment of tmux(1).
var CallerVars = []string{
	agentVar, "SSH_CONNECTION", "SSH_TTY", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "TERM", "COLORTERM",
	"SUDO_ASKPASS", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE",
}

// CallerEnv returns what a caller with an environment brings to a session, for command.Request.UpdateEnv.
func CallerEnv(env []string) []string {
	entries := slices.Clone(CallerVars)
	for _, entry := range env { // The last one of a name wins.
		name, _, _ := strings.Cut(entry, "=")
		if i := slices.Index(CallerVars, name); i >= 0 {
			entries[i] = entry
		}
	}
	// JSON would make another value of it.
	return slices.DeleteFunc(entries, func(entry string) bool { return !utf8.ValidString(entry) })
}

// CallerEnv is what this program brings to a session.
func (r *Registry) CallerEnv() []string { return CallerEnv(shell.DefaultEnv()) }

// agent is the link, by the name of a session, to the socket of the last caller's SSH agent: what runs
// on in the session has the link in its environment, and reaches the agent that is there now.
type agent struct{ link string }

// mostSocket is the longest path of a socket, in bytes: sun_path in unix(7) has 108, with the NUL.
const mostSocket = 107

func newAgent(dir string) agent { return agent{filepath.Join(dir, agentFile)} }

// update points the link at the agent of a caller, and returns the caller's entries with the link in
// them. A caller without an agent leaves the link as it is.
func (a agent) update(entries []string) []string {
	i := slices.IndexFunc(entries, func(entry string) bool { return strings.HasPrefix(entry, agentVar+"=") })
	if i < 0 || len(a.link) > mostSocket {
		return entries
	}
	if !a.point(strings.TrimPrefix(entries[i], agentVar+"=")) {
		return entries
	}
	entries = slices.Clone(entries)
	entries[i] = agentVar + "=" + a.link
	return entries
}

// point points the link at a socket. It reports false if the socket cannot be had so.
func (a agent) point(path string) bool {
	// A caller within a session has the link of that. Links to links would come to a ring.
	if filepath.Base(path) == agentFile && filepath.Dir(filepath.Dir(path)) == filepath.Dir(filepath.Dir(a.link)) {
		target, err := os.Readlink(path)
		if err != nil {
			return false
		}
		path = target
	}
	if !filepath.IsAbs(path) {
		return false
	}
	if target, err := os.Readlink(a.link); err == nil && target == path {
		return true
	}
	if err := private.MkdirAll(filepath.Dir(a.link)); err != nil {
		return false
	}
	fresh := a.link + "~"
	_ = os.Remove(fresh) // Of a keeper that was killed here; else it is not there.
	if err := os.Symlink(path, fresh); err != nil {
		return false
	}
	return os.Rename(fresh, a.link) == nil
}
