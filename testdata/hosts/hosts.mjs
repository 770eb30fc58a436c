// The hosts: how each is started, where it wants the block that limpet mcp config prints, and how its
// model calls limpet's tools. docs/mcp.md says the same for people.

import { anthropic } from "./anthropic.mjs";
import { chat } from "./chat.mjs";
import { gemini } from "./gemini.mjs";
import { prompt } from "./model.mjs";
import { responses } from "./responses.mjs";

// Each host has
//	api               what its model speaks
//	tool(name)        what its model knows a tool of limpet by
//	files(block, url) its configuration; a path that begins with ~ is in its home, any other in the project
//	commands(url)     what is run, one after the other: programs of its package
// and, where it is not as others are,
//	env(url)          what its environment has besides
//	search(names)     a {name, args} that its model calls first: it is told of few tools, and must ask for the others
//	call(name, args)  the {name, args} by which its model calls a tool
//	pictures          whether its model is shown pictures
//	stays             a process of its own that outlives it, by its command line
export const hosts = {
	"claude-code": {
		api: anthropic,
		tool: (name) => `mcp__limpet__${name}`,
		files: (block) => ({ ".mcp.json": block }),
		commands: () => [["claude", "-p", prompt, "--allowedTools", "mcp__limpet"]],
		env: (url) => ({
			ANTHROPIC_BASE_URL: url,
			ANTHROPIC_API_KEY: "none",
			CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
			DISABLE_AUTOUPDATER: "1",
		}),
		// It is told of two tools at once, since limpet asks for that.
		search: (names) => {
			const others = names.filter((name) => !/run_command|read_output/.test(name));
			return { name: "ToolSearch", args: { query: `select:${others.join(",")}` } };
		},
		pictures: true,
	},

	codex: {
		api: responses,
		tool: (name) => `mcp__limpet.${name}`,
		files: (block, url) => ({ "~/.codex/config.toml": codexSettings(url) + block }),
		commands: () => [["codex", "exec", "--skip-git-repo-check", prompt]],
		env: () => ({ STAND_IN_KEY: "none" }),
		pictures: true,
	},

	gemini: {
		api: gemini,
		tool: (name) => `mcp_limpet_${name}`,
		files: (block) => ({ ".gemini/settings.json": block, "~/.gemini/settings.json": geminiSettings("gemini-api-key") }),
		commands: () => [["gemini", "-m", "gemini-2.5-pro", "-p", prompt]],
		env: (url) => ({
			GEMINI_API_KEY: "none",
			GOOGLE_GEMINI_BASE_URL: url,
			GEMINI_CLI_NO_RELAUNCH: "true",
			GEMINI_CLI_TRUST_WORKSPACE: "true",
		}),
		pictures: true,
	},

	opencode: {
		api: chat,
		tool: (name) => `limpet_${name}`,
		files: (block, url) => ({ "opencode.json": block, "~/.config/opencode/opencode.json": opencodeSettings(url) }),
		commands: () => [["opencode", "run", "--print-logs", prompt]],
		env: () => ({ OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_LSP_DOWNLOAD: "1" }),
		pictures: true,
	},

	qwen: {
		api: chat,
		tool: (name) => `mcp__limpet__${name}`,
		files: (block) => ({ ".qwen/settings.json": block, "~/.qwen/settings.json": geminiSettings("openai") }),
		commands: () => [["qwen", "--yolo", "-p", prompt]],
		env: (url) => ({ OPENAI_API_KEY: "none", OPENAI_BASE_URL: `${url}/v1`, OPENAI_MODEL: "stand-in" }),
		search: (names) => ({ name: "tool_search", args: { query: `select:${names.join(",")}` } }),
		call: (name, args) => ({ name: "tool_call", args: { name, arguments: args } }),
	},

	copilot: {
		api: chat,
		tool: (name) => `limpet-${name}`,
		files: (block) => ({ "~/.copilot/mcp-config.json": block }),
		commands: () => [["copilot", "-p", prompt, "--allow-all-tools", "--disable-builtin-mcps"]],
		env: (url) => ({
			COPILOT_PROVIDER_BASE_URL: `${url}/v1`,
			COPILOT_PROVIDER_TYPE: "openai",
			COPILOT_PROVIDER_API_KEY: "none",
			COPILOT_MODEL: "gpt-4o",
			COPILOT_OFFLINE: "true",
			COPILOT_AUTO_UPDATE: "false",
		}),
	},

	cline: {
		api: chat,
		tool: (name) => `limpet__${name}`,
		files: (block) => ({ "~/.cline/data/settings/cline_mcp_settings.json": block }),
		commands: (url) => [
			["cline", "auth", "-p", "openai", "-k", "none", "-m", "gpt-4o", "-b", `${url}/v1`],
			["cline", "--json", prompt],
		],
		stays: /--cline-hub-daemon/,
	},

	continue: {
		api: chat,
		tool: (name) => name,
		files: (block, url) => ({ "~/.continue/config.yaml": continueSettings(url) + block }),
		commands: () => [["cn", "--auto", "-p", prompt]],
		env: () => ({ CONTINUE_CLI_DISABLE_TELEMETRY: "1", CONTINUE_METRICS_ENABLED: "0" }),
	},
};

const codexSettings = (url) => `
model = "gpt-5.1-codex"
model_provider = "stand-in"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.stand-in]
name = "stand-in"
base_url = "${url}/v1"
wire_api = "responses"
env_key = "STAND_IN_KEY"
`;

// Qwen Code is made from Gemini CLI.
const geminiSettings = (selectedType) =>
	JSON.stringify({
		general: { disableAutoUpdate: true, enableAutoUpdate: false },
		privacy: { usageStatisticsEnabled: false },
		telemetry: { enabled: false },
		security: { auth: { selectedType } },
	});

const opencodeSettings = (url) =>
	JSON.stringify({
		autoupdate: false,
		share: "disabled",
		model: "local/stand-in",
		small_model: "local/stand-in",
		provider: {
			local: {
				npm: "@ai-sdk/openai-compatible",
				options: { baseURL: `${url}/v1`, apiKey: "none" },
				models: {
					"stand-in": {
						tool_call: true,
						attachment: true,
						modalities: { input: ["text", "image"], output: ["text"] },
						limit: { context: 1_000_000, output: 8000 },
					},
				},
			},
		},
	});

const continueSettings = (url) => `
name: stand-in
version: 0.0.1
schema: v1
models:
  - name: stand-in
    provider: openai
    model: gpt-4o
    apiBase: ${url}/v1
    apiKey: none
    roles: [chat]
    capabilities: [tool_use]
`;
