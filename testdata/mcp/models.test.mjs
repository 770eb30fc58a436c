// What reaches a model through hosts as Claude Code and Codex, which hand on the
// structured content of a result, and where there is some drop the rest.

import assert from "node:assert/strict";
import { test } from "node:test";
import { connectStdio, kinds } from "./clients.mjs";
import { limpet } from "./limpet.mjs";
import { inPlace } from "./place.mjs";

function handedOn({ structuredContent, content }) {
	if (structuredContent) return [{ type: "text", text: JSON.stringify(structuredContent) }];
	return content;
}

for (const kind of kinds) {
	test(`a model sees the text and the picture, by ${kind.name}`, { timeout: 40_000 }, () =>
		inPlace(async (place) => {
			const caller = await connectStdio(kind, place, [limpet, "mcp"]);
			for (const tool of (await caller.client.listTools()).tools) {
				assert.equal(tool.outputSchema, undefined, tool.name);
				assert.ok(tool.inputSchema.properties, tool.name);
			}
			const ran = handedOn(await caller.call("run_command", { cmd: "echo out; echo err >&2; echo out; (exit 3)", timeout: 60_000 }));
			assert.equal(ran.length, 1);
			assert.match(ran[0].text, /^out\nerr\nout\n\[exit 3, new session default, in \/.*\]$/);

			const [created] = handedOn(await caller.call("terminal_create", { command: "printf '\\e[31mred\\e[0m'; cat" }));
			const [, terminal] = /^\[terminal (\S+): running/m.exec(created.text);
			const [text, image] = handedOn(await caller.call("terminal_screen", { terminal, format: "png" }));
			assert.match(text.text, /^red\n/);
			assert.equal(image.mimeType, "image/png");
			assert.equal(Buffer.from(image.data, "base64").subarray(1, 4).toString(), "PNG");
			await caller.close();
		}),
	);
}
