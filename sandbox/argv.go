package sandbox

// item is a group of arguments for bwrap, and why they are there.
type item struct {
	why  string
	args []string
}

// The sizes that a Policy's 0 stands for.
const (
	defaultTmp  = 256 << 20
	defaultHome = 256 << 20
	defaultShm  = 64 << 20
	varTmp      = 64 << 20
)

// plan makes bwrap's arguments of a policy that was resolved. It looks at
// nothing but its own arguments. What is made read-only is so last.
func plan(p Policy, h host, at place) []item {
	var items []item
	add := func(why string, args ...string) { items = append(items, item{why, args}) }

	add("namespaces of its own, in which no further ones can be made", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
		"--unshare-cgroup-try", "--disable-userns")
	switch p.Net.Mode {
	case NoNet:
		add("no network", "--unshare-net")
	case DomainsNet:
		add("no network but a proxy to the hosts that are allowed", "--unshare-net")
	}
	add("no capabilities, also for root", "--cap-drop", "ALL")
	add("a name that is not the host's", "--hostname", p.Proc.Hostname)
	add("it ends with the program, and has no terminal", "--die-with-parent", "--new-session")

	items = append(items, mountsOf(p, h, at).items...)
	add("its mount points are made", "--remount-ro", "/run")
	if p.FS.Root == System {
		add("nothing is written besides", "--remount-ro", "/")
	}
	add("where it starts", "--chdir", at.dir)
	return items
}

// arguments joins the plan.
func arguments(items []item) []string {
	var args []string
	for _, i := range items {
		args = append(args, i.args...)
	}
	return args
}
