// One terminal in the page: xterm.js shows what comes by a WebSocket, and where it is allowed a person takes the terminal over and types.
import { Failure, openTerminal, streamTerminal, WRONG_TOKEN } from "./api.mjs";
import { decode, harmless } from "./text.mjs";
import { FONT, load, makeTerminal, shrink } from "./xterm.mjs";

/** The most bytes of one message of keys, and the most that may wait to be sent. */
const MOST_KEYS = 16 << 10, MOST_WAITING = 1 << 20;

/** What is said of a terminal that is shown by a stream. */
const NO_SOCKET = "shown only: nothing can be typed, as no WebSocket could be opened here. A proxy on the way may let none through";

/** @typedef {{root: HTMLElement, screen: HTMLElement, name: HTMLElement, status: HTMLElement, take: HTMLElement, back: HTMLElement, aloud: HTMLInputElement}} Parts */

/** View is a terminal that is open. */
export class View {
  /** @param {string} session @param {string} id @param {Parts} parts */
  constructor(session, id, parts) {
    this.session = session;
    this.id = id;
    this.parts = parts;
    this.closed = false;
    this.ended = false;
    this.allowed = false; // to type
    this.taken = false; // by this page
    this.offset = -1; // behind what was given to xterm.js; -1: nothing was
    this.wait = 250; // before the next try to connect, in ms
    this.timer = 0;
    this.sizeTimer = 0;
    /** @type {WebSocket | undefined} */
    this.socket = undefined;
    this.worked = false; // a WebSocket has: one that fails later is a lost connection
    /** @type {AbortController | undefined} */
    this.stream = undefined; // shows, where no WebSocket can be opened
    this.events = new AbortController(); // ends what listens to the page
    this.encoder = new TextEncoder();
    parts.screen.replaceChildren();
    parts.name.textContent = id;
    parts.status.textContent = "connecting";
    this.showTaken(false);
    void this.begin();
  }

  /** Makes the terminal, and connects. */
  async begin() {
    const [{ Terminal }, { FitAddon }] = await load();
    if (this.closed) return;
    const term = makeTerminal(Terminal, this.parts.aloud.checked);
    this.term = term;
    this.fit = new FitAddon();
    term.loadAddon(this.fit);
    term.open(this.parts.screen);
    term.onTitleChange((title) => { this.parts.name.textContent = title ? `${this.id}: ${harmless(title).slice(0, 200)}` : this.id; });
    term.onData((text) => this.type(this.encoder.encode(text)));
    term.onBinary((text) => this.type(Uint8Array.from(text, (c) => c.charCodeAt(0))));
    term.attachCustomKeyEventHandler((e) => this.wants(e));
    const { signal } = this.events;
    for (const name of /** @type {const} */ (["keydown", "keypress", "keyup"])) { // What is typed is nobody else's.
      this.parts.screen.addEventListener(name, (e) => { if (this.taken) e.stopPropagation(); }, { signal });
    }
    this.parts.aloud.addEventListener("change", () => { term.options.screenReaderMode = this.parts.aloud.checked; }, { signal });
    this.resizes = new ResizeObserver(() => this.fitSoon());
    this.resizes.observe(this.parts.screen);
    this.connect();
  }

  /** Whether a key is for the terminal. @param {KeyboardEvent} e */
  wants(e) {
    if (!this.taken) return false;
    if (e.ctrlKey && e.key === "\\") {
      if (e.type === "keydown") this.back();
      return false;
    }
    return true;
  }

  connect() {
    const { term } = this;
    if (!term) return;
    const from = this.offset < 0 ? {} : { from: this.offset, cols: term.cols, rows: term.rows };
    const socket = openTerminal({ session: this.session, terminal: this.id, ...from }, (said) => {
      if (!this.closed) this.hear(said);
    }, (bytes, offset) => {
      if (!this.closed) this.print(bytes, offset);
    }, (code, works) => {
      if (this.closed || this.socket !== socket) return;
      this.worked ||= works;
      if (this.worked) this.lose(code);
      else void this.look();
    });
    this.socket = socket;
  }

  /** Shows by a stream, as no WebSocket works. When the stream ends a WebSocket is tried again. */
  async look() {
    this.socket = undefined;
    const stream = this.stream = new AbortController();
    let code = 0;
    try {
      await streamTerminal(this.session, this.id, stream.signal, (said) => {
        if (!this.closed) this.hear(said);
      }, (bytes, offset) => new Promise((shown) => {
        if (this.closed || !this.term) return shown();
        this.offset = offset;
        this.term.write(bytes, shown);
      }));
    } catch (e) {
      if (e instanceof Failure && e.status === 401) code = WRONG_TOKEN;
    }
    this.stream = undefined;
    if (!this.closed) this.lose(code);
  }

  /** @param {import("./api.mjs").TerminalSaid} said */
  hear(said) {
    switch (said.kind) {
      case "hello":
        this.wait = 250;
        this.allowed = said.typing === true;
        this.say(said.terminal.ended ? "it has ended" : "");
        this.showTaken(false);
        if (said.terminal.ended) this.parts.take.hidden = true;
        break;
      case "screen":
        this.term?.resize(said.cols, said.rows);
        this.print(decode(said.ansi), said.offset ?? 0, "\x1b\\"); // First the end of a string that was not ended.
        this.fitSoon();
        break;
      case "taken":
        this.showTaken(true);
        this.say("");
        this.fitNow();
        this.term?.focus();
        break;
      case "back":
        this.showTaken(false);
        this.say(said.error ?? "");
        this.fitNow();
        break;
      case "refused": this.say(`not typed: ${harmless(said.error ?? "")}`); break;
      case "over":
        this.ended = said.why === "ended";
        this.showTaken(false);
        this.say(harmless(said.error));
        if (this.ended) this.parts.take.hidden = true;
        break;
    }
  }

  /** @param {Uint8Array} bytes @param {number} offset @param {string} [before] */
  print(bytes, offset, before) {
    this.offset = offset;
    if (before) this.term?.write(before);
    this.term?.write(bytes, () => this.send({ kind: "seen", offset }));
  }

  /** Tries again after a while. @param {number} code */
  lose(code) {
    this.socket = undefined;
    this.showTaken(false);
    if (this.ended) return;
    this.parts.take.hidden = true;
    if (code === WRONG_TOKEN) {
      this.say("this link is not valid any more");
      return;
    }
    this.say("the connection is lost: trying again");
    this.timer = window.setTimeout(() => this.connect(), this.wait * (1 + Math.random()));
    this.wait = Math.min(this.wait * 2, 10000);
  }

  /** @param {object} message */
  send(message) {
    if (this.socket && this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  /** @param {Uint8Array} keys */
  type(keys) {
    if (!this.taken || !this.socket || this.socket.readyState !== WebSocket.OPEN) return;
    if (this.socket.bufferedAmount + keys.length > MOST_WAITING) {
      this.say("not typed: too much at once");
      return;
    }
    for (let i = 0; i < keys.length; i += MOST_KEYS) this.socket.send(keys.slice(i, i + MOST_KEYS));
  }

  take() { this.send({ kind: "take" }); }

  back() { this.send({ kind: "back" }); }

  /** @param {boolean} taken */
  showTaken(taken) {
    this.taken = taken;
    if (this.term) this.term.options.disableStdin = !taken;
    this.parts.root.classList.toggle("taken", taken);
    this.parts.take.hidden = taken || !this.allowed;
    this.parts.back.hidden = !taken;
    if (!taken && this.term?.element?.contains(document.activeElement)) this.term.blur();
  }

  /** @param {string} text */
  say(text) {
    const said = text || (this.taken ? "you type here; it has the size of this window" : this.allowed ? "" : this.stream ? NO_SOCKET : "read-only");
    if (this.parts.status.textContent !== said) this.parts.status.textContent = said;
  }

  fitSoon() {
    window.clearTimeout(this.sizeTimer);
    this.sizeTimer = window.setTimeout(() => this.fitNow(), 50);
  }

  /** Has the terminal have the size of the window while it is taken over; else has its characters have a size in which it fits. */
  fitNow() {
    const { term, fit } = this;
    if (!term || !fit || this.closed) return;
    if (this.taken) {
      if (this.parts.screen.clientWidth === 0) return; // It is not shown now.
      if (term.options.fontSize !== FONT) term.options.fontSize = FONT;
      const size = fit.proposeDimensions();
      if (size && (size.cols !== term.cols || size.rows !== term.rows)) this.send({ kind: "size", cols: size.cols, rows: size.rows });
      return;
    }
    shrink(term, this.parts.screen);
  }

  close() {
    this.closed = true;
    window.clearTimeout(this.timer);
    window.clearTimeout(this.sizeTimer);
    this.events.abort();
    this.resizes?.disconnect();
    this.socket?.close();
    this.stream?.abort();
    this.showTaken(false);
    this.term?.dispose();
    this.parts.screen.replaceChildren();
  }
}
