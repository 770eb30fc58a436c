// What every client shall find of terminals.

import assert from "node:assert/strict";

async function runsTerminals(caller, { work }) {
	await caller.run("mkdir deep && cd deep");
	const created = await caller.done("terminal_create", { argv: ["bash", "--norc"], columns: 60, rows: 10 });
	const { terminal } = created.terminal;
	assert.deepEqual([created.terminal.columns, created.terminal.rows], [60, 10]);
	assert.equal(created.terminal.dir, `${work}/deep`, "it starts where the session is");
	await caller.done("terminal_wait", { terminal, prompt: true });

	// The sum tells what was printed from what was typed.
	await caller.done("terminal_send_keys", { terminal, keys: ["echo sum-$((40+2))", "Enter"] });
	const seen = await caller.done("terminal_wait", { terminal, text: "sum-42" });
	assert.match(seen.screen.text, /sum-42/);
	await caller.done("terminal_send_keys", { terminal, text: "echo Enter; stty size\n" });
	await caller.done("terminal_wait", { terminal, pattern: "^10 60$" });
	await caller.done("terminal_resize", { terminal, columns: 70, rows: 12 });
	await caller.done("terminal_send_keys", { terminal, keys: ["clear; stty size", "Enter"] });
	await caller.done("terminal_wait", { terminal, pattern: "^12 70$" });

	// One program in the foreground: between two commands of a line C-c interrupts nobody. And the whole
	// line: what was typed has the number, too.
	await caller.done("terminal_send_keys", { terminal, keys: ["sh -c 'seq 100 120; exec cat'", "Enter"] });
	await caller.done("terminal_wait", { terminal, pattern: "^120$" });
	const { screen } = await caller.done("terminal_screen", { terminal });
	assert.doesNotMatch(screen.text, /^100$/m, "it went off the screen");
	assert.equal(typeof screen.cursor.row, "number");
	const captured = await caller.done("terminal_capture", { terminal, scrollback_lines: 50 });
	assert.match(captured.text, /^100$[^]*^120$/m);
	await caller.done("terminal_send_keys", { terminal, keys: ["C-c"] });
	const back = await caller.done("terminal_send_keys", { terminal, keys: ["echo back-$((1+1))", "Enter"] });
	assert.equal(back.terminal.state, "running");
	await caller.done("terminal_wait", { terminal, text: "back-2" });

	const { terminals } = await caller.done("terminal_list");
	assert.deepEqual(terminals.map((each) => each.terminal), [terminal]);
	const killed = await caller.done("terminal_kill", { terminal });
	assert.notEqual(killed.terminal.state, "running");
}

async function showsScreensAsImages(caller) {
	const created = await caller.done("terminal_create", { command: "printf '\\e[31mred\\e[0m'; cat" });
	const result = await caller.call("terminal_screen", { terminal: created.terminal.terminal, format: "png" });
	const [image] = result.content.filter(({ type }) => type === "image");
	assert.equal(image.mimeType, "image/png");
	const bytes = Buffer.from(image.data, "base64");
	assert.equal(bytes.subarray(1, 4).toString(), "PNG");
	assert.match(result.structuredContent.screen.text, /red/);
}

export const scenarios = {
	"runs terminals": runsTerminals,
	"shows screens as images": showsScreensAsImages,
};
