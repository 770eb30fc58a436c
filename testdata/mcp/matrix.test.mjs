// Every scenario, by every client: over both transports with LIMPET_TEST_ALL, else over one, so that each transport has every scenario.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { auto, kinds, ways } from "./clients.mjs";
import { inPlace } from "./place.mjs";
import { scenarios } from "./scenarios.mjs";

const all = process.env.LIMPET_TEST_ALL;

for (const [k, kind] of kinds.entries()) {
	for (const [w, [way, connect]] of Object.entries(ways).entries()) {
		describe(`${kind.name} over ${way}`, { concurrency: 4 }, () => {
			for (const [s, [name, scenario]] of Object.entries(scenarios).entries()) {
				if (all || (k + w + s) % 2 === 0) test(name, { timeout: 40_000 }, () => inPlace((place) => connected(connect, kind, place, scenario)));
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
