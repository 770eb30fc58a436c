// One task in each host, by what its model was given.

import assert from "node:assert/strict";
import { test } from "node:test";
import { inPlace } from "../mcp/place.mjs";
import { drive, patience } from "./drive.mjs";
import { hosts } from "./hosts.mjs";

// LIMPET_HOSTS has the hosts that are installed: a line each, the name and the directory.
const installed = process.env.LIMPET_HOSTS.trim().split("\n").map((line) => line.split(/ (.*)/));

// last is the last match of pattern in what the model was given so far.
function last(answers, pattern) {
	const found = answers.flatMap(({ text }) => [...text.matchAll(new RegExp(pattern, "g"))]);
	return found.at(-1)?.[0] ?? `nothing that matches ${pattern}`;
}

const job = /\bjob-[a-z0-9-]+/;
const terminal = /\bterm-[a-z0-9-]+/;
const result = /\br\d+-[a-z0-9]+/;

// taskIn is what the model does in the directory work, and what its answers must have.
// Arguments that are not limpet's are those that models know from other tools, and hosts add.
function taskIn(work) {
	const run = (command, args = {}) => ({ tool: "run_command", args: { command, ...args } });
	return [
		{ ...run("mkdir sub && cd sub && x=kept", { description: "a place to work", timeout: 30_000 }), want: /\[exit 0, new session default, in .*\/sub\]/ },
		{ ...run("pwd; echo x=$x", { wait_for_previous: true }), want: new RegExp(`${work}/sub\\b.*x=kept`, "s") },
		{ ...run("pwd", { workdir: work, timeout: 30_000 }), want: new RegExp(`${work}(?!/)`) },
		{ ...run("(exit 3)"), want: /\[exit 3\]/ },
		// Longer than what any host lets through.
		{ ...run("seq 1 700000; (exit 3)"), want: /\[exit 3\b.*\br\d+-/s },
		{ tool: "read_output", args: (answers) => ({ result_id: last(answers, result), tail_lines: 2 }), want: /699999.*700000/s },
		{ ...run("echo served; exec sleep 900", { background: true }), want: job },
		{ tool: "job_wait", args: (answers) => ({ jobs: [last(answers, job)], pattern: "served" }), want: /\[matched after/ },
		{ tool: "job_kill", args: (answers) => ({ job: last(answers, job) }), want: /stopped on request/ },
		{ tool: "terminal_create", args: { command: "printf '\\033[31mred\\033[0m\\n'; exec cat" }, want: terminal },
		{ tool: "terminal_screen", args: (answers) => ({ terminal: last(answers, terminal), format: "png" }), want: /red/, picture: true },
		// These, and the terminal, are for limpet to end with the host.
		{ ...run("exec sleep 901", { background: true }), want: job },
		{ ...run("setsid sleep 902 & sleep 903 & disown; echo over"), want: /over/ },
	];
}

for (const [name, dir] of installed) {
	const host = hosts[name];
	test(`${name} does its task, and leaves nothing behind`, { timeout: 2 * patience }, () =>
		inPlace(async (place) => {
			const task = taskIn(place.work);
			const answers = await drive(name, host, dir, place, task);
			for (const [i, { text, pictures }] of answers.entries()) {
				const { tool, want, picture } = task[i];
				assert.match(text, want, `call ${i + 1}, ${tool}: its model was given ${text.slice(0, 2000)}`);
				assert.equal(pictures, picture && host.pictures ? 1 : 0, `call ${i + 1}, ${tool}: pictures for the model`);
			}
		}),
	);
}
