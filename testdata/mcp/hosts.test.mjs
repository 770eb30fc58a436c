// Clients that do with calls and answers what hosts were seen to do (docs/mcp.md): they check
// arguments by the schema themselves, add their own, and let a model see a part of an answer.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Ajv } from "ajv";
import { connectStdio, kinds, textOf } from "./clients.mjs";
import { limpet } from "./limpet.mjs";
import { inPlace } from "./place.mjs";

const [kind] = kinds;

// asHost connects a client to a limpet as hosts start it, without data for tests.
function asHost(body, ...flags) {
	return inPlace(async (place) => {
		const caller = await connectStdio(kind, place, [limpet, "mcp", ...flags]);
		try {
			await body(caller, place);
		} finally {
			await caller.close();
		}
	});
}

// checking is a caller whose host checks arguments by the schema before limpet sees them.
async function checking(caller) {
	const ajv = new Ajv({ strict: false });
	const checks = new Map();
	for (const { name, inputSchema } of (await caller.client.listTools()).tools) {
		checks.set(name, ajv.compile(inputSchema));
	}
	return async (name, args) => {
		const check = checks.get(name);
		assert.ok(check(args), `the host refuses ${name} ${JSON.stringify(args)}: params ${ajv.errorsText(check.errors)}`);
		return textOf(await caller.call(name, args));
	};
}

// task is what a model does that was trained on the tools of other hosts. Required arguments it
// calls by the name that ours is, where the host insists on it.
async function task(call, work, ours) {
	const said = async (name, args, want) => {
		const text = await call(name, args);
		assert.match(text, want, `${name} ${JSON.stringify(args)}`);
		return text;
	};
	const bash = { description: "what people see", timeout: 120_000 };
	const command = ours ? "command" : "cmd";
	await said("run_command", { command: "mkdir -p app/src && cd app && echo 'exit 3' >src/try.sh", ...bash }, /^\[exit 0, new session default, in .*app\]/);
	await said("run_command", { command: "bash src/try.sh", ...bash, timeout: 600_000 }, /^\[exit 3\]/);
	await said("run_command", { command: "pwd", workdir: "src", timeout_ms: 10_000, justification: "to look" }, new RegExp(`^${work}/app/src\n`));
	await said("run_command", { [command]: "pwd", cwd: work, yield_time_ms: 10_000, max_output_tokens: 1000, tty: false }, new RegExp(`^${work}\n`));
	await said("run_command", { command: "pwd", wait_for_previous: true, timeout: 30 }, new RegExp(`^${work}/app\n`));
	await said("run_command", { command: "true", run_in_background: false, is_background: false }, /^\[exit 0\]/);

	const begun = await said("run_command", { command: "echo begun; cat; echo over", run_in_background: true, keep_stdin_open: true, ...bash }, /background as job/);
	const [id] = /job-[a-z0-9-]+/.exec(begun);
	const job = (known) => ({ [ours ? "job" : known]: id });
	await said("job_wait", { task_id: id, pattern: "begun", timeout: 30_000, wait_for_previous: true }, /begun/);
	await said("job_write", { ...job("session_id"), [ours ? "text" : "chars"]: "typed\n", yield_time_ms: 1000, max_output_tokens: 500 }, /6 bytes/);
	await said("job_wait", { job_id: id, pattern: "typed", timeout_ms: 30_000 }, /typed/);
	await said("job_poll", job("bash_id"), /begun\ntyped/);
	await said("job_log", { ...job("shell_id"), filter: "type" }, /typed/);
	await said("job_list", {}, new RegExp(id));
	await said("job_kill", job("shell_id"), new RegExp(id));

	const long = await said("run_command", { command: "seq 1 200000", max_output_tokens: 200 }, /bytes are left out/);
	const [result] = /\br\d+-[a-z0-9]+/.exec(long);
	await said("read_output", { [ours ? "result_id" : "id"]: result, filter: "^12345$" }, /12345/);

	const created = await said("terminal_create", { command: "cat", cwd: work, cols: 100 }, /running/);
	const [terminal] = /term-[a-z0-9-]+/.exec(created);
	const on = (known) => ({ [ours ? "terminal" : known]: terminal });
	await said("terminal_send_keys", { ...on("session_id"), chars: "hello\n", yield_time_ms: 500 }, /hello/);
	await said("terminal_screen", on("id"), /hello/);
	await said("terminal_kill", on("terminal_id"), new RegExp(terminal));
}

test("a model that knows other tools does its task", { timeout: 60_000 }, () =>
	asHost((caller, { work }) => task(async (name, args) => textOf(await caller.call(name, args)), work, false)));

// Of what a schema does not name it says nothing, so that limpet sees it.
test("a model that knows other tools does its task, though the host checks arguments", { timeout: 60_000 }, () =>
	asHost(async (caller, { work }) => task(await checking(caller), work, true)));

// What hosts let a model see of a long answer. Each keeps so much of its text.
const keepLines = (n) => (text) => text.split("\n").slice(0, n).join("\n");
const keepHead = (n) => (text) => (text.length > n ? text.slice(0, n) : text);
const cutMiddle = (n) => (text) => (text.length > n ? `${text.slice(0, n / 2)}\n...\n${text.slice(-n / 2)}` : text);
const keepEnds = (limit, head, tail) => (text) => (text.length > limit ? `${text.slice(0, head)}\n...\n${text.slice(-tail)}` : text);
const hosts = {
	"opencode, 2000 lines": keepLines(2000),
	"opencode, 50 KB": keepHead(50_000),
	"Claude Code, 2 KB of a file": (text) => (text.length > 50_000 ? text.slice(0, 2000) : text),
	"Qwen, 2 KB": (text) => (text.length > 24_000 ? text.slice(0, 2000) : text),
	"Copilot, 500 characters": (text) => (text.length > 20_000 ? text.slice(0, 500) : text),
	"Cline, 8000 characters": cutMiddle(8000),
	"Codex, an unknown model": cutMiddle(12_000),
	"Gemini, head and tail": keepEnds(40_000, 8000, 32_000),
};

test("a model sees how a long command ended, and where the rest is, whatever its host cuts", { timeout: 60_000 }, () =>
	asHost(async (caller) => {
		for (const command of ["seq 1 700000; (exit 3)", "yes 0123456789 | head -c 100000; (exit 3)", "head -c 300000 /dev/zero | tr '\\0' x; (exit 3)"]) {
			for (const max_output_bytes of [undefined, 32_768]) {
				const whole = textOf(await caller.call("run_command", { command, max_output_bytes }));
				assert.ok(whole.split("\n").length <= 1510, `${command}: ${whole.split("\n").length} lines`);
				for (const [name, sees] of Object.entries(hosts)) {
					const seen = sees(whole);
					const what = `${name}, ${max_output_bytes}, ${command}: ${seen.slice(0, 300)} ... ${seen.slice(-300)}`;
					assert.match(seen, /\[exit 3[,\]]/, what);
					const [, result] = /\b(r\d+-[a-z0-9]+)/.exec(seen) ?? assert.fail(what);
					assert.match(textOf(await caller.call("read_output", { result_id: result, tail_lines: 1 })), /of stdout/, what);
				}
			}
		}
	}),
);

// In limpet's own words, with the name of what is wrong.
test("what cannot be meant is refused by limpet, and not by the host", { timeout: 40_000 }, () =>
	asHost(async (caller) => {
		const call = await checking(caller);
		for (const [name, args, want] of [
			["run_command", { command: "pwd", colour: true }, /there is no argument "colour"/],
			["job_list", { colour: 1 }, /colour/],
			["terminal_kill", { terminal: "none", now: true }, /"now"/],
		]) {
			const text = await call(name, args);
			assert.match(text, /^nothing was done/, text);
			assert.match(text, want);
		}
	}),
);
