// What every client shall find of background jobs, and of resources.

import assert from "node:assert/strict";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "./place.mjs";

async function runsJobs(caller) {
	const command = "echo ready; while read -r line; do echo got $line; done; echo end of input; sleep 600";
	const started = await caller.run(command, { background: true, keep_stdin_open: true });
	assert.equal(started.status, "background");
	const { job } = started.job;
	assert.ok(job, "it has an id");

	const ready = await caller.done("job_wait", { jobs: [job], pattern: "^ready$" });
	assert.deepEqual([ready.reason, ready.match.text, ready.job.state], ["matched", "ready", "running"]);
	await caller.done("job_submit", { job, text: "a line" });
	await caller.done("job_write", { job, text: "half a li" });
	await caller.done("job_write", { job, text: "ne\n" });
	await caller.done("job_close", { job });
	assert.equal((await caller.done("job_wait", { jobs: [job], pattern: "end of input" })).reason, "matched");

	const polled = await caller.done("job_poll", { job });
	assert.equal(polled.output, "ready\ngot a line\ngot half a line\nend of input\n");
	assert.equal((await caller.done("job_poll", { job })).output, "", "there is nothing new");
	assert.equal((await caller.done("job_poll", { job, since: 0 })).output, polled.output);
	assert.equal((await caller.done("job_log", { job, tail_lines: 1 })).text, "end of input\n");
	const { matches } = await caller.done("job_log", { job, pattern: "^got" });
	assert.deepEqual(matches.map(({ line, text }) => [line, text]), [[2, "got a line"], [3, "got half a line"]]);

	const running = await caller.done("job_list", { state: "running" });
	assert.deepEqual(running.jobs.map((each) => each.job), [job]);
	const killed = await caller.done("job_kill", { job });
	assert.equal(killed.killed, true);
	assert.notEqual(killed.job.state, "running");
	assert.deepEqual((await caller.done("job_list", { state: "running" })).jobs, []);
	assert.equal((await caller.done("job_list", { state: "finished" })).jobs.length, 1);
}

async function waitsForJobs(caller) {
	const { job } = await caller.run("echo out; exit 5", { background: true });
	const ended = await caller.done("job_wait", { jobs: [job.job] });
	assert.deepEqual([ended.reason, ended.job.exit_code, ended.output], ["exited", 5, "out\n"]);

	const slow = (await caller.run("echo on; sleep 600", { background: true })).job.job;
	assert.equal((await caller.done("job_wait", { jobs: [slow], silence_seconds: 0.2 })).reason, "silent");
	assert.equal((await caller.done("job_wait", { jobs: [slow], timeout_seconds: 0.2 })).reason, "timeout");
	const { exit_code } = await caller.run("echo the session is free");
	assert.equal(exit_code, 0);
}

async function goesOnInTheBackground(caller, { work }) {
	const command = "echo early; until [ -e go ]; do sleep 0.05; done; echo late; exit 4";
	const moved = await caller.run(command, { timeout_seconds: 2, on_timeout: "background" });
	assert.equal(moved.status, "background");
	assert.equal(moved.stdout, "early\n");
	const { job } = moved.job;
	assert.equal((await caller.run("echo the session is free")).stdout, "the session is free\n");
	writeFileSync(join(work, "go"), "");
	const ended = await caller.done("job_wait", { jobs: [job] });
	assert.deepEqual([ended.reason, ended.job.exit_code], ["exited", 4]);
	assert.equal((await caller.done("job_log", { job })).text, "early\nlate\n");
}

// All that takes long says how far it is. Each of these ends when the client has
// heard of it, and not before.
async function waitingTellsProgress(caller, { work }) {
	const heard = (name, line) => ({
		onprogress: ({ message }) => {
			if (message?.includes(line)) writeFileSync(join(work, name), "");
		},
	});
	const command = (name) => `echo ${name} so far; until [ -e ${name} ]; do sleep 0.05; done; echo ${name} ends`;
	const { job } = await caller.run(command("job"), { background: true });
	const { terminal } = await caller.done("terminal_create", { command: command("terminal") });
	const busy = caller.run(command("busy"), {}, heard("busy", "busy so far"));
	const [, waited, seen] = await Promise.all([
		busy,
		caller.done("job_wait", { jobs: [job.job] }, heard("job", "job so far")),
		caller.done("terminal_wait", { terminal: terminal.terminal, text: "terminal ends" }, heard("terminal", "terminal so far")),
	]);
	assert.equal(waited.output, "job so far\njob ends\n");
	assert.match(seen.screen.text, /terminal ends/);
}

// Cancelling job_wait ends the waiting, and not the job.
async function waitingCanBeCancelled(caller, { work }) {
	const command = "touch started; until [ -e go ]; do sleep 0.05; done; exit 6";
	const { job } = await caller.run(command, { background: true });
	await until("the job runs", () => existsSync(join(work, "started")));
	const gaveUp = new AbortController();
	const wait = caller.done("job_wait", { jobs: [job.job] }, { signal: gaveUp.signal });
	wait.catch(() => {}); // It is looked at below.
	assert.equal((await caller.done("job_poll", { job: job.job })).job.state, "running");
	gaveUp.abort();
	await assert.rejects(wait);
	assert.equal((await caller.done("job_poll", { job: job.job })).job.state, "running");
	writeFileSync(join(work, "go"), "");
	const ended = await caller.done("job_wait", { jobs: [job.job] });
	assert.deepEqual([ended.reason, ended.job.exit_code], ["exited", 6]);
}

async function showsResources(caller) {
	const { resourceTemplates } = await caller.client.listResourceTemplates();
	assert.deepEqual(resourceTemplates.map(({ uriTemplate }) => uriTemplate).sort(), [
		"limpet://jobs/{job}/log",
		"limpet://terminals/{terminal}/screen",
	]);

	const command = "echo first; while read -r line; do echo got $line; done";
	const { job } = await caller.run(command, { background: true, keep_stdin_open: true });
	const { terminal } = await caller.done("terminal_create", { argv: ["sh", "-c", "echo on the screen; cat"] });
	const log = `limpet://jobs/${job.job}/log`;
	const screen = `limpet://terminals/${terminal.terminal}/screen`;
	const { resources } = await caller.client.listResources();
	assert.deepEqual(resources.map(({ uri }) => uri).sort(), [log, "limpet://sessions", screen].sort());
	const text = async (uri) => {
		const { contents } = await caller.client.readResource({ uri });
		assert.deepEqual(contents.map(({ uri, mimeType }) => [uri, mimeType]), [[uri, "text/plain"]]);
		return contents[0].text;
	};
	await caller.done("job_wait", { jobs: [job.job], pattern: "first" });
	assert.equal(await text(log), "first\n");
	assert.match(await text(screen), /on the screen/);
	await assert.rejects(caller.client.readResource({ uri: "limpet://jobs/no-such-job/log" }), /not found/);

	const news = [];
	let lists = 0;
	await caller.watch(log, (uri) => news.push(uri), () => lists++);
	await caller.done("job_submit", { job: job.job, text: "hello" });
	await until("the log's news", () => news.includes(log));
	assert.deepEqual([...new Set(news)], [log], "nothing else was asked for");
	assert.match(await text(log), /got hello\n$/);

	const before = lists;
	await caller.run("true", { background: true });
	await until("that there are other resources", () => lists > before);
}

export const scenarios = {
	"runs jobs": runsJobs,
	"waits for jobs": waitsForJobs,
	"goes on in the background after the timeout": goesOnInTheBackground,
	"waiting tells progress": waitingTellsProgress,
	"waiting can be cancelled": waitingCanBeCancelled,
	"shows resources, and tells their news": showsResources,
};
