// Anthropic's Messages.

import { answerOf } from "./model.mjs";

export const anthropic = {
	turn: /\/messages(\?|$)/,
	other: (path) => (path.includes("count_tokens") ? { input_tokens: 1000 } : { data: [], has_more: false }),

	read({ tools = [], messages }) {
		const blocks = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
		return {
			tools: tools.map(({ name }) => name),
			answers: blocks.filter(({ type }) => type === "tool_result").map(({ content }) => answerOf(content)),
			about: JSON.stringify(messages),
		};
	},

	reply({ model, stream }, { text, call }) {
		const usage = { input_tokens: 1000, output_tokens: 10 };
		const block = call ? { type: "tool_use", id: `toolu_${call.id}`, name: call.name, input: call.args } : { type: "text", text };
		const stop = { stop_reason: call ? "tool_use" : "end_turn", stop_sequence: null };
		const message = { id: "msg_1", type: "message", role: "assistant", model, usage };
		if (!stream) return { ...message, content: [block], ...stop };
		const [begun, delta] = call
			? [{ ...block, input: {} }, { type: "input_json_delta", partial_json: JSON.stringify(call.args) }]
			: [{ ...block, text: "" }, { type: "text_delta", text }];
		return [
			{ type: "message_start", message: { ...message, content: [], stop_reason: null, stop_sequence: null } },
			{ type: "content_block_start", index: 0, content_block: begun },
			{ type: "content_block_delta", index: 0, delta },
			{ type: "content_block_stop", index: 0 },
			{ type: "message_delta", delta: stop, usage },
			{ type: "message_stop" },
		].map((event) => [event.type, event]);
	},
};
