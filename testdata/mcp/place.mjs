// Where a test's limpet lives: a home of its own, and a mark on everything that
// comes of it, by which whatever stays behind is found.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

// patience bounds what should take no time, in milliseconds: a generous bound
// for a hang, and no measure of anything.
export const patience = 20_000;

// until waits for what probe returns to be truthy, and returns it.
export async function until(what, probe, bound = patience) {
	const end = Date.now() + bound;
	for (;;) {
		const got = await probe();
		if (got) return got;
		assert.ok(Date.now() < end, `it was not so within ${bound / 1000} s: ${what}`);
		await sleep(20);
	}
}

// processes lists the living processes that have mark in their command line or
// their environment. A zombie has neither.
export function processes(mark) {
	const found = [];
	for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
		const command = read(`/proc/${pid}/cmdline`);
		if (command.includes(mark) || read(`/proc/${pid}/environ`).includes(mark)) {
			found.push({ pid: Number(pid), command: command.replaceAll("\0", " ").trim() });
		}
	}
	return found;
}

// read reads a file that may be gone by now, or another user's.
function read(path) {
	try {
		return readFileSync(path, "latin1");
	} catch {
		return "";
	}
}

// inPlace gives body a place for a limpet, and afterwards sees that nothing of it
// stays, no process and no directory. A process that does is killed, by its mark,
// and fails the test.
export async function inPlace(body) {
	const root = mkdtempSync(join(tmpdir(), "limpet-mcp-"));
	const mark = basename(root); // HOME has it, which a host passes on that passes on little.
	const dirs = Object.fromEntries(["home", "state", "run", "work"].map((name) => [name, join(root, name)]));
	for (const dir of Object.values(dirs)) mkdirSync(dir, { mode: 0o700 });
	const said = join(root, "stderr");
	const place = {
		...dirs,
		mark,
		// What limpet says on its stderr goes to a file, and is shown if the test fails.
		stderr: openSync(said, "a"),
		said: () => read(said),
		env: {
			PATH: process.env.PATH,
			HOME: dirs.home,
			XDG_STATE_HOME: dirs.state,
			XDG_RUNTIME_DIR: dirs.run,
			LC_ALL: "C.UTF-8",
		},
	};
	try {
		await body(place);
		await gone(mark);
		// The directory of this user stays, for the next limpet.
		const left = () => below(dirs.run).filter((name) => name !== `limpet-${process.getuid()}`);
		await until("no directory is left", () => left().length === 0).catch((error) => {
			throw new Error(`${error.message}:\n${left().join("\n")}`);
		});
	} catch (error) {
		if (place.said()) console.error(`limpet said:\n${place.said()}`);
		throw error;
	} finally {
		for (const { pid } of processes(mark)) kill(pid);
		// What was killed may be about to write still.
		rmSync(root, { recursive: true, force: true, maxRetries: 10 });
	}
}

// below lists what is below a directory. What goes while it is listed makes it begin again: that is what
// a guard does which cleans up just now.
function below(dir) {
	for (;;) {
		try {
			return readdirSync(dir, { recursive: true });
		} catch (error) {
			if (error.code !== "ENOENT" || error.path === dir) throw error;
		}
	}
}

// gone waits until no process has mark.
export async function gone(mark) {
	await until("no process is left", () => processes(mark).length === 0).catch((error) => {
		const left = processes(mark).map(({ pid, command }) => `${pid} ${command}`);
		throw new Error(`${error.message}:\n${left.join("\n")}`);
	});
}

// kill kills a process that may have ended by now.
export function kill(pid) {
	try {
		process.kill(pid, "SIGKILL");
	} catch {
		// It ended by itself.
	}
}
