// A stand-in for a model: a server on the loopback that speaks an API of models and plays a script
// of tool calls. It keeps what a model would have been given.

import { createServer } from "node:http";
import { gunzipSync } from "node:zlib";

// prompt is what a host is asked to do. A request with tools and without it is not about the task.
export const prompt = "limpet-test: play the script";

// A host asks its model for small things besides, such as a title, and some of them as JSON.
const aside = '{"title": "ok", "next_speaker": "user", "reasoning": "ok"}';

// mostRequests bounds a host that sends the same request for ever.
const mostRequests = 100;

// startModel starts a model that speaks api. Script has the calls it makes, one an answer:
// {name, args}, where args is a function of the answers so far, each {text, pictures}.
//
// An api has
//	read(body)           what a request gives the model: {tools, answers, about}
//	reply(body, answer)  an answer, {text} or {call}: the body, or the events of a stream
//	other(path)          the answer to any other request
//	turn                 a pattern of the paths of requests for an answer
export async function startModel(api, script) {
	const model = { answers: [], troubles: [], requests: 0 };

	// next returns the model's answer to a request.
	const next = ({ tools, answers, about }) => {
		if (!tools.length || !about.includes(prompt)) return { text: aside };
		if (answers.length >= model.answers.length) model.answers = answers;
		if (++model.requests > mostRequests) return { text: "Enough." };
		// The history says which call is next, so that a host may ask twice.
		const step = script[answers.length];
		if (!step) return { text: "Done." };
		if (!tools.includes(step.name)) {
			model.troubles.push(`the host does not offer ${step.name}, but ${tools.join(", ")}`);
			return { text: "Done." };
		}
		return { call: { name: step.name, args: step.args(answers), id: `call_${answers.length}` } };
	};

	const server = createServer(async (request, response) => {
		try {
			const body = await bodyOf(request);
			if (request.method !== "POST" || !api.turn.test(request.url)) return sendJSON(response, api.other(request.url));
			const answer = next(api.read(body));
			const reply = api.reply(body, answer, request.url);
			if (Array.isArray(reply)) sendEvents(response, reply);
			else sendJSON(response, reply);
		} catch (error) {
			model.troubles.push(`${request.method} ${request.url}: ${error.stack}`);
			response.writeHead(500).end(String(error));
		}
	});
	await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
	model.url = `http://127.0.0.1:${server.address().port}`;
	model.close = () => {
		server.close();
		server.closeAllConnections();
	};
	return model;
}

async function bodyOf(request) {
	const parts = [];
	for await (const part of request) parts.push(part);
	let bytes = Buffer.concat(parts);
	if (request.headers["content-encoding"] === "gzip") bytes = gunzipSync(bytes);
	return bytes.length ? JSON.parse(bytes) : {};
}

function sendJSON(response, doc) {
	response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(doc));
}

// sendEvents sends server-sent events. Each is its data, or [name, data].
function sendEvents(response, events) {
	response.writeHead(200, { "Content-Type": "text/event-stream" });
	for (const event of events) {
		const [name, data] = Array.isArray(event) ? event : [undefined, event];
		if (name) response.write(`event: ${name}\n`);
		response.write(`data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
	}
	response.end();
}

// answerOf returns the text of a tool's answer, and the number of its pictures. Content is a string or
// the parts of a message, in any of the APIs.
export function answerOf(content) {
	const parts = Array.isArray(content) ? content : [{ text: content ?? "" }];
	return {
		text: parts.map(({ text }) => text ?? "").join("\n"),
		pictures: parts.filter(isPicture).length,
	};
}

// isPicture reports whether a part of a message is a picture. Text that has one in it is none.
export function isPicture({ type = "", inlineData }) {
	return /image/.test(type) || /^image/.test(inlineData?.mimeType ?? "");
}
