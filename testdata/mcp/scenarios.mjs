// What every client shall find, whatever it is and however it is connected. Each
// takes a caller (clients.mjs) that is connected to a limpet of its own, and the
// place where that lives.

import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as jobs from "./scenarios_jobs.mjs";
import * as terminals from "./scenarios_terminals.mjs";
import { gone, processes, until } from "./place.mjs";
import { textOf } from "./clients.mjs";

const groups = {
	shell: ["run_command", "read_output", "interrupt"],
	sessions: ["session_list", "session_close", "session_fork", "session_checkpoint", "session_rollback"],
	jobs: ["job_list", "job_poll", "job_log", "job_wait", "job_kill", "job_write", "job_submit", "job_close"],
	terminals: [
		"terminal_create",
		"terminal_send_keys",
		"terminal_screen",
		"terminal_capture",
		"terminal_wait",
		"terminal_resize",
		"terminal_kill",
		"terminal_list",
	],
};
// Hosts may call what only reads without asking, and ask before what destroys.
const reading = ["read_output", "session_list", "job_list", "job_log", "terminal_screen", "terminal_capture", "terminal_list"];
const destroying = ["run_command", "session_close", "job_kill", "terminal_kill"];

async function listsItsTools(caller) {
	const { tools } = await caller.client.listTools();
	assert.deepEqual(tools.map(({ name }) => name).sort(), Object.values(groups).flat().sort());
	for (const { name, description, inputSchema, outputSchema, annotations } of tools) {
		assert.ok(description?.length > 20, `${name} says when to use it`);
		assert.equal(inputSchema?.type, "object", `${name} has an input schema`);
		assert.ok(!("additionalProperties" in inputSchema), `${name}: hosts that check it say no name of what they refuse`);
		assert.equal(outputSchema?.type, "object", `${name} has an output schema`);
		assert.ok(annotations, `${name} has annotations`);
		if (reading.includes(name)) assert.equal(annotations.readOnlyHint, true, `${name} only reads`);
		if (destroying.includes(name)) assert.notEqual(annotations.destructiveHint, false, `${name} destroys`);
	}
	assert.equal(caller.revision(), caller.kind.spoken);
}

async function keepsState(caller, { work }) {
	await caller.run("mkdir deep && cd deep; x=1 a=(2 3); export y=4; f() { echo f $x; }");
	const result = await caller.run("f; echo ${a[1]} $(printenv y); pwd; echo to stderr >&2");
	assert.equal(result.stdout, `f 1\n3 4\n${work}/deep\n`);
	assert.equal(result.stderr, "to stderr\n");
	assert.equal(result.dir, `${work}/deep`);
	assert.equal(result.session, "default");

	const other = await caller.run("echo ${x-unset}; pwd", { session: "other" });
	assert.equal(other.stdout, `unset\n${work}\n`);
}

async function exitCodesAreResults(caller) {
	const three = await caller.run("echo before; (exit 3)");
	assert.deepEqual([three.status, three.exit_code, three.stdout], ["exited", 3, "before\n"]);
	const missing = await caller.run("no-such-program");
	assert.deepEqual([missing.status, missing.exit_code], ["exited", 127]);
	assert.match(missing.stderr, /no-such-program: command not found/);
	const broken = await caller.run("echo 'unclosed");
	assert.deepEqual([broken.status, broken.exit_code], ["exited", 2]);

	await caller.run("x=kept");
	await caller.done("session_checkpoint", { checkpoint: "kept" }); // A kill loses what was not saved yet.
	const left = await caller.run("exit 7");
	assert.deepEqual([left.status, left.exit_code], ["exited", 7]);
	const died = await caller.run("bash -c 'kill -9 $PPID'");
	assert.equal(died.status, "died");
	assert.equal((await caller.run("echo $x")).stdout, "kept\n");
}

async function timeoutsAreResults(caller, { work }) {
	const args = { timeout_seconds: 2 };
	const late = await caller.run("x=kept; echo before; sleep 600; touch never", args);
	assert.deepEqual([late.status, late.stopped_by, late.exit_code, late.stdout], ["stopped", "timeout", 124, "before\n"]);
	const idle = await caller.run("echo before; sleep 600; touch never", { idle_timeout_seconds: 2 });
	assert.deepEqual([idle.status, idle.stopped_by, idle.stdout], ["stopped", "idle_timeout", "before\n"]);
	assert.equal((await caller.run("echo $x")).stdout, "kept\n");
	assert.ok(!existsSync(join(work, "never")));
}

async function boundsItsOutput(caller) {
	const result = await caller.run("seq 100000; printf '\\e[1mbold\\e[0m\\n10%%\\r20%%\\rdone\\n' >&2", { max_output_bytes: 2000 });
	assert.ok(result.stdout.length + result.stderr.length < 3000, "the output is bounded");
	assert.equal(result.stdout_bytes, 588895);
	assert.ok(result.stdout_omitted > 580000, "it says how much is left out");
	assert.match(result.stdout, /^1\n2\n/);
	assert.match(result.stdout, /\n99999\n100000\n$/);
	assert.equal(result.stderr, "bold\ndone\n");

	const { result_id } = result;
	const range = await caller.done("read_output", { result_id, offset: 0, bytes: 6 });
	assert.deepEqual([range.text, range.next_offset, range.total_bytes], ["1\n2\n3\n", 6, 588895]);
	assert.equal((await caller.done("read_output", { result_id, tail_lines: 2 })).text, "99999\n100000\n");
	const found = await caller.done("read_output", { result_id, pattern: "^7777.$", max_matches: 3 });
	assert.deepEqual(found.matches.map(({ text }) => text), ["77770", "77771", "77772"]);
	assert.match(await caller.fails("read_output", { result_id: "r9999" }), /r9999/);
}

async function tellsProgress(caller, { work }) {
	const told = [];
	const onprogress = (progress) => {
		told.push(progress);
		if (progress.message?.includes("the last line so far")) writeFileSync(join(work, "go"), "");
	};
	// It ends when the client has heard of its output, and not before.
	const command = "echo the last line so far; until [ -e go ]; do sleep 0.05; done; echo end";
	const result = await caller.run(command, {}, { onprogress });
	assert.equal(result.stdout, "the last line so far\nend\n");
	for (const { message } of told) assert.match(message, /\d\s*m?s/, "it says the elapsed time");
	const steps = told.map(({ progress }) => progress);
	assert.deepEqual(steps, [...new Set(steps)].sort((a, b) => a - b), "progress only grows");
}

async function cancelInterrupts(caller, { work, mark }) {
	await caller.run("x=kept; f() { echo f $x; }");
	const gaveUp = new AbortController();
	const sleeper = `${mark}-sleeper`;
	const command = `x=changed; touch started; (exec -a ${sleeper} sleep 600); touch ran`;
	const call = caller.run(command, {}, { signal: gaveUp.signal });
	call.catch(() => {}); // It is looked at below.
	await until("the command sleeps", () => existsSync(join(work, "started")) && processes(sleeper).length > 0);
	gaveUp.abort();
	await assert.rejects(call);
	await gone(sleeper);

	const later = await caller.run("f; echo $x");
	assert.equal(later.stdout, "f changed\nchanged\n");
	assert.equal(later.restart, undefined, "it is the same bash");
	assert.ok(!existsSync(join(work, "ran")), "what came behind never ran");
}

async function interruptsWhatRuns(caller, { work }) {
	await caller.run("x=1");
	assert.equal((await caller.done("interrupt")).interrupted, false, "nothing runs");
	const call = caller.run("x=kept; echo before; touch started; sleep 600; touch ran");
	await until("the command runs", () => existsSync(join(work, "started")));
	const { sessions } = await caller.done("session_list");
	assert.deepEqual(sessions.map(({ name, state }) => [name, state]), [["default", "busy"]]);

	assert.equal((await caller.done("interrupt")).interrupted, true);
	const result = await call;
	assert.deepEqual([result.status, result.stopped_by, result.stdout], ["stopped", "interrupted", "before\n"]);
	assert.equal((await caller.run("echo $x")).stdout, "kept\n");
	assert.ok(!existsSync(join(work, "ran")));
}

async function takesStdinAndADirectory(caller, { work }) {
	await caller.run("mkdir deep; export y=1");
	const fed = await caller.run("cat; echo $y; pwd", { stdin: "fed\n", dir: join(work, "deep") });
	assert.equal(fed.stdout, `fed\n1\n${work}/deep\n`);
	const merged = await caller.run("echo 1; echo 2 >&2; echo 3; cat", { merge_stderr: true });
	assert.deepEqual([merged.stdout, merged.stderr], ["1\n2\n3\n", ""]);
	assert.equal(merged.dir, work, "the session stays where it was");
}

async function sessionsForkAndRollBack(caller) {
	await caller.run("x=1");
	await caller.done("session_fork", { session: "default", new_session: "fork" });
	await caller.run("x=2", { session: "fork" });
	assert.equal((await caller.run("echo $x")).stdout, "1\n");

	const { checkpoints } = await caller.done("session_checkpoint", { checkpoint: "before" });
	assert.deepEqual(checkpoints, ["before"]);
	await caller.run("x=3; cd /");
	await caller.done("session_rollback", { checkpoint: "before" });
	assert.equal((await caller.run("echo $x; pwd")).stdout, `1\n${(await caller.run("pwd", { session: "fork" })).dir}\n`);

	assert.equal((await caller.done("session_close", { session: "fork" })).closed, true);
	const { sessions } = await caller.done("session_list");
	assert.deepEqual(sessions.map(({ name }) => name), ["default"]);
}

async function badArgumentsAreResults(caller) {
	assert.match(await caller.wrong("run_command", {}), /command/);
	assert.match(await caller.wrong("run_command", { command: "true", colour: "red" }), /colour/);
	assert.match(await caller.wrong("run_command", { command: 5 }), /command/);
	assert.match(await caller.wrong("run_command", { command: "true", timeout_seconds: "soon" }), /timeout_seconds/);
	assert.match(await caller.wrong("run_command", { command: "true", timeout_seconds: -1 }), /timeout_seconds/);
	assert.match(await caller.wrong("run_command", { command: "true", on_timeout: "panic" }), /on_timeout/);
	assert.match(await caller.wrong("job_wait", { jobs: [], pattern: "(" }), /pattern/);
	assert.match(await caller.wrong("job_poll", {}), /job/);
	assert.match(await caller.refuses("no_such_tool", {}), /no_such_tool/);

	const { terminal } = await caller.done("terminal_create", { argv: ["cat"] });
	assert.match(await caller.wrong("terminal_send_keys", { terminal: terminal.terminal, keys: ["C-Nonsense"] }), /C-Nonsense/);
	assert.match(await caller.wrong("terminal_resize", { terminal: terminal.terminal, columns: 0, rows: 10 }), /columns/);

	// What is not there is a result, from which a model learns.
	for (const name of ["job_poll", "job_kill", "job_log"]) {
		assert.match(await caller.fails(name, { job: "no-such-job" }), /no-such-job/);
	}
	assert.match(await caller.fails("terminal_screen", { terminal: "no-such" }), /no-such/);
	assert.match(await caller.fails("run_command", { command: "true", dir: "/no/such/dir" }), /\/no\/such\/dir/);
	assert.equal((await caller.run("echo fine")).stdout, "fine\n");
}

async function leavesNothingWhenTheClientGoes(caller, { mark }) {
	await caller.run("sleep 601 & disown; setsid sleep 602 &");
	await caller.run("sleep 603", { background: true });
	await caller.done("terminal_create", { argv: ["sleep", "604"] });
	const sleepers = processes(mark).filter(({ command }) => /^sleep 60\d/.test(command));
	assert.equal(sleepers.length, 4, "all four run");
	// inPlace does the rest: no process may stay.
}

// textAndStructureAgree is for hosts that show one to the model and use the other.
async function textAndStructureAgree(caller) {
	const result = await caller.call("run_command", { command: "echo on stdout; echo on stderr >&2; (exit 9)" });
	const text = textOf(result);
	for (const part of ["on stdout", "on stderr", "9"]) assert.ok(text.includes(part), `${part} is in ${text}`);
	assert.equal(result.structuredContent.exit_code, 9);
}

export const scenarios = {
	"lists its tools": listsItsTools,
	"keeps state": keepsState,
	"exit codes are results": exitCodesAreResults,
	"timeouts are results": timeoutsAreResults,
	"says in text what the structure says": textAndStructureAgree,
	"bounds its output": boundsItsOutput,
	"tells progress": tellsProgress,
	"a cancelled call is interrupted": cancelInterrupts,
	"interrupts what runs": interruptsWhatRuns,
	"takes stdin and a directory": takesStdinAndADirectory,
	"sessions fork and roll back": sessionsForkAndRollBack,
	"bad arguments are results": badArgumentsAreResults,
	"leaves nothing when the client goes": leavesNothingWhenTheClientGoes,
	...jobs.scenarios,
	...terminals.scenarios,
};
