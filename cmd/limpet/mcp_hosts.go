package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// mcpHost is an agent host that starts limpet mcp, as it was when it was tried.
type mcpHost struct {
	name, title string
	file        string // where its configuration is
	block       func(argv []string) any
	env         []string // what a server gets of its environment; nil: all of it
	protocol    string   // the version that it asks for
	notes       []string // what else it wants
}

// server is an entry of a list of servers in JSON.
type server struct {
	Type    string   `json:"type,omitempty"`
	Command any      `json:"command"`
	Args    []string `json:"args,omitempty"`
	Tools   []string `json:"tools,omitempty"`
	Timeout int      `json:"timeout,omitempty"`
	Trust   bool     `json:"trust,omitempty"`
}

// servers is the list that most hosts have.
func servers(more func(*server)) func(argv []string) any {
	return func(argv []string) any {
		one := &server{Command: argv[0], Args: argv[1:]}
		if more != nil {
			more(one)
		}
		return map[string]any{"mcpServers": map[string]*server{"limpet": one}}
	}
}

// An hour, as hosts write it that would give a call up before.
const (
	hourInSeconds = 3600
	hourInMillis  = hourInSeconds * 1000
)

// mcpHosts are the hosts that were tried, by name.
var mcpHosts = []mcpHost{
	{
		name: "claude-code", title: "Claude Code", file: ".mcp.json in the project", protocol: "2026-07-28", block: servers(nil),
		notes: []string{
			"claude -p refuses its tools without --allowedTools mcp__limpet, behind the prompt",
			"its terminal moves a call to a task after 120 s: limpet stops a command at 110 s, unless the call says otherwise",
		},
	},
	{
		name: "codex", title: "Codex CLI", file: "~/.codex/config.toml", protocol: "2025-06-18",
		env: []string{"HOME", "LANG", "PATH", "SHELL", "TERM", "USER"},
		block: func(argv []string) any {
			return fmt.Sprintf("[mcp_servers.limpet]\ncommand = %s\nargs = %s\ntool_timeout_sec = %d\ndefault_tools_approval_mode = \"approve\"\nsupports_parallel_tool_calls = true\n",
				quotedJSON(argv[0]), quotedJSON(argv[1:]), hourInSeconds)
		},
		notes: []string{
			"Codex's own sandbox does not hold limpet: what an agent may do is said by limpet's --sandbox alone",
			`without default_tools_approval_mode = "approve" codex exec refuses run_command`,
		},
	},
	{
		name: "gemini", title: "Gemini CLI", file: ".gemini/settings.json in the project, or ~/.gemini/settings.json", protocol: "2025-06-18",
		block: servers(func(s *server) { s.Timeout, s.Trust = hourInMillis, true }),
		notes: []string{
			`without "trust" gemini -p does not offer the tools at all`,
			"in a folder that it was not told to trust it reads no settings: GEMINI_CLI_TRUST_WORKSPACE=true does that for once",
		},
	},
	{
		name: "opencode", title: "opencode", file: "opencode.json in the project, or ~/.config/opencode/opencode.json", protocol: "2025-11-25",
		block: func(argv []string) any {
			return map[string]any{
				"$schema": "https://opencode.ai/config.json",
				"mcp":     map[string]*server{"limpet": {Type: "local", Command: argv}},
			}
		},
	},
	{
		name: "qwen", title: "Qwen Code", file: ".qwen/settings.json in the project, or ~/.qwen/settings.json", protocol: "2025-11-25",
		block: servers(func(s *server) { s.Timeout, s.Trust = hourInMillis, true }),
		notes: []string{"qwen -p refuses its tools without --yolo", "it starts limpet again at the second call in a row that it gives up: sessions are lost then"},
	},
	{
		name: "copilot", title: "Copilot CLI", file: "~/.copilot/mcp-config.json", protocol: "2026-07-28",
		block: servers(func(s *server) { s.Type, s.Tools = "local", []string{"*"} }),
		notes: []string{"copilot -p refuses its tools without --allow-all-tools"},
	},
	{
		name: "cline", title: "Cline CLI", file: "~/.cline/data/settings/cline_mcp_settings.json", protocol: "2024-11-05",
		block: servers(func(s *server) { s.Timeout = hourInSeconds }),
		notes: []string{"without its timeout it gives a call up after a minute, and does not say so: limpet answers it within 50 s"},
	},
	{
		name: "continue", title: "Continue CLI", file: "~/.continue/config.yaml", protocol: "2025-11-25",
		block: func(argv []string) any {
			return fmt.Sprintf("mcpServers:\n  - name: limpet\n    command: %s\n    args: %s\n", quotedJSON(argv[0]), quotedJSON(argv[1:]))
		},
		notes: []string{"it gives a call up after a minute: limpet answers it within 50 s"},
	},
}

// hostNamed returns the host of that name.
func hostNamed(cmd *cobra.Command, name string) (mcpHost, error) {
	for _, host := range mcpHosts {
		if host.name == name {
			return host, nil
		}
	}
	return mcpHost{}, usagef(cmd, "there is no host %q: there are %s", name, hostNames())
}

func hostNames() string {
	var names []string
	for _, host := range mcpHosts {
		names = append(names, host.name)
	}
	return strings.Join(names, ", ")
}

// text is the block of the host's configuration by which it starts the command.
func (h *mcpHost) text(argv []string) (string, error) {
	block := h.block(argv)
	if text, ok := block.(string); ok {
		return text, nil
	}
	b, err := json.MarshalIndent(block, "", "  ")
	return string(b) + "\n", err
}

// quotedJSON is a string or a list of strings as JSON has it, and so do TOML and YAML.
func quotedJSON(value any) string {
	b, err := json.Marshal(value)
	if err != nil {
		return strconv.Quote(fmt.Sprint(value)) // It cannot be: they are strings.
	}
	return string(b)
}
