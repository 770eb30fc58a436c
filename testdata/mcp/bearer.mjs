// Puts the token on every request of a program that has no option for headers,
// as the inspector's command line of 0.15.0 has not: node --import bearer.mjs.

const plain = globalThis.fetch;

globalThis.fetch = (input, init = {}) => {
	const headers = new Headers(init.headers);
	headers.set("Authorization", `Bearer ${process.env.BEARER}`);
	return plain(input, { ...init, headers });
};
