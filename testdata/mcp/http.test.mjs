// What is said of HTTP alone: who is let in, and what the next client finds.

import assert from "node:assert/strict";
import { statSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { describe, test } from "node:test";
import { connectHTTP, kinds } from "./clients.mjs";
import { startHTTP } from "./limpet.mjs";
import { inPlace } from "./place.mjs";

const initialize = {
	jsonrpc: "2.0",
	id: 1,
	method: "initialize",
	params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
};

// ask sends a request as it is, with headers that a fetch would not, and returns
// the status and the answer's headers.
function ask({ url, token }, headers = {}, method = "POST") {
	const body = method === "POST" ? JSON.stringify(initialize) : undefined;
	const all = {
		"Content-Type": "application/json",
		Accept: "application/json, text/event-stream",
		...(token && { Authorization: `Bearer ${token}` }),
		...headers,
	};
	return new Promise((resolve, reject) => {
		const sent = request(url, { method, headers: all }, (response) => {
			response.resume();
			response.destroy();
			resolve({ status: response.statusCode, headers: response.headers });
		});
		sent.on("error", reject);
		sent.end(body);
	});
}

const served = (name, body, options) =>
	test(name, { timeout: 40_000 }, () =>
		inPlace(async (place) => {
			const server = await startHTTP(place, options);
			await body(server, place);
			await server.stop();
		}),
	);

describe("limpet mcp --http", { concurrency: 4 }, () => {
	served("listens on the loopback, with a token that only its owner can read", async ({ url, file, token }, { state }) => {
		assert.match(url, /^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
		assert.equal(file, join(state, "limpet/mcp-token"));
		assert.equal(statSync(file).mode & 0o777, 0o600);
		assert.ok(token.length >= 32);
	});

	served("answers 401 without the token", async ({ url, token }) => {
		for (const method of ["POST", "GET", "DELETE"]) {
			const { status, headers } = await ask({ url }, {}, method);
			assert.equal(status, 401, method);
			assert.match(headers["www-authenticate"] ?? "", /^Bearer/);
		}
		for (const wrong of ["wrong", token.slice(1), `${token}x`]) {
			assert.equal((await ask({ url, token: wrong })).status, 401, wrong);
		}
		assert.equal((await ask({ url }, { "MCP-Protocol-Version": "2026-07-28" })).status, 401);
		assert.equal((await ask({ url }, { Authorization: `Basic ${token}` })).status, 401);
		assert.equal((await ask({ url, token })).status, 200);
		// Clients show what the answer says, or the status.
		for (const kind of kinds) await assert.rejects(connectHTTP(kind, { url, token: "wrong" }), /token|401/);
	});

	served("refuses what another site's page asks", async (server) => {
		const evil = { Origin: "https://evil.example" };
		assert.equal((await ask(server, evil)).status, 403);
		assert.equal((await ask(server, { ...evil, "MCP-Protocol-Version": "2026-07-28" })).status, 403);
		assert.equal((await ask(server, { ...evil, "Sec-Fetch-Site": "cross-site" })).status, 403);
		assert.equal((await ask(server, { Origin: "null" })).status, 403);
		// A name that an attacker's DNS points here.
		assert.equal((await ask(server, { Host: "evil.example" })).status, 403);
		assert.equal((await ask(server, { Origin: new URL(server.url).origin })).status, 200);
	});

	served("takes the token from the environment", async ({ url }) => {
		assert.equal((await ask({ url, token: "from-the-environment" })).status, 200);
		assert.equal((await ask({ url, token: "wrong" })).status, 401);
	}, { env: { LIMPET_MCP_TOKEN: "from-the-environment" } });

	for (const [first, second] of kinds.map((kind, i) => [kind, kinds[(i + 1) % kinds.length]])) {
		served(`${second.name} finds what ${first.name} left`, async (server, { work }) => {
			const one = await connectHTTP(first, server);
			await one.run("mkdir deep; cd deep; x=kept; f() { echo f $x; }");
			const { job } = await one.run("until [ -e go ]; do sleep 0.05; done; exit 3", { background: true });
			const { terminal } = await one.done("terminal_create", { argv: ["cat"] });
			await one.close();

			const two = await connectHTTP(second, server);
			assert.equal((await two.run("f; pwd")).stdout, `f kept\n${work}/deep\n`);
			await two.done("terminal_send_keys", { terminal: terminal.terminal, keys: ["hello", "Enter"] });
			await two.done("terminal_wait", { terminal: terminal.terminal, pattern: "^hello\\nhello$" });
			writeFileSync(join(work, "deep/go"), "");
			assert.equal((await two.done("job_wait", { jobs: [job.job] })).job.exit_code, 3);
			await two.close();
		});
	}

	served("serves many clients at once", async (server) => {
		const callers = await Promise.all([...kinds, ...kinds].map((kind) => connectHTTP(kind, server)));
		const sums = callers.map(async (caller, i) => {
			await caller.run(`x=${i}`, { session: `s${i}` });
			return (await caller.run("echo $x", { session: `s${i}` })).stdout;
		});
		assert.deepEqual(await Promise.all(sums), ["0\n", "1\n", "2\n", "3\n", "4\n", "5\n"]);
		// In one session, one after the other.
		await Promise.all(callers.map((caller) => caller.run("n=$((n+1))")));
		assert.equal((await callers[0].run("echo $n")).stdout, "6\n");
		for (const caller of callers) await caller.close();
	});
});

test("limpet mcp --http keeps its token", { timeout: 40_000 }, () =>
	inPlace(async (place) => {
		const first = await startHTTP(place);
		await first.stop();
		const second = await startHTTP(place);
		assert.equal(second.token, first.token);
		await second.stop();
	}),
);
