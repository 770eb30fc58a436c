// Starts limpet mcp, as a host does that speaks HTTP.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { until } from "./place.mjs";

export const limpet = process.env.LIMPET;
assert.ok(limpet, "LIMPET names the program to test; ./run builds one");

// startHTTP starts limpet mcp --http in place, with data for the tests in its answers. Stop ends it by SIGTERM, and says
// how it ended.
export async function startHTTP(place, { flags = [], env = {} } = {}) {
	const from = place.said().length; // An earlier one may have spoken.
	const server = spawn(limpet, ["mcp", "--structured", "--http", "0", ...flags], {
		cwd: place.work,
		env: { ...place.env, ...env },
		stdio: ["ignore", place.stderr, place.stderr],
	});
	const [, url, file] = await until("it says where it listens", () => {
		assert.equal(server.exitCode, null, `limpet mcp --http ended: ${place.said()}`);
		return /^limpet: MCP at (http:\S+)(?:, token in (.+))?$/m.exec(place.said().slice(from));
	});
	const stop = async () => {
		server.kill("SIGTERM");
		await until("SIGTERM ends it", () => server.exitCode !== null || server.signalCode !== null);
		return { code: server.exitCode, signal: server.signalCode };
	};
	const token = env.LIMPET_MCP_TOKEN ?? readFileSync(file, "utf8").trim();
	return { url, file, token, stop, pid: server.pid };
}
