// How the page asks limpet serve. The token comes in the fragment of the link, which browsers send to nobody, is kept for this tab alone,
// and is taken out of the address bar, the history, and what is copied from there.

const KEY = "limpet-token";

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

/** @param {string} path @param {AbortSignal} [signal] */
async function open(path, signal) {
  let answer;
  try {
    answer = await fetch(path, {
      headers: { Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` },
      cache: "no-store", credentials: "omit", redirect: "error", referrerPolicy: "no-referrer", signal,
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

/** @param {string} path @param {AbortSignal} [signal] */
export async function get(path, signal) {
  const answer = await open(path, signal);
  try {
    return await answer.json();
  } catch (e) {
    throw new Failure(0, String(e));
  }
}

/** How long nothing may come on a stream, in ms: limpet sends an empty line every 10 s. */
const SILENCE = 35000;

/**
 * Reads a stream of JSON lines until it ends, or signal aborts it.
 * @param {string} path
 * @param {AbortSignal} signal
 * @param {(value: any) => void} each
 */
export async function stream(path, signal, each) {
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
      for (let i = 0; i < parts.length; i++) {
        pieces.push(parts[i]);
        if (i === parts.length - 1) break; // The line goes on.
        const line = pieces.join("");
        pieces = [];
        if (line !== "") each(JSON.parse(line));
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
