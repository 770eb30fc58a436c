package sandbox_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is not run, or runs without a control that bites, and why. What the escape
// suite skips ./test prints.

// Halves that are not run.
const (
	notRoot   = "the half that root runs needs root"
	noSandbox = "no sandbox is to be had here"
	noBite    = "its control does not bite on this machine"
)

// An exemption is from the rule that the control bites. It is checked: a control
// that bites although it is exempt fails, unless that varies.
type exemption struct {
	who    string // "root", "user"; empty: both
	why    string
	varies bool // from machine to machine
	never  bool // nothing is tried: the control would do harm
	probes []string
}

var exemptions = []exemption{
	{who: "user", why: "only root may, with or without a sandbox", probes: []string{
		"files/by what a process has mapped", "files/by the handle of a file", "files/a device is made", "files/the mode of a device",
		"files//etc is written", "files//usr is written", "files/a file of the system is opened for writing",
		"files/the top directory is written", "files/the passwords", "files/the passwords, with all of the root shown",
		"files//sys is written, with all of the root shown",
		"files/the kernel's core pattern", "files/a setting of the network", "files/the kernel's magic keys",
		"files/the kernel's memory", "files/the kernel's messages", "files/what of the kernel only root may read",
		"files/a file system is mounted",

		"processes/the mode of what a process has mapped", "processes/the memory of the first process",
		"processes/the memory of the first process, by its thread", "processes/the program of the first process",
		"processes/the descriptors of the first process", "processes/the root of the first process",

		"network/a raw socket", "network/a packet socket", "network/a device is changed", "network/the network of a process",
		"network/a raw socket, with the host's network", "network/a packet socket, with the host's network",
		"network/a device is changed, with the host's network",

		"findings/root mounts what is read-only again", "findings/root takes a mask off", "findings/root without capabilities sets the core pattern",

		"processes/rights of its own", "processes/another user", "processes/a file is given to another user",
		"processes/the call settimeofday", "processes/the call fsopen", "processes/the call fsmount",
		"processes/the call fspick", "processes/the call move_mount", "processes/the call pivot_root",
		"processes/the call init_module", "processes/the call finit_module", "processes/the call delete_module",
		"processes/the call kexec_load", "processes/the call kexec_file_load", "processes/the call reboot", "processes/the call acct",
		"processes/the call swapoff", "processes/the call vhangup", "processes/the call sethostname",
		"processes/the call ioperm", "processes/the call iopl",
	}},
	{who: "user", why: "the kernel may tell nobody but root", varies: true, probes: []string{
		"files/the kernel's addresses", "files/the keys in the kernel", "processes/the call syslog", "processes/the call bpf",
	}},
	{who: "user", why: "ports may be free to everybody (net.ipv4.ip_unprivileged_port_start)", varies: true, probes: []string{
		"network/a port that is root's, with the host's network",
	}},
	{who: "user", why: "root has to have made the program, and the file system to honour it", varies: true, probes: []string{
		"processes/root by a program", "processes/a capability by a program",
	}},
	{who: "root", why: "root has it without the program", never: true, probes: []string{
		"processes/root by a program", "processes/a capability by a program",
	}},
	{who: "root", why: "the kernel may not have it, or tell nobody", varies: true, probes: []string{
		"files/the kernel's magic keys", "files/the kernel's memory", "files/the kernel's addresses", "files/the keys in the kernel",
		"processes/the call init_module", "processes/the call finit_module", "processes/the call delete_module",
		"processes/the call kexec_load", "processes/the call kexec_file_load", "processes/the call ioperm", "processes/the call iopl",
		"processes/the call acct",
	}},
	{why: "the kernel may not have it, or only root may", varies: true, probes: []string{
		"network/the kernel's ciphers", "network/a virtual machine's socket", "network/sockets past the filter",
		"network/the host's loopback, version 6", "network/which Unix sockets there are",
		"processes/the call open_by_handle_at", "processes/the call mount", "processes/the call kcmp", "processes/the call quotactl",
		"processes/the call userfaultfd", "processes/the call perf_event_open",
		"processes/the call keyctl", "processes/the call add_key", "processes/the call request_key", "processes/the call fanotify_init",
		"processes/the call move_pages", "processes/the call modify_ldt", "processes/the call uselib", "processes/the call x32",
		"processes/a program for 32 bits", "processes/a message queue",
		"processes/typing into a terminal", "processes/typing into a terminal, by a number with high bits",
	}},
	{who: "root", why: "the kernel counts no processes of root's, and limits by cgroup have probes of their own", never: true, probes: []string{
		"resources/as many processes as one likes",
	}},
	{who: "root", why: "all programs of root's would have to do without", never: true, probes: []string{"session/all events are taken"}},
	{who: "user", why: "it is limited without a sandbox too", probes: []string{
		"resources/memory that is not swapped", "resources/the processor before all others",
		"resources/a better place in the queue", "resources/the disk before all others",
	}},
	{why: "the machine may have no network", varies: true, probes: []string{
		"network/a network beyond the loopback", "network/a datagram beyond the loopback",
		"network/the network's devices", "network/the network's routes",
	}},
}

// exempt finds the exemption of a probe.
func exempt(probe string, who role) *exemption {
	for _, e := range exemptions {
		if (e.who == "" || e.who == who.name) && slices.Contains(e.probes, probe) {
			return &e
		}
	}
	return nil
}

// skip is the one way to leave a probe out.
func skip(t *testing.T, why string) {
	t.Helper()
	t.Skip(why)
}

func TestEveryExemptionIsFromAProbe(t *testing.T) {
	var names []string
	for _, g := range groups {
		for _, p := range g.probes {
			name := g.name + "/" + p.name
			assert.NotContains(t, names, name)
			names = append(names, name)
		}
	}
	for _, e := range exemptions {
		assert.NotEmpty(t, e.why)
		for _, name := range e.probes {
			assert.Contains(t, names, name)
		}
	}
	const promised = 90
	assert.GreaterOrEqual(t, len(names), promised)
}

func TestNothingIsSkippedButByTheList(t *testing.T) {
	for _, pattern := range []string{"escape_*", "findings_*", "harm_*", "world_*", "program_*", "running_*", "tool*", "calls_*"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.NotContains(t, string(source), ".Skip", file)
		}
	}
}
