// Drives a host through a task, with a stand-in for its model, and the block of its configuration that
// limpet mcp config prints.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, openSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { limpet } from "../mcp/limpet.mjs";
import { kill, processes, until } from "../mcp/place.mjs";
import { startModel } from "./model.mjs";

// patience bounds the life of a host, in milliseconds.
export const patience = 180_000;

// drive has the host do task in place, and returns what its model was given for each of its calls:
// {text, pictures}. A task is a list of {tool, args}; args may be a function of the answers so far.
// Dir has the host's package.
export async function drive(name, host, dir, place, task) {
	const script = scriptOf(host, task);
	const model = await startModel(host.api, script);
	try {
		configure(name, host, place, model.url);
		const env = environmentOf(host, place, model.url);
		let said = "";
		for (const [program, ...args] of host.commands(model.url)) {
			const ended = await run(join(dir, "node_modules/.bin", program), args, place, env);
			said += ended.said;
			if (ended.how !== 0) model.troubles.push(`${program} ended with ${ended.how}`);
		}
		if (model.answers.length !== script.length) model.troubles.push(heard(model, script));
		if (model.troubles.length) throw new Error([...model.troubles, said].join("\n"));
		await nothingStays(host, place);
	} finally {
		model.close();
	}
	return model.answers.slice(host.search ? 1 : 0);
}

// heard is the last that the model was given.
function heard({ answers }, script) {
	const last = answers.length ? `, the last of them: ${answers.at(-1).text.slice(0, 1000)}` : "";
	return `its model was given ${answers.length} answers to ${script.length} calls${last}`;
}

// scriptOf is what the model calls.
function scriptOf(host, task) {
	const call = host.call ?? ((name, args) => ({ name, args }));
	const calls = task.map(({ tool, args }) => {
		const name = host.tool(tool);
		const given = typeof args === "function" ? args : () => args;
		return { name: call(name).name, args: (answers) => call(name, given(answers)).args };
	});
	if (!host.search) return calls;
	const { name, args } = host.search([...new Set(task.map(({ tool }) => host.tool(tool)))]);
	return [{ name, args: () => args }, ...calls];
}

// configure writes the host's files.
function configure(name, host, place, url) {
	const block = execFileSync(limpet, ["mcp", "config", name], { env: place.env, cwd: place.work, stdio: ["ignore", "pipe", "ignore"] });
	for (const [path, text] of Object.entries(host.files(block.toString(), url))) {
		const file = path.startsWith("~/") ? join(place.home, path.slice(2)) : join(place.work, path);
		mkdirSync(dirname(file), { recursive: true });
		writeFileSync(file, text);
	}
}

// environmentOf is that of a person, with nothing of the person who runs the test.
function environmentOf(host, place, url) {
	const tmp = join(place.home, "tmp");
	mkdirSync(tmp);
	const person = { USER: "limpet", SHELL: "/bin/bash", TERM: "xterm-256color", TMPDIR: tmp, NO_PROXY: "*" };
	return { ...place.env, ...person, ...host.env?.(url) };
}

// run runs a program to its end, and returns how it ended, and the end of what it said.
async function run(program, args, place, env) {
	const [out, err] = ["stdout", "stderr"].map((name) => join(place.home, name));
	const begun = Date.now();
	const child = spawn(program, args, { cwd: place.work, env, stdio: ["ignore", openSync(out, "w"), openSync(err, "w")] });
	const ended = new Promise((resolve, reject) => {
		child.once("error", reject);
		child.once("exit", (code, signal) => resolve(code ?? `${signal}, after ${Math.round((Date.now() - begun) / 1000)} s`));
	});
	const bound = setTimeout(() => child.kill("SIGKILL"), patience);
	const how = await ended.finally(() => clearTimeout(bound));
	return { how, said: `the end of its stdout:\n${endOf(out)}\nof its stderr:\n${endOf(err)}\n` };
}

const endOf = (file) => readFileSync(file, "utf8").slice(-3000);

// nothingStays waits until no process is left of those that the host has started, but for what the host
// lets live, and ends that. It removes the host's own runtime files.
async function nothingStays(host, place) {
	const left = () => processes(place.mark).filter(({ command }) => !host.stays?.test(command));
	await until("no process is left behind the host", () => left().length === 0).catch((error) => {
		throw new Error([error.message, ...left().map(({ pid, command }) => `${pid} ${command}`)].join("\n"));
	});
	for (const { pid } of processes(place.mark)) kill(pid);
	// Whether limpet leaves a directory there is looked at by inPlace.
	for (const name of readdirSync(place.run).filter((name) => !name.startsWith("limpet"))) {
		rmSync(join(place.run, name), { recursive: true });
	}
}
