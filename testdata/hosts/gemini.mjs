// Google's generateContent.

import { answerOf, isPicture } from "./model.mjs";

export const gemini = {
	turn: /enerateContent/,
	other: (path) => (path.includes("countTokens") ? { totalTokens: 1000 } : {}),

	read({ tools = [], contents }) {
		const answers = [];
		for (const part of contents.flatMap(({ parts = [] }) => parts)) {
			const { functionResponse } = part;
			// The response is an object, in which a host puts the text where it likes.
			if (functionResponse) answers.push(answerOf(Object.values(functionResponse.response).map(String).join("\n")));
			else if (isPicture(part) && answers.length) answers.at(-1).pictures++; // Behind it.
		}
		return {
			tools: tools.flatMap(({ functionDeclarations = [] }) => functionDeclarations.map(({ name }) => name)),
			answers,
			about: JSON.stringify(contents),
		};
	},

	reply(_, { text, call }, path) {
		const part = call ? { functionCall: call, thoughtSignature: "c2lnbmVk" } : { text };
		const doc = {
			candidates: [{ index: 0, content: { role: "model", parts: [part] }, finishReason: "STOP" }],
			modelVersion: "stand-in",
			usageMetadata: { promptTokenCount: 1000, candidatesTokenCount: 10, totalTokenCount: 1010 },
		};
		return path.includes("stream") ? [doc] : doc;
	},
};
