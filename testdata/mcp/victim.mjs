// A client that is to be killed: it has everything running that can run, and is
// in the middle of a call. Killed.test.mjs starts it.

import { connectHTTP, kinds, ways } from "./clients.mjs";
import { processes, until } from "./place.mjs";

const place = JSON.parse(process.env.VICTIM_PLACE);
const kind = kinds.find(({ name }) => name === process.argv[2]);
const { VICTIM_URL: url, VICTIM_TOKEN: token } = process.env;
const caller = await (url ? connectHTTP(kind, { url, token }) : ways.stdio(kind, { ...place, stderr: "inherit" }));

// Each carries the mark in its command line, and one has left its session.
const named = (part) => `exec -a ${place.mark}-${part} sleep 600`;
await caller.run(`x=kept; (${named("left")}) & setsid bash -c '${named("apart")}' &`);
await caller.run(named("job"), { background: true });
await caller.done("terminal_create", { command: named("terminal") });
caller.run(`(${named("call")}); touch ran`).catch(() => {});
const parts = ["left", "apart", "job", "terminal", "call"];
await until("all of it runs", () => parts.every((part) => processes(`${place.mark}-${part}`).length > 0));
console.log("in the middle of a call");
setInterval(() => {}, 60_000); // Until it is killed.
