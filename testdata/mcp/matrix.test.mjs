// Every scenario, by every client, over both transports.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { auto, kinds, ways } from "./clients.mjs";
import { inPlace } from "./place.mjs";
import { scenarios } from "./scenarios.mjs";

for (const kind of kinds) {
	for (const [way, connect] of Object.entries(ways)) {
		describe(`${kind.name} over ${way}`, { concurrency: 4 }, () => {
			for (const [name, scenario] of Object.entries(scenarios)) {
				test(name, { timeout: 40_000 }, () => inPlace((place) => connected(connect, kind, place, scenario)));
			}
		});
	}
}

for (const [way, connect] of Object.entries(ways)) {
	test(`a client of both eras takes the newer one over ${way}`, { timeout: 40_000 }, () =>
		inPlace((place) =>
			connected(connect, auto, place, async (caller) => {
				assert.equal(caller.revision(), "2026-07-28");
				assert.equal((await caller.run("echo hello")).stdout, "hello\n");
			}),
		),
	);
}

async function connected(connect, kind, place, scenario) {
	const caller = await connect(kind, place);
	try {
		await scenario(caller, place);
	} finally {
		await caller.close();
	}
}
