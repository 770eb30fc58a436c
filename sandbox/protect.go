package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// DefaultProtect are paths in a workspace that make other programs run what
// they say. They are read-only.
var DefaultProtect = []string{".git", ".hg", ".svn", ".vscode", ".idea", ".envrc", ".mcp.json", ".claude", ".codex"}

// DefaultScanProtect are the names of files and directories that make other programs run
// what they say, wherever they are.
var DefaultScanProtect = namesOf(protectedNames)

// protectedName is a name of DefaultScanProtect, and what it makes a program do.
type protectedName struct{ name, why string }

func namesOf(list []protectedName) (names []string) {
	for _, p := range list {
		names = append(names, p.name)
	}
	return names
}

// protectedNames are those of files that a program reads in the directory that it is
// started in, or that somebody opens with it.
var protectedNames = []protectedName{
	// Agents and their hosts.
	{".amazonq", "Amazon Q starts its MCP servers"},
	{".claude", "Claude Code runs its hooks, and allows what it allows"},
	{".codex", "Codex starts its MCP servers"},
	{".continue", "Continue starts its MCP servers"},
	{".crush.json", "Crush starts its MCP and language servers"},
	{"crush.json", "Crush starts its MCP and language servers"},
	{".cursor", "Cursor starts its MCP servers, and runs its hooks"},
	{".gemini", "Gemini CLI starts its MCP servers, and runs its tools and hooks"},
	{".goose", "Goose starts its extensions"},
	{".kiro", "Kiro starts its MCP servers, and runs its hooks"},
	{".mcp.json", "agents start its MCP servers"},
	{".opencode", "opencode loads its plugins"},
	{"opencode.json", "opencode starts its MCP and language servers, and loads its plugins"},
	{"opencode.jsonc", "opencode starts its MCP and language servers, and loads its plugins"},
	{".roo", "Roo Code starts its MCP servers"},
	{".trae", "Trae starts its MCP servers"},
	{".windsurf", "Windsurf starts its MCP servers, and runs its hooks"},

	// Editors and debuggers.
	{".devcontainer", "editors build its container, and run its commands on the host (initializeCommand)"},
	{".devcontainer.json", "editors build its container, and run its commands on the host (initializeCommand)"},
	{".exrc", "vi and vim run its commands (exrc)"},
	{".gdbinit", "gdb runs its commands"},
	{".idea", "JetBrains' editors run its configurations and file watchers"},
	{".lldbinit", "lldb runs its commands"},
	{".nvim.lua", "Neovim runs it (exrc)"},
	{".nvimrc", "Neovim runs its commands (exrc)"},
	{".vs", "Visual Studio runs its tasks"},
	{".vscode", "VS Code runs its tasks, and the programs that its settings name"},
	{".zed", "Zed runs its tasks and language servers"},

	// Shells.
	{".bash_login", "bash runs it"},
	{".bash_logout", "bash runs it"},
	{".bash_profile", "bash runs it"},
	{".bashrc", "bash runs it"},
	{".envrc", "direnv runs it"},
	{".mise.toml", "mise sets variables, and runs its hooks and tasks"},
	{"mise.toml", "mise sets variables, and runs its hooks and tasks"},
	{".profile", "shells run it"},
	{".zlogin", "zsh runs it"},
	{".zprofile", "zsh runs it"},
	{".zshenv", "zsh runs it"},
	{".zshrc", "zsh runs it"},

	// Version control and its hooks.
	{".gitconfig", "git runs the programs that it names"},
	{".gitmodules", "git fetches from where it says, and runs what it says to update"},
	{".husky", "git runs its hooks"},
	{".jj", "jj runs the programs that its configuration names"},
	{".pre-commit-config.yaml", "pre-commit runs its hooks"},

	// Package managers and other tools.
	{".npmrc", "npm runs the programs that it names (script-shell, git), and fetches from where it says"},
	{".pnpmfile.cjs", "pnpm runs it"},
	{".ripgreprc", "ripgrep runs the program that it names (pre)"},
	{".yarnrc", "yarn runs the program that it names (yarn-path)"},
	{".yarnrc.yml", "yarn runs the programs that it names (yarnPath, plugins)"},
}

// whyProtected is why a path is read-only.
func whyProtected(path string) string {
	name := filepath.Base(path)
	if i := slices.IndexFunc(protectedNames, func(p protectedName) bool { return p.name == name }); i >= 0 {
		return protectedNames[i].why
	}
	return "makes programs of the host run what it says"
}

// notProtected are directories in which no names are looked for: of packages, which a
// package manager replaces whole and which hold programs that the sandbox may write
// anyway, and of version control, about which FS.Git and FS.Protect say more.
var notProtected = []string{
	"node_modules", "bower_components", "vendor", ".venv", "venv", ".tox", "site-packages", "target", ".git", ".hg", ".svn",
}

// names fills in the default of ScanProtect, and refuses what is no name.
func (r *resolver) names() error {
	list := r.p.FS.ScanProtect
	if list == nil {
		list = DefaultScanProtect
	}
	for i, name := range list {
		if name == "" || name == "." || name == ".." || strings.Contains(name, "/") || hasNUL(name) {
			return mountError("it is one of a file or directory, without a /", "FS.ScanProtect[%d]: %q is not a name", i, name)
		}
	}
	r.p.FS.ScanProtect = append([]string{}, list...) // Not nil, which means the default.
	return nil
}
