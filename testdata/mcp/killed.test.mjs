// Clients and limpets that end in the middle of a call.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";
import { connectHTTP, kinds } from "./clients.mjs";
import { limpet, startHTTP } from "./limpet.mjs";
import { gone, inPlace, patience, processes, until } from "./place.mjs";

const victim = new URL("victim.mjs", import.meta.url).pathname;

// startVictim starts a client that is in the middle of a call when this returns.
async function startVictim(place, kind, url = "", token = "") {
	const client = spawn(process.execPath, [victim, kind.name], {
		env: { ...place.env, LIMPET: limpet, VICTIM_PLACE: JSON.stringify(place), VICTIM_URL: url, VICTIM_TOKEN: token },
		stdio: ["ignore", "pipe", "inherit"],
	});
	const lines = createInterface({ input: client.stdout })[Symbol.asyncIterator]();
	const first = await Promise.race([lines.next(), overdue("the client's first line")]);
	assert.equal(first.value, "in the middle of a call");
	return client;
}

function overdue(what) {
	return new Promise((_, reject) => setTimeout(reject, patience, new Error(`it did not come: ${what}`)).unref());
}

describe("killed", { concurrency: 4 }, () => {
	for (const kind of kinds) {
		test(`${kind.name}, in the middle of a call, over stdio`, { timeout: 40_000 }, () =>
			inPlace(async (place) => {
				const client = await startVictim(place, kind);
				const commands = processes(place.mark).map(({ command }) => command);
				assert.ok(commands.includes(`${limpet} mcp --structured`), `limpet runs: ${commands.join("\n")}`);
				client.kill("SIGKILL");
				await gone(place.mark);
			}),
		);

		test(`${kind.name}, in the middle of a call, over HTTP`, { timeout: 40_000 }, () =>
			inPlace(async (place) => {
				const server = await startHTTP(place);
				const client = await startVictim(place, kind, server.url, server.token);
				client.kill("SIGKILL");
				await until("the client is gone", () => client.signalCode === "SIGKILL");

				// The next client finds the session, with what runs there.
				const caller = await connectHTTP(kind, server);
				const { jobs } = await caller.done("job_list", { state: "running" });
				assert.equal(jobs.length, 1);
				const { terminals } = await caller.done("terminal_list", { state: "running" });
				assert.equal(terminals.length, 1);
				await caller.done("interrupt");
				assert.equal((await caller.run("echo $x")).stdout, "kept\n");
				await caller.close();
				await server.stop();
			}),
		);
	}

	test("limpet itself, in the middle of a call", { timeout: 40_000 }, () =>
		inPlace(async (place) => {
			const server = await startHTTP(place);
			const client = await startVictim(place, kinds[0], server.url, server.token);
			process.kill(server.pid, "SIGKILL");
			client.kill("SIGKILL");
			await gone(place.mark);
		}),
	);
});
