// The clients, each with the same few verbs, so that a scenario is written once.

import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as Client1 } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as PlainStdio1 } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as HTTP1 } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ResourceListChangedNotificationSchema, ResourceUpdatedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { limpet, startHTTP } from "./limpet.mjs";
import { patience } from "./place.mjs";

const invalidParams = -32602;
const me = { name: "limpet-test", version: "1" };
const updated = "notifications/resources/updated";
const listChanged = "notifications/resources/list_changed";

// Over stdio, client 1 keeps the agreed revision to itself, unless asked.
class Stdio1 extends PlainStdio1 {
	setProtocolVersion(version) {
		this.protocolVersion = version;
	}
}

// Client 2 chooses its era by versionNegotiation: "legacy" shakes hands, a pinned
// revision never does and fails where the server has not got it, "auto" asks first.
const client2 = (mode) => ({
	connect: () => new Client(me, { versionNegotiation: { mode } }),
	Stdio: StdioClientTransport,
	HTTP: StreamableHTTPClientTransport,
	call: (client, params, options) => client.callTool(params, options),
	hear: (client, method, handler) => client.setNotificationHandler(method, handler),
	revision: (client) => client.getNegotiatedProtocolVersion(),
});

const schemas = { [updated]: ResourceUpdatedNotificationSchema, [listChanged]: ResourceListChangedNotificationSchema };
const subscribe = (client, uri) => client.subscribeResource({ uri });
const listen = (client, uri) => client.listen({ resourceSubscriptions: [uri], resourcesListChanged: true });

export const kinds = [
	{
		name: "sdk 1.32.2",
		spoken: "2025-11-25",
		connect: () => new Client1(me),
		Stdio: Stdio1,
		HTTP: HTTP1,
		call: (client, params, options) => client.callTool(params, undefined, options),
		hear: (client, method, handler) => client.setNotificationHandler(schemas[method], handler),
		revision: (client, transport) => transport.protocolVersion,
		subscribe,
	},
	{ name: "client 2.4.0, legacy", spoken: "2025-11-25", ...client2("legacy"), subscribe },
	{ name: "client 2.4.0, 2026-07-28", spoken: "2026-07-28", ...client2({ pin: "2026-07-28" }), subscribe: listen },
];

// auto is what a host of both eras does.
export const auto = { name: "client 2.4.0, auto", spoken: "2026-07-28", ...client2("auto"), subscribe: listen };

// ways are the transports. Each connects a client of a kind to a limpet that it
// starts in place.
export const ways = {
	stdio: connectStdio,
	http: async (kind, place) => {
		const server = await startHTTP(place);
		const caller = await connectHTTP(kind, server);
		const close = caller.close;
		return Object.assign(caller, { close: () => close().finally(server.stop) });
	},
};

export function connectStdio(kind, place, [command, ...args] = [limpet, "mcp", "--structured"]) {
	return connect(kind, new kind.Stdio({ command, args, env: place.env, cwd: place.work, stderr: place.stderr }));
}

export function connectHTTP(kind, { url, token }) {
	const headers = { Authorization: `Bearer ${token}` };
	return connect(kind, new kind.HTTP(new URL(url), { requestInit: { headers } }));
}

async function connect(kind, transport) {
	const client = kind.connect();
	try {
		await client.connect(transport);
		// A client that knows the tools holds every result against its schema.
		await client.listTools();
	} catch (error) {
		await client.close();
		throw error;
	}
	return new Caller(kind, client, transport);
}

// Caller is a client that is connected.
class Caller {
	constructor(kind, client, transport) {
		Object.assign(this, { kind, client, transport });
		this.close = () => client.close();
	}

	revision() {
		return this.kind.revision(this.client, this.transport);
	}

	// call returns the whole result. Options are signal and onprogress.
	call(name, args = {}, options = {}) {
		return this.kind.call(this.client, { name, arguments: args }, { timeout: patience, ...options });
	}

	// done returns what a call gave, which must not be an error.
	async done(name, args, options) {
		const result = await this.call(name, args, options);
		assert.ok(!result.isError, `${name} failed: ${textOf(result)}`);
		assert.ok(textOf(result), `${name} has no text for a model`);
		return result.structuredContent;
	}

	run(command, args = {}, options = {}) {
		return this.done("run_command", { command, ...args }, options);
	}

	// fails returns what a call said that went wrong, as a tool's result.
	async fails(name, args) {
		const result = await this.call(name, args);
		assert.equal(result.isError, true, `${name} did not fail: ${textOf(result)}`);
		return textOf(result);
	}

	// refuses returns the message of the protocol's error for a tool that there is not.
	async refuses(name, args) {
		const error = await this.call(name, args).then(
			(result) => assert.fail(`${name} ${JSON.stringify(args)} was taken: ${JSON.stringify(result)}`),
			(error) => error,
		);
		assert.equal(error.code, invalidParams, `${name} ${JSON.stringify(args)}: ${error}`);
		return error.message;
	}

	// wrong returns what is said of arguments that cannot be meant: a result, with a right call.
	async wrong(name, args) {
		const text = await this.fails(name, args);
		assert.match(text, /^nothing was done/);
		assert.ok(text.includes(`\nA right call of ${name}: {`), text);
		return text;
	}

	// watch says by onUpdate which resource has news, and by onList that there are
	// others, until it is closed.
	async watch(uri, onUpdate, onList) {
		this.kind.hear(this.client, updated, ({ params }) => onUpdate(params.uri));
		this.kind.hear(this.client, listChanged, onList);
		await this.kind.subscribe(this.client, uri);
	}
}

export function textOf(result) {
	return result.content
		.filter(({ type }) => type === "text")
		.map(({ text }) => text)
		.join("\n");
}
