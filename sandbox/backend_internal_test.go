package sandbox

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The texts are those of bwrap, by which alone it can be told why it failed.
func TestWhatBwrapRefusesIsAnErrorWithARemedy(t *testing.T) {
	const (
		userns  = "the kernel refuses user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=1?); load the AppArmor profile bwrap-userns-restrict, raise user.max_user_namespaces (or max_mnt_, max_pid_, max_net_namespaces and their like), or do not run inside of another sandbox"
		netns   = "cannot create a network namespace (AppArmor or missing CAP_NET_ADMIN in a container); allow it, or ask for HostNetwork explicitly"
		seccomp = "seccomp filter rejected by the kernel or bwrap"
		mount   = "a mount failed"
	)
	rows := []struct {
		said string
		code error
		text string
	}{
		{"Unknown option --disable-userns", ErrOldBackend, "bwrap lacks an option; install a newer bubblewrap"},
		{"No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.", ErrUserns, userns},
		{"No permissions to create a new namespace", ErrUserns, userns},
		{"No permissions to creating new namespace, likely because the kernel does not allow non-privileged user namespaces.", ErrUserns, userns},
		{"setting up uid map: Permission denied", ErrUserns, userns},
		{"Setting userns2 failed: Invalid argument", ErrUserns, userns},
		{"creation of new user namespaces was not disabled as requested", ErrUserns, userns},
		{"Creating new namespace failed: nesting depth or /proc/sys/user/max_*_namespaces exceeded (ENOSPC)", ErrUserns, userns},
		{"loopback: Failed RTM_NEWADDR: Operation not permitted", ErrNetns, netns},
		{"loopback: Failed RTM_NEWLINK: Operation not permitted", ErrNetns, netns},
		{"loopback: Failed to look up lo: No such device", ErrNetns, netns},
		{"Can't mount proc on /newroot/proc: Operation not permitted", ErrProc, "cannot mount /proc (masked /proc of the outer container); start the container with --security-opt unmask=ALL or systempaths=unconfined, or go without by Proc.NestedWeak"},
		{"Can't read seccomp data: Invalid argument", ErrSeccomp, seccomp},
		{"Invalid seccomp data", ErrSeccomp, seccomp},
		{"prctl(PR_SET_SECCOMP): Invalid argument", ErrSeccomp, seccomp},
		{"limpet-helper: listen tcp 127.0.0.1:3128: too many open files", ErrProxy, "the proxy to the allowed hosts could not be set up; a limit of the policy may be too low for it (AddressSpace, NoFile)"},
		{"execvp /opt/bash: No such file or directory", ErrExec, "the program is not visible inside the sandbox; show it by ExtraRO, or by Root: All"},
		{"Can't chdir to /w: Permission denied", ErrMount, "the user that the sandbox runs as cannot enter the directory to start in; let that user enter it"},
		{"Can't chdir to /nosuch: No such file or directory", ErrMount, "the directory to start in is not visible inside the sandbox; start in the workspace"},
		{"Can't find source path /root/x: Permission denied", ErrMount, "the user that the sandbox runs as cannot reach a directory; let that user enter the directories above it"},
		{"Can't find source path /x: No such file or directory", ErrMount, mount},
		{"Can't mkdir /newroot/x: Read-only file system", ErrMount, mount},
		{"Can't create file at /newroot/x: Permission denied", ErrMount, mount},
		{"Can't bind mount /oldroot/x on /newroot/x: Invalid argument", ErrMount, mount},
		{"Can't get type of source /x: Permission denied", ErrMount, mount},
		{"Can't mount tmpfs on /newroot/tmp: Operation not permitted", ErrMount, mount},
		{"Can't make symlink at /bin: existing destination is usr", ErrMount, mount},
		{"Can't remount readonly on /newroot/usr: Operation not permitted", ErrMount, mount},
		{"Can't create symlink at /newroot/bin", ErrMount, mount},
		{"Failed to make / slave: Operation not permitted", ErrMount, mount},
		{"Out of memory", ErrMount, "bwrap ended before the program started"},
	}
	for _, row := range rows {
		said := "bwrap: " + row.said
		err := explain(said+"\n", nil)
		require.ErrorIs(t, err, row.code)
		assert.EqualError(t, err, "sandbox: "+row.text+" (bwrap said: "+said+")")
	}
	for _, r := range refusals {
		said := false
		for _, row := range rows {
			said = said || r.said().MatchString(row.said)
		}
		assert.True(t, said, "no row is about %s", r.said())
	}
	assert.EqualError(t, explain("", errors.New("a sandboxed sh exited with 1")), "sandbox: a sandboxed sh exited with 1")
}

func TestAnOldBwrapIsRefusedForWhatItLacks(t *testing.T) {
	for _, row := range []struct {
		major, minor int
		policy       Policy
		want         string
	}{
		{0, 7, WorkspaceWrite("/w"), "sandbox: bwrap 0.7 lacks --disable-userns (needs 0.8); install a newer bubblewrap"},
		{0, 8, WorkspaceWrite("/w"), ""},
		{0, 10, Scratch("/w"), "sandbox: bwrap 0.10 lacks --overlay-src (needs 0.11); install a newer bubblewrap, or use WorkspaceWrite on a copy of the workspace"},
		{0, 11, Scratch("/w"), ""},
		{1, 0, Scratch("/w"), ""},
	} {
		err := backend{major: row.major, minor: row.minor}.supports(row.policy)
		if row.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrOldBackend)
		assert.EqualError(t, err, row.want)
	}
}
