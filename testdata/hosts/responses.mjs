// OpenAI's Responses. A tool of a namespace is named NAMESPACE.TOOL here.

import { answerOf } from "./model.mjs";

export const responses = {
	turn: /\/responses(\?|$)/,
	other: () => ({ object: "list", data: [], models: [] }),

	read({ tools = [], input }) {
		const items = Array.isArray(input) ? input : [];
		return {
			tools: tools.flatMap(({ type, name, tools: inner }) =>
				type === "namespace" ? inner.map((tool) => `${name}.${tool.name}`) : (name ?? []),
			),
			answers: items.filter(({ type }) => /_output$/.test(type)).map(({ output }) => answerOf(output)),
			about: JSON.stringify(input),
		};
	},

	reply({ model, stream }, { text, call }) {
		const item = call ? functionCall(call) : message(text);
		const usage = {
			input_tokens: 1000,
			output_tokens: 10,
			total_tokens: 1010,
			input_tokens_details: { cached_tokens: 0 },
			output_tokens_details: { reasoning_tokens: 0 },
		};
		const response = { id: "resp_1", object: "response", model, status: "completed", output: [item], usage };
		if (!stream) return response;
		return [
			{ type: "response.created", response: { ...response, status: "in_progress", output: [] } },
			{ type: "response.output_item.added", output_index: 0, item },
			{ type: "response.output_item.done", output_index: 0, item },
			{ type: "response.completed", response },
		].map((event) => [event.type, event]);
	},
};

function message(text) {
	const content = [{ type: "output_text", text, annotations: [] }];
	return { type: "message", id: "msg_1", role: "assistant", status: "completed", content };
}

function functionCall({ id, name, args }) {
	const [, namespace, short] = /^(?:(.+)\.)?(.+)$/.exec(name);
	return { type: "function_call", id: `fc_${id}`, call_id: id, name: short, namespace, arguments: JSON.stringify(args), status: "completed" };
}
