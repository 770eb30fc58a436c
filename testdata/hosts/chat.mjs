// OpenAI's Chat Completions, which many others speak.

import { answerOf } from "./model.mjs";

export const chat = {
	turn: /\/chat\/completions/,
	other: () => ({ object: "list", data: [{ id: "stand-in", object: "model", owned_by: "nobody" }] }),

	read({ tools = [], messages }) {
		const answers = [];
		for (const { role, content } of messages) {
			if (role === "tool") answers.push(answerOf(content));
			// A tool's answer has no pictures here: a host gives them as the user's.
			if (role === "user" && answers.length) answers.at(-1).pictures += answerOf(content).pictures;
		}
		return {
			tools: tools.flatMap((tool) => tool.function?.name ?? []),
			answers,
			about: JSON.stringify(messages),
		};
	},

	reply({ model, stream }, { text, call }) {
		const calls = call && [{ id: call.id, type: "function", function: { name: call.name, arguments: JSON.stringify(call.args) } }];
		const finish_reason = call ? "tool_calls" : "stop";
		const head = { id: "chat_1", created: 1, model };
		const usage = { prompt_tokens: 1000, completion_tokens: 10, total_tokens: 1010 };
		if (!stream) {
			const message = { role: "assistant", content: text ?? null, tool_calls: calls };
			return { ...head, object: "chat.completion", choices: [{ index: 0, message, finish_reason }], usage };
		}
		const chunk = (choices) => ({ ...head, object: "chat.completion.chunk", choices });
		const delta = { role: "assistant", content: text ?? "", tool_calls: calls?.map((one, index) => ({ index, ...one })) };
		return [
			chunk([{ index: 0, delta, finish_reason: null }]),
			chunk([{ index: 0, delta: {}, finish_reason }]),
			{ ...chunk([]), usage },
			"[DONE]",
		];
	},
};
