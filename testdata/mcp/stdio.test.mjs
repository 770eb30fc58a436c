// What is said of stdio alone: whose the streams are, and when limpet ends.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { connectStdio, kinds } from "./clients.mjs";
import { limpet } from "./limpet.mjs";
import { inPlace, processes, until } from "./place.mjs";

test("limpet mcp ends when its stdin ends", { timeout: 40_000 }, () =>
	inPlace(async (place) => {
		const server = spawn(limpet, ["mcp"], { cwd: place.work, env: place.env, stdio: ["pipe", "pipe", place.stderr] });
		server.stdin.end();
		await until("it ends", () => server.exitCode !== null);
		assert.equal(server.exitCode, 0);
		assert.equal(server.stdout.read(), null, "it said nothing");
	}),
);

test("no child has the protocol's streams", { timeout: 40_000 }, () =>
	inPlace(async (place) => {
		// limpet takes the streams elsewhere: what they are is seen before.
		const note = 'in=$(readlink /proc/$$/fd/0) out=$(readlink /proc/$$/fd/1); echo "$in $out" >streams; exec "$@"';
		const caller = await connectStdio(kinds[0], place, ["sh", "-c", note, "sh", limpet, "mcp", "--structured"]);
		await caller.run("sleep 600 &");
		await caller.run("sleep 600", { background: true, keep_stdin_open: true });
		await caller.done("terminal_create", { argv: ["sleep", "600"] });
		const { pid } = caller.transport;
		const streams = readFileSync(join(place.work, "streams"), "utf8").trim().split(" ");
		assert.ok(streams.length === 2 && streams.every((stream) => opened(pid).includes(stream)), "limpet has both");
		const children = processes(place.mark).filter((each) => each.pid !== pid);
		assert.ok(children.filter(({ command }) => command === "sleep 600").length === 3, "all three run");
		for (const child of children) {
			for (const file of opened(child.pid)) assert.ok(!streams.includes(file), `${child.command} has ${file}`);
		}

		// Nor does what they ask of the terminal, or of their own streams, go there.
		const { stdout } = await caller.run("cat; echo x >/dev/stdout; echo x >/dev/tty; read -r y </dev/tty; echo $y");
		assert.equal(stdout, "x\n\n");
		await caller.close();
	}),
);

// opened lists what a process has open. It may have ended by now.
function opened(pid) {
	try {
		return readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
	} catch {
		return [];
	}
}
