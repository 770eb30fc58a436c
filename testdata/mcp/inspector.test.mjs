// The inspector's command line: one process, one request.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";
import { limpet, startHTTP } from "./limpet.mjs";
import { inPlace } from "./place.mjs";

const cli = new URL(import.meta.resolve("@modelcontextprotocol/inspector/cli/build/cli.js")).pathname;
const bearer = import.meta.resolve("./bearer.mjs");

// inspect runs the inspector against target and returns the result that it
// prints, or rejects with what it says.
function inspect(place, target, ...args) {
	const env = { ...place.env, ...(target.token && { NODE_OPTIONS: `--import=${bearer}`, BEARER: target.token }) };
	const argv = [cli, "--cli", ...(target.url ? [target.url, "--transport", "http"] : [limpet, "mcp", "--structured"]), ...args];
	return new Promise((resolve, reject) => {
		execFile(process.execPath, argv, { cwd: place.work, env, timeout: 30_000 }, (error, stdout, stderr) =>
			error ? reject(new Error(`${error.message}\n${stdout}${stderr}`)) : resolve(JSON.parse(stdout)),
		);
	});
}

function call(place, target, name, ...args) {
	const pairs = args.flatMap((arg) => ["--tool-arg", arg]);
	return inspect(place, target, "--method", "tools/call", "--tool-name", name, ...pairs);
}

// Each call is a process, which takes seconds to start on a busy machine.
const inspected = (name, body) => test(name, { timeout: 120_000 }, () => inPlace(body));

describe("inspector 0.15.0 --cli", { concurrency: 4 }, () => {
	inspected("lists tools over stdio", async (place) => {
		const { tools } = await inspect(place, {}, "--method", "tools/list");
		const names = tools.map(({ name }) => name);
		for (const name of ["run_command", "job_wait", "terminal_screen", "session_fork"]) assert.ok(names.includes(name), name);
		for (const tool of tools) assert.ok(tool.description && tool.inputSchema && tool.outputSchema && tool.annotations, tool.name);
	});

	inspected("calls tools over stdio", async (place) => {
		const ran = await call(place, {}, "run_command", "command=echo hello; (exit 3)", "timeout_seconds=5", "merge_stderr=true");
		assert.deepEqual([ran.structuredContent.stdout, ran.structuredContent.exit_code], ["hello\n", 3]);
		assert.ok(!ran.isError);
		const killed = await call(place, {}, "job_kill", "job=no-such-job");
		assert.equal(killed.isError, true);
	});

	inspected("says what is wrong with arguments", async (place) => {
		for (const args of [["colour=red"], ["command=true", "colour=red"]]) {
			const wrong = await call(place, {}, "run_command", ...args);
			assert.equal(wrong.isError, true);
			assert.match(wrong.content[0].text, /there is no argument "colour"/);
		}
		await assert.rejects(call(place, {}, "no_such_tool"), /no_such_tool/);
	});

	inspected("lists resources over stdio", async (place) => {
		const { resourceTemplates } = await inspect(place, {}, "--method", "resources/templates/list");
		assert.equal(resourceTemplates.length, 2);
		const { resources } = await inspect(place, {}, "--method", "resources/list");
		assert.deepEqual(resources.map(({ uri }) => uri), ["limpet://sessions"]);
	});

	inspected("keeps state over HTTP, from one process to the next", async (place) => {
		const server = await startHTTP(place);
		const { tools } = await inspect(place, server, "--method", "tools/list");
		assert.ok(tools.length > 20);
		await call(place, server, "run_command", "command=mkdir deep; cd deep; x=kept");
		const ran = await call(place, server, "run_command", "command=echo $x; pwd");
		assert.equal(ran.structuredContent.stdout, `kept\n${place.work}/deep\n`);

		const started = await call(place, server, "run_command", "command=echo of the job", "background=true");
		const { job } = started.structuredContent.job;
		const waited = await call(place, server, "job_wait", `jobs=["${job}"]`);
		assert.equal(waited.structuredContent.reason, "exited");
		const { contents } = await inspect(place, server, "--method", "resources/read", "--uri", `limpet://jobs/${job}/log`);
		assert.equal(contents[0].text, "of the job\n");
		await server.stop();
	});

	inspected("is refused over HTTP without the token", async (place) => {
		const server = await startHTTP(place);
		await assert.rejects(inspect(place, { url: server.url }, "--method", "tools/list"), /token/);
		await assert.rejects(inspect(place, { url: server.url, token: "wrong" }, "--method", "tools/list"), /token/);
		await server.stop();
	});
});
