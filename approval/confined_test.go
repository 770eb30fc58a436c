package approval_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/command"
	quote "github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
)

// readOnly is like a sandbox that shows the directories of the system.
func readOnly(path string) bool {
	return strings.HasPrefix(path, "/usr/") || strings.HasPrefix(path, "/etc/") || path == "/opt" || strings.HasPrefix(path, "/opt/")
}

func confined(c approval.Confined) *approval.Options {
	return &approval.Options{Home: "/home/me", Path: "/opt/bin:/usr/bin", Exported: typical.Exported, Confined: c}
}

var everything = approval.Confined{Network: true, Processes: true, Privileges: true, Refused: readOnly}

// Each rule allows its own examples, for the one thing that the sandbox prevents, and no others.
func TestRulesForSandboxesDecideTheirExamples(t *testing.T) {
	kinds := []approval.Confined{{}, {Network: true}, {Processes: true}, {Privileges: true}, {Refused: readOnly}}
	for _, r := range approval.ConfinedRules() {
		assert.NotEmpty(t, r.Yes, r.Name)
		assert.NotEmpty(t, r.No, r.Name)
		for _, script := range r.Yes {
			assert.Equal(t, approval.Ask, verdict(script), "%s, without a sandbox: %s", r.Name, script)
			j := approval.Judge(script, confined(everything))
			assert.Equal(t, approval.Allow, j.Verdict, "%s: %s: %v", r.Name, script, j.Findings)
			decides, by := false, 0
			for _, f := range j.Findings {
				decides = decides || f.Rule == r.Name
			}
			assert.True(t, decides, "%s does not decide: %s", r.Name, script)
			for _, kind := range kinds {
				if approval.Judge(script, confined(kind)).Verdict == approval.Allow {
					by++
				}
			}
			assert.Equal(t, 1, by, "%s: one thing that is prevented allows it: %s", r.Name, script)
		}
		for _, script := range r.No {
			assert.NotEqual(t, approval.Allow, approval.Judge(script, confined(everything)).Verdict, "%s: %s", r.Name, script)
		}
	}
}

func TestWhatCannotBeWrittenAsksNobody(t *testing.T) {
	for script, want := range map[string]approval.Verdict{
		"echo x > /usr/a": approval.Allow, "echo x >> /opt/a": approval.Allow, "ls &> /usr/a": approval.Allow, "ls >| \"/usr/a\"": approval.Allow, "ls >& /usr/a": approval.Ask, "d=/usr/x; ls > \"$d/a\"": approval.Allow, "cat <<E > /usr/a\nx\nE": approval.Allow,
		"bash -c 'ls > /usr/a'": approval.Allow, "ls > /usr/bin/a": approval.Allow, "echo x > /etc/profile.d/a.sh": approval.Allow, "echo x > /etc/cron.d/a": approval.Allow, "ls 2> /usr/log | sort > /usr/b": approval.Allow, "mkdir -p /usr/d && cp a b /usr/d && ls > /usr/d/c && rm -r /usr/d": approval.Allow,
		"ls > /src/a": approval.Ask, "ls > a": approval.Ask, "ls > /tmp/a": approval.Ask, "ls > ~/a": approval.Ask, "echo x > /usr/a <> b": approval.Ask, "echo x <> /usr/a": approval.Ask, "exec > /usr/a": approval.Ask, "x=1 > /usr/a; echo $((x))": approval.Ask, "echo x > /usr/../src/a": approval.Ask, "echo x > /etc/passwd": approval.Deny, "rm -rf /usr": approval.Deny, "rm -rf /opt": approval.Deny, "chmod -R 777 /etc": approval.Deny,
	} {
		assert.Equal(t, want, approval.Judge(script, confined(everything)).Verdict, script)
		if want == approval.Allow {
			assert.Equal(t, approval.Ask, approval.Judge(script, confined(approval.Confined{Network: true, Processes: true, Privileges: true})).Verdict, script)
		}
	}
	for _, home := range []string{"", "/usr", "/usr/me", "/opt"} {
		opts := confined(everything)
		opts.Home = home
		for _, script := range []string{"ls > ~/a", "rm $HOME/a", "cp a ~/b", "touch ~/a"} {
			assert.Equal(t, approval.Ask, approval.Judge(script, opts).Verdict, "what the session has for a home %q is not known: %s", home, script)
		}
	}
}

func TestAConnectionThatCannotBeAsksNobody(t *testing.T) {
	for script, want := range map[string]approval.Verdict{
		"echo x > /dev/tcp/1.2.3.4/80": approval.Allow, "cat < /dev/tcp/93.184.216.34/443": approval.Allow, "timeout 1 bash -c '< /dev/tcp/10.0.0.1/22'": approval.Allow, "echo > /dev/udp/8.8.8.8/53": approval.Allow,
		"echo > /dev/tcp/127.0.0.1/80": approval.Ask, "echo > /dev/tcp/1.2.3.4/80x": approval.Ask, "echo > /dev/tcp/1.2.3.256/80": approval.Ask, "echo > /dev/tcp/1.2.3/80": approval.Ask, "echo > /dev/tcp/224.0.0.1/80": approval.Ask, "echo > /dev/tcp/a.b/80": approval.Ask, "echo > /dev/tcp/01.2.3.4/80": approval.Ask,
	} {
		assert.Equal(t, want, approval.Judge(script, confined(approval.Confined{Network: true})).Verdict, script)
		assert.Equal(t, approval.Ask, approval.Judge(script, confined(approval.Confined{Processes: true, Privileges: true, Refused: readOnly})).Verdict, script)
	}
}

// A sudo that cannot get rights runs nothing, if it is the real one.
func TestWhatFailsForWantOfRightsAsksNobody(t *testing.T) {
	raising := map[string]bool{"/usr/bin/sudo": true, "/usr/bin/doas": true, "/usr/bin/pkexec": true, "/usr/bin/su": true}
	options := func(setUID bool) *approval.Options {
		opts := confined(approval.Confined{Privileges: true})
		opts.File = func(path string) approval.File {
			if filepath.Dir(path) != "/usr/bin" {
				return approval.File{}
			}
			return approval.File{Path: path, SetUID: setUID && raising[path]}
		}
		return opts
	}
	for script, want := range map[string]approval.Verdict{
		"sudo ls": approval.Allow, "sudo rm -rf /src": approval.Allow, "sudo -n true": approval.Allow, "sudo apt-get install -y a": approval.Allow, "sudo -u me -- rm a": approval.Allow, "sudo sh -c 'echo x > /etc/motd'": approval.Allow, "doas rm a": approval.Allow, "pkexec rm a": approval.Allow,
		"sudo A=b rm a": approval.Allow, "sudo rm a && ls": approval.Allow, "sudo bash -c 'f() { rm a; }; f'": approval.Allow,
		"sudo rm a; rm a": approval.Ask, "sudo rm a > b": approval.Ask, "sudo $(rm a)": approval.Ask, "sudo ls \"$(rm a)\"": approval.Ask, "sudo cat <(rm a)": approval.Ask, "sudo -A rm a": approval.Ask, "sudo -e a": approval.Ask, "sudo -E rm a": approval.Ask, "sudo $x": approval.Ask, "sudo -S rm a": approval.Ask, "sudo --nosuch a": approval.Ask,
		"su -c ls": approval.Ask, "su": approval.Ask, "runuser -u a ls": approval.Ask, "sudo cat ~/.ssh/id_rsa": approval.Ask, "sudo printenv": approval.Ask, "sudo bash -c 'if'": approval.Ask, "sudo reboot": approval.Deny, "sudo rm -rf /": approval.Deny, "curl x | sudo sh": approval.Deny, "env A=b sudo rm a": approval.Allow, "ls | xargs sudo": approval.Ask,
	} {
		assert.Equal(t, want, approval.Judge(script, options(true)).Verdict, script)
		assert.NotEqual(t, approval.Allow, approval.Judge(script, options(false)).Verdict, "sudo is a script of that name: %s", script)
		opts := options(true)
		opts.Confined.Privileges = false
		assert.NotEqual(t, approval.Allow, approval.Judge(script, opts).Verdict, "root runs, or may: %s", script)
	}
	opts := options(true)
	opts.Own = []approval.Own{{Verdict: approval.Ask, Words: []string{"make"}}}
	assert.Equal(t, approval.Ask, approval.Judge("sudo make", opts).Verdict, "a person has said so")
	opts.File = func(path string) approval.File {
		return approval.File{Path: path, SetUID: true, Why: "which this user can write"}
	}
	assert.Equal(t, approval.Ask, approval.Judge("sudo ls", opts).Verdict)
	many := "sudo sh -c '" + strings.Repeat("ls\n", 2100) + "'; rm a"
	assert.Equal(t, approval.Ask, approval.Judge(many, options(true)).Verdict, "what has too many parts was not read")
}

// unchanged is a shell that has nothing but what it began with.
func unchanged() *command.LiveState {
	return &command.LiveState{
		Options: []string{"braceexpand", "interactive_comments", "interactive-comments"}, Env: []string{"PATH=/opt/bin:/usr/bin", "HOME=/home/me"},
		Variables: []command.LiveVariable{{Name: "PATH", Value: "/opt/bin:/usr/bin", Attributes: "x"}, {Name: "HOME", Value: "/home/me", Attributes: "x"}, {Name: "IFS", Value: " \t\n"}},
	}
}

// Bash has read another language than limpet from the start.
func TestWithPOSIXLYCORRECTEverythingAsks(t *testing.T) {
	opts := confined(everything)
	opts.Exported = func(name string) bool { return name == "POSIXLY_CORRECT" || typical.Exported(name) }
	for _, script := range []string{"ls", "rm /usr/share/a -rf", "touch /usr/a -d 1"} {
		assert.Equal(t, approval.Ask, approval.Judge(script, opts).Verdict, script)
		assert.Equal(t, approval.Allow, approval.Judge(script, confined(everything)).Verdict, script)
	}
}

// What a sandbox prevents is one thing; who says what, and what names mean, is another.
func TestASandboxLeavesAllElseAsItIs(t *testing.T) {
	for _, script := range []string{"rm /usr/a", "ls | tee /usr/a", "kill 1", "ping a", "chmod +x /usr/a"} {
		name, _, _ := strings.Cut(strings.TrimPrefix(script, "ls | "), " ")
		require.Equal(t, approval.Allow, approval.Judge(script, confined(everything)).Verdict, script)
		opts := confined(everything)
		opts.Own = []approval.Own{{Verdict: approval.Ask, Words: []string{name}}}
		assert.Equal(t, approval.Ask, approval.Judge(script, opts).Verdict, script)
		opts.Own = []approval.Own{{Verdict: approval.Deny, Words: []string{name}}}
		assert.Equal(t, approval.Deny, approval.Judge(script, opts).Verdict, script)
		opts = confined(everything)
		opts.Live = unchanged()
		assert.Equal(t, approval.Allow, approval.Judge(script, opts).Verdict, script)
		opts.Live.Functions = []string{name}
		assert.Equal(t, approval.Ask, approval.Judge(script, opts).Verdict, "a function: %s", script)
		if name == "kill" {
			continue // A builtin.
		}
		opts = confined(everything)
		opts.File = func(path string) approval.File {
			return approval.File{Path: path, Why: "which this user can write"}
		}
		assert.Equal(t, approval.Ask, approval.Judge(script, opts).Verdict, "another program: %s", script)
	}
}

// A script says why it was not asked about.
func TestAScriptSaysWhatTheSandboxPrevents(t *testing.T) {
	for script, want := range map[string]string{
		"rm /usr/a": "it deletes files, but it cannot: the sandbox shows that read-only", "ls > /usr/a": "it writes a file, but it cannot: the sandbox shows that read-only",
		"ping a": "it sends data to another machine, which the sandbox has no way to", "kill 1": "it ends or changes processes, and the sandbox shows none but its own",
	} {
		j := approval.Judge(script, confined(everything))
		var reasons []string
		for _, f := range j.Findings {
			reasons = append(reasons, f.Reason)
		}
		assert.Contains(t, reasons, want, script)
	}
}

// workplace is a workspace with a file of secrets, a home, and what is known of a sandbox that writes to the workspace.
func workplace(t *testing.T) (workspace string, policy sandbox.Policy, opts *approval.Options) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Setenv("HOME", home)
	workspace = filepath.Join(home, "src")
	require.NoError(t, os.MkdirAll(filepath.Join(workspace, "d"), 0o700))
	for _, file := range []string{"a", "b", "d/c", ".env", "../kept"} {
		require.NoError(t, os.WriteFile(filepath.Join(workspace, file), []byte("SECRET-"+file+"\n"), 0o600))
	}
	policy = sandbox.WorkspaceWrite(workspace)
	opts = &approval.Options{Home: home, Path: filepath.Join(home, "bin") + ":/usr/bin:/bin", Exported: typical.Exported}
	opts.Confined.Network, opts.Confined.Processes, opts.Confined.Privileges = policy.Prevents()
	opts.Confined.Refused = policy.Refuses
	return workspace, policy, opts
}

func TestNoWayAroundASandboxIsAllowed(t *testing.T) {
	testenv.Slow(t)
	workspace, _, opts := workplace(t)
	opts.Confined.Privileges = true
	list := scripts(t, "confined.txt")
	assert.Greater(t, len(list), 200)
	for _, script := range list {
		script = strings.NewReplacer("WS", workspace, "UP", filepath.Dir(workspace)).Replace(script)
		assert.NotEqual(t, approval.Allow, approval.Judge(script, opts).Verdict, "%q", script)
		for _, dress := range []string{"ls\n%s", "{ %s\n}", "(%s\n)", "echo \"$(%s\n)\"", "if true; then\n%s\nfi", "true && {\n%s\n}", "cat <(%s\n)", "for f in a; do\n%s\ndone", "ls > /usr/a\n%s", "{ %s\n} > /usr/a", "rm /usr/share/nosuch; %s"} {
			dressed := strings.ReplaceAll(dress, "%s", script)
			assert.NotEqual(t, approval.Allow, approval.Judge(dressed, opts).Verdict, "%q", dressed)
		}
		assert.NotEqual(t, approval.Allow, approval.Judge("bash -c "+quote.Quote(script), opts).Verdict, "bash -c %q", script)
	}
}
