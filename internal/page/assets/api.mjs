// How the page asks limpet serve. The token comes in the fragment of the link, which browsers send to nobody, is kept for this tab alone,
// and is taken out of the address bar, the history, and what is copied from there.

import { decode } from "./text.mjs";

const KEY = "limpet-token";

/**
 * What limpet serve answers: api.go, answers.go, shares.go, feed.go, stream.go, notices.go, recordings.go and jobs.go in internal/page have the same names.
 *
 * @typedef {{at: string, why: string, dir?: string, running?: string}} Ended
 * @typedef {{
 *   name: string, id: string, created: string, answers: boolean, state?: string, dir?: string, running?: string, idle_ms: number,
 *   commands: number, jobs: number, terminals: number, checkpoints?: string[], policy?: string, ended?: Ended,
 *   forked_from?: {id: string, name: string},
 * }} Session  forked_from: not of a page that was shared
 * @typedef {{
 *   id: string, digest: string, from: string, session: string, dir?: string, script?: string, reason: string, password?: boolean,
 *   age_seconds: number, left_seconds?: number,
 * }} Question
 * @typedef {{at: string, from: string, session?: string, brief: string, answer: string}} Answered
 * @typedef {{target: string, error?: string}} Machine
 * @typedef {{sessions: Session[], machines?: Machine[], typing: boolean, recordings?: boolean, share?: {terminal?: string, typing: boolean, expires: string}}} SessionList  those of machines have names NAME@TARGET; share: of a page that was shared
 * @typedef {{id: string, session: string, session_id: string, terminal?: string, typing: boolean, created: string, expires: string}} Share
 * @typedef {{shares: Share[]}} ShareList
 * @typedef {{questions: Question[], answering: boolean, log: Answered[]}} QuestionList
 * @typedef {{answer: string, text: string, rules?: string[], field?: "reason" | "name" | "password"}} Choice
 * @typedef {{digest: string, title: string, brief: string, parts: {title?: string, text: string}[], notes: string[], choices: Choice[], command: string}} Sheet
 * @typedef {{
 *   id: string, command: string, dir: string, session?: string, state: string, finished: boolean, failed: boolean, exit?: string,
 *   started: string, elapsed_ms: number, bytes: number,
 * }} Job
 * @typedef {{jobs: Job[], more: number, stopping: boolean}} JobList
 * @typedef {{matches: {number: number, text: string}[], more: boolean, dropped: number}} Found
 * @typedef {{text: string | null, offset: number, next: number, end: number, dropped: number, finished: boolean}} LogPart
 *
 * @typedef {{
 *   id: string, command: string, dir: string, cols: number, rows: number, state: string, ended: boolean, exit?: string,
 *   elapsed_ms: number, last_line?: string, screen?: string,
 * }} TerminalInfo
 * @typedef {{terminals: TerminalInfo[]}} TerminalList
 *
 * @typedef {{name: string, bytes: number, modified: string, length_ms?: number}} Recording
 * @typedef {{recordings: Recording[], more: number}} RecordingList
 * @typedef {{kind: "recording", cols: number, rows: number, title?: string, command?: string, started?: string}} RecordingHead  the first line of a recording
 * @typedef {{kind: "over", cut: boolean, error?: string}} RecordingEnd  the last one
 *
 * @typedef {{kind: "hello", session: string, keeper: string, resumed: boolean, notices: number}} Hello  the first line of a stream
 * @typedef {{number: number, time: string, kind: string, session?: string, about: string, text: string}} Notice
 * @typedef {{kind: "told", notice: Notice}} Told
 * @typedef {{kind: "over", why: "ended" | "moved" | "lost", error: string}} Over  the last line, if limpet ends the stream
 * @typedef {{
 *   kind: "begin" | "output" | "end" | "notice", seq: number, time: string, session: string, command: number, script?: string, cut?: number,
 *   dir?: string, text?: string, stderr?: boolean, missed?: number, exit_code: number, elapsed_ms?: number, error?: string,
 *   notice?: {kind: string, about: string, text: string}, cpu_ms?: number, notes?: string[],
 * }} SessionEvent  text is base64
 *
 * @typedef {{kind: "hello", terminal: TerminalInfo, resumed?: boolean, typing?: boolean}} TerminalHello
 * @typedef {{kind: "screen", offset?: number, cols: number, rows: number, ansi: string}} TerminalScreen  ansi is base64
 * @typedef {{kind: "over", why: "ended" | "lost", error: string}} TerminalOver
 * @typedef {TerminalHello | TerminalScreen | TerminalOver | {kind: "beat" | "taken"} | {kind: "refused" | "back", error?: string}} TerminalSaid
 */

/** Takes the token out of the address, if it is there, and returns whether there is one. */
export function takeToken() {
  const said = location.hash.slice(1);
  if (said !== "") {
    sessionStorage.setItem(KEY, said);
    history.replaceState(null, "", location.pathname);
  }
  return sessionStorage.getItem(KEY) !== null;
}

/** Failure is an answer that is an error; status is 0 if there was no answer. */
export class Failure extends Error {
  /** @param {number} status @param {string} message */
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** @param {string} path @param {AbortSignal | null} [signal] @param {object | ""} [content]  is sent by POST, if there is one; "" is none, by POST */
async function open(path, signal, content) {
  const post = content === undefined ? {} : content === "" ? { method: "POST" } : { method: "POST", body: JSON.stringify(content) };
  let answer;
  try {
    answer = await fetch(path, {
      headers: { Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}`, ...(content ? { "Content-Type": "application/json" } : {}) },
      cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer", signal: signal ?? null, ...post,
    });
  } catch (e) {
    throw new Failure(0, String(e));
  }
  if (!answer.ok) {
    let text = answer.statusText;
    try {
      text = (await answer.json()).error ?? text;
    } catch { /* It is no answer of limpet. */ }
    throw new Failure(answer.status, text);
  }
  return answer;
}

/**
 * Asks for a value.
 * @template T
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<T>}
 */
async function get(path, signal) {
  const answer = await open(path, signal);
  try {
    return await answer.json();
  } catch (e) {
    throw new Failure(0, String(e));
  }
}

/** @param {AbortSignal} [signal] @returns {Promise<SessionList>} */
export const getSessions = (signal) => get("api/sessions", signal);

/** @param {AbortSignal} [signal] @returns {Promise<QuestionList>} */
export const getQuestions = (signal) => get("api/questions", signal);

/** A question in full. @param {string} id @returns {Promise<Sheet>} */
export const getSheet = (id) => get(`api/questions/${encodeURIComponent(id)}`);

/**
 * Answers a question, and returns the answer in words.
 * @param {string} id
 * @param {string} digest  of what the person was shown
 * @param {Choice} choice
 * @param {string} typed  in its field
 * @returns {Promise<string>}
 */
export async function sendAnswer(id, digest, choice, typed) {
  /** @type {{digest: string, answer: string, reason?: string, secret?: string}} */
  const content = { digest, answer: choice.answer };
  if (choice.field === "reason") content.reason = typed;
  else if (choice.field) content.secret = btoa(String.fromCharCode(...new TextEncoder().encode(typed)));
  const answer = await open(`api/questions/${encodeURIComponent(id)}`, null, content);
  return (await answer.json()).said;
}

/** @param {string} session @param {AbortSignal} [signal] @returns {Promise<JobList>} */
export const getJobs = (session, signal) => get(`api/jobs?session=${encodeURIComponent(session)}`, signal);

/**
 * Part of what a job has printed.
 * @param {string} session
 * @param {string} id
 * @param {number} from  an offset; a negative one for the end of the output
 * @returns {Promise<LogPart>}
 */
export const getLog = (session, id, from) => get(`api/jobs/${id}/log?session=${encodeURIComponent(session)}` + (from < 0 ? "" : `&from=${from}`));

/**
 * The lines of a job's output that match a regular expression.
 * @param {string} session
 * @param {string} id
 * @param {string} pattern
 * @returns {Promise<Found>}
 */
export const searchLog = (session, id, pattern) =>
  get(`api/jobs/${id}/search?session=${encodeURIComponent(session)}&pattern=${encodeURIComponent(pattern)}`);

/** Stops a job, and returns when it has ended. @param {string} session @param {string} id @returns {Promise<Job>} */
export const stopJob = async (session, id) => (await open(`api/jobs/${id}/stop?session=${encodeURIComponent(session)}`, null, "")).json();

/** @param {string} session @param {AbortSignal} [signal] @returns {Promise<TerminalList>} */
export const getTerminals = (session, signal) => get(`api/terminals?session=${encodeURIComponent(session)}`, signal);

/** @returns {Promise<RecordingList>} */
export const getRecordings = () => get("api/recordings");

/** @returns {Promise<ShareList>} */
export const getShares = () => get("api/shares");

/**
 * Makes a share link.
 * @param {{session: string, id: string, terminal: string, typing: boolean, seconds: number}} wanted
 * @returns {Promise<Share & {token: string}>}
 */
export const makeShare = async (wanted) => (await open("api/shares", null, wanted)).json();

/** Ends a share link, and returns the others. @param {string} id @returns {Promise<ShareList>} */
export const revokeShare = async (id) => (await open(`api/shares/${encodeURIComponent(id)}/revoke`, null, "")).json();

/** How long nothing may come on a stream, in ms: limpet sends an empty line every 10 s. */
const SILENCE = 35000;

/**
 * Reads the lines of a stream until limpet ends it, or signal aborts it. It reads no further while each is at work.
 * @param {string} path
 * @param {AbortSignal} signal
 * @param {(line: any) => void | Promise<void>} each
 */
async function readLines(path, signal, each) {
  const own = new AbortController();
  const abort = () => own.abort();
  signal.addEventListener("abort", abort);
  let timer = setTimeout(abort, SILENCE);
  try {
    const answer = await open(path, own.signal);
    const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).getReader();
    const decoder = new TextDecoder();
    /** @type {string[]} */
    let pieces = [];
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(abort, SILENCE);
      const parts = decoder.decode(value, { stream: true }).split("\n");
      for (const [i, part] of parts.entries()) {
        pieces.push(part);
        if (i === parts.length - 1) break; // The line goes on.
        const line = pieces.join("");
        pieces = [];
        if (line !== "") await each(JSON.parse(line));
      }
    }
  } catch (e) {
    throw e instanceof Failure ? e : new Failure(0, String(e));
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", abort);
    own.abort(); // Whoever stops reading ends the connection.
  }
}

/**
 * Reads the events of a session, and notices, until limpet ends the stream, or signal aborts it.
 * @param {string} session  "" for none
 * @param {string} keeper  that of the number after; "" for none
 * @param {number} after  the number of the last event that is known
 * @param {number | null} notices  the number of the last notice that is known; a negative one for those from now on, null for none
 * @param {AbortSignal} signal
 * @param {(line: Hello | SessionEvent | Told | Over) => void} each
 */
export async function streamEvents(session, keeper, after, notices, signal, each) {
  const path = `api/events?session=${encodeURIComponent(session)}&keeper=${encodeURIComponent(keeper)}&after=${after}` +
    (notices === null ? "" : `&notices=${notices < 0 ? "" : notices}`);
  await readLines(path, signal, each);
}

/**
 * Shows a terminal by a stream, where no WebSocket can be opened: shown.go in internal/page has what is sent. It returns when limpet ends the stream.
 * @param {string} session
 * @param {string} id
 * @param {AbortSignal} signal
 * @param {(said: TerminalSaid) => void} say
 * @param {(bytes: Uint8Array, offset: number) => Promise<void>} print  offset is the one behind the bytes
 */
export const streamTerminal = (session, id, signal, say, print) =>
  readLines(`api/terminal?session=${encodeURIComponent(session)}&id=${encodeURIComponent(id)}`, signal, (line) =>
    line.kind === "output" ? print(decode(line.text), line.offset) : say(line));

/**
 * Reads a recording.
 * @param {string} name
 * @param {AbortSignal} signal
 * @param {(line: RecordingHead | import("./timeline.mjs").Cast | RecordingEnd) => void} each
 */
export const streamRecording = (name, signal, each) => readLines(`api/recordings/${encodeURIComponent(name)}`, signal, each);

/** Closes a connection whose token is wrong. */
export const WRONG_TOKEN = 4401;

/** Closes a connection when too many watch. */
const TRY_LATER = 1013;

/**
 * Opens the WebSocket that shows a terminal: socket.go in internal/page has what is sent. The token goes in the first message.
 * @param {{session: string, terminal: string, from?: number, cols?: number, rows?: number}} opening
 * @param {(said: TerminalSaid) => void} say
 * @param {(bytes: Uint8Array, offset: number) => void} print  offset is the one behind the bytes
 * @param {(code: number, works: boolean) => void} close  called once; works is false if limpet has said nothing by the WebSocket, not even why it is closed
 * @returns {WebSocket | undefined}
 */
export function openTerminal(opening, say, print, close) {
  const url = new URL("api/terminal", location.href);
  url.protocol = url.protocol.replace("http", "ws");
  let socket, works = false;
  try {
    socket = new WebSocket(url);
  } catch { // The browser has none.
    queueMicrotask(() => close(0, false));
    return undefined;
  }
  socket.binaryType = "arraybuffer";
  const own = socket;
  let timer = setTimeout(() => own.close(), SILENCE);
  socket.addEventListener("open", () => own.send(JSON.stringify({ token: sessionStorage.getItem(KEY) ?? "", ...opening })));
  socket.addEventListener("message", (e) => {
    clearTimeout(timer);
    timer = setTimeout(() => own.close(), SILENCE);
    works = true;
    if (typeof e.data === "string") say(JSON.parse(e.data));
    else print(new Uint8Array(e.data, 8), Number(new DataView(e.data).getBigUint64(0)));
  });
  socket.addEventListener("close", (e) => {
    clearTimeout(timer);
    close(e.code, works || e.code === WRONG_TOKEN || e.code === TRY_LATER);
  });
  return socket;
}
