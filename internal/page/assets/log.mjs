// The commands of a session with what they print, in the page. All text of others is put there by textContent.
import { bytes, decode, duration, harmless, Screen } from "./text.mjs";

/** The most lines of a session in the page, and commands. The oldest go. */
const MOST_LINES = 4000, MOST_COMMANDS = 500;

/** The most characters of a script that are shown. */
const MOST_SCRIPT = 8000;

/**
 * An element with text.
 * @param {string} name
 * @param {string} cls
 * @param {string} [text]
 */
export function element(name, cls, text) {
  const e = document.createElement(name);
  if (cls) e.className = cls;
  if (text !== undefined) e.textContent = text;
  return e;
}

/**
 * @param {import("./text.mjs").Line} line
 * @param {string} cls
 */
export function lineElement(line, cls) {
  const e = element("div", cls);
  for (const run of line.runs) {
    if (run.cls) e.append(element("span", run.cls, run.text));
    else e.append(run.text);
  }
  if (line.left > 0) e.append(element("span", "note", ` … ${line.left} characters are left out`));
  if (line.runs.length === 0) e.append("\n"); // So that the line has a height, and is copied.
  return e;
}

/** How long what has come waits before it is put into the page, in ms. */
const LEAST_PAUSE = 50, MOST_PAUSE = 1000;

/** Command is one in the page. */
class Command {
  /** @param {HTMLElement} parent */
  constructor(parent) {
    this.root = element("section", "command");
    this.head = element("div", "head");
    this.output = element("div", "output");
    this.openLines = element("div", "output open");
    this.foot = element("div", "foot");
    this.root.append(this.head, this.output, this.openLines, this.foot);
    parent.append(this.root);
    this.screens = /** @type {const} */ ([new Screen(), new Screen()]); // stdout, stderr
    /** @type {(Node | {line: import("./text.mjs").Line, cls: string})[]} */
    this.waiting = []; // for the next flush; of what was too much by then nothing is made
    this.skipped = 0; // lines that were too many for one
    this.running = false;
    this.session = "";
  }

  /** @param {Node | {line: import("./text.mjs").Line, cls: string}} one */
  add(one) {
    this.waiting.push(one);
    if (this.waiting.length > 2 * MOST_LINES) {
      this.waiting.splice(0, MOST_LINES);
      this.skipped += MOST_LINES;
    }
  }
}

/** Log shows the events of one session. */
export class Log {
  /** @param {HTMLElement} root  which scrolls */
  constructor(root) {
    this.root = root;
    this.count = 0; // lines in the page
    this.dropped = 0;
    this.session = "";
    /** @type {Map<number, Command>} */
    this.commands = new Map();
    /** @type {Set<Command>} */
    this.dirty = new Set();
    this.scheduled = 0;
    this.pause = LEAST_PAUSE; // before the next flush: a page that is busy with output takes it less often
    this.top = element("p", "note");
    this.top.hidden = true;
    this.none = element("p", "note", "No command is remembered. What runs from now on is shown.");
    this.sticky = true; // it is at its end, and stays there
    this.size = "";
    root.addEventListener("scroll", () => {
      if (this.resized()) return; // It was not the user who scrolled.
      this.sticky = this.isAtEnd();
    });
    new ResizeObserver(() => this.resized()).observe(root);
    this.clear("");
  }

  /** Stays at the end when the room for the log changes, and returns whether it has. */
  resized() {
    const size = `${this.root.clientWidth} ${this.root.clientHeight}`;
    if (size === this.size) return false;
    this.size = size;
    if (this.sticky) this.toEnd();
    return true;
  }

  isAtEnd() { return this.root.scrollHeight - this.root.scrollTop - this.root.clientHeight < 30; }

  toEnd() {
    this.root.scrollTop = this.root.scrollHeight;
    this.sticky = true;
  }

  /** @param {string} session */
  clear(session) {
    this.session = session;
    this.commands.clear();
    this.dirty.clear();
    this.count = this.dropped = 0;
    this.top.hidden = true;
    this.none.hidden = false;
    this.root.replaceChildren(this.none, this.top);
    this.sticky = true;
  }

  /** A line of the page's own, at the end: within the last command, if that runs. @param {string} text */
  note(text) {
    this.none.hidden = true;
    const last = this.root.lastElementChild;
    const c = [...this.commands.values()].find((one) => one.root === last && one.running);
    if (c) {
      if (c.waiting.length === 0 && c.output.lastElementChild?.textContent === text) return;
      c.add(element("div", "note", text));
      this.change(c);
      return;
    }
    if (last?.classList.contains("note") && last.textContent === text) return;
    this.root.append(element("p", "note", text));
    this.trim();
    if (this.sticky) this.toEnd();
  }

  /** Has what a command has got put into the page soon. @param {Command} c */
  change(c) {
    this.dirty.add(c);
    if (this.scheduled === 0) this.scheduled = window.setTimeout(() => this.flush(), this.pause);
  }

  /** @param {import("./api.mjs").SessionEvent} e */
  event(e) {
    if (e.notice) {
      this.note(harmless(e.notice.text));
      return;
    }
    this.none.hidden = true;
    let c = this.commands.get(e.command);
    if (!c) {
      c = new Command(this.root);
      this.commands.set(e.command, c);
      if (e.kind !== "begin") c.head.append(element("span", "note", "a command whose beginning is not remembered"));
    }
    switch (e.kind) {
      case "begin": this.begin(c, e); break;
      case "output": this.output(c, e); break;
      case "end": this.end(c, e); break;
    }
    this.change(c);
  }

  /** @param {Command} c @param {import("./api.mjs").SessionEvent} e */
  begin(c, e) {
    for (const other of this.commands.values()) { // A session runs one at a time.
      if (other.running && other.session === e.session) this.over(other, "", "how it ended is not known");
    }
    c.running = true;
    c.session = e.session;
    c.root.classList.add("running");
    if (e.session !== this.session) c.head.append(element("span", "session", e.session));
    c.head.append(element("span", "dir", harmless(e.dir ?? "")), " ");
    const script = harmless(e.script ?? "");
    const left = Math.max(script.length - MOST_SCRIPT, 0) + (e.cut ?? 0);
    c.head.append(element("code", "script", script.slice(0, MOST_SCRIPT).replace(/\n+$/, "")));
    if (left > 0) c.head.append(element("span", "note", ` … ${left} characters are left out`));
    const time = element("time", "", new Date(e.time).toLocaleTimeString());
    time.setAttribute("datetime", e.time);
    c.head.append(time);
    c.foot.textContent = "runs";
  }

  /** @param {Command} c @param {import("./api.mjs").SessionEvent} e */
  output(c, e) {
    if (e.missed) c.add(element("div", "note", `${bytes(e.missed)} of output are missing here`));
    const cls = e.stderr ? "line stderr" : "line";
    for (const line of c.screens[e.stderr ? 1 : 0].write(decode(e.text ?? ""))) c.add({ line, cls });
  }

  /** @param {Command} c @param {import("./api.mjs").SessionEvent} e */
  end(c, e) {
    const failed = e.exit_code !== 0 || e.error;
    this.over(c, failed ? "failed" : "done",
      element("span", failed ? "bad" : "good", e.error ? harmless(e.error) : `exit ${e.exit_code}`), ` after ${duration(e.elapsed_ms ?? 0)}`,
      e.cpu_ms ? `, ${duration(e.cpu_ms)} of CPU time` : "",
      ...(e.notes ?? []).map((note) => element("div", "receipt", harmless(note))));
  }

  /** Ends a command. @param {Command} c @param {string} cls @param {(string | Node)[]} how */
  over(c, cls, ...how) {
    c.screens.forEach((s, i) => {
      const line = s.end();
      if (line) c.add(lineElement(line, i === 1 ? "line stderr" : "line"));
    });
    c.running = false;
    c.root.classList.remove("running");
    if (cls) c.root.classList.add(cls);
    c.foot.replaceChildren(...how);
    this.change(c);
  }

  /** Puts into the page what has come. */
  flush() {
    window.clearTimeout(this.scheduled);
    this.scheduled = 0;
    const began = performance.now();
    for (const c of this.dirty) {
      if (c.skipped > 0) {
        this.dropped += c.skipped;
        c.skipped = 0;
      }
      this.count += c.waiting.length;
      c.output.append(...c.waiting.map((one) => one instanceof Node ? one : lineElement(one.line, one.cls)));
      c.waiting = [];
      c.openLines.replaceChildren(...c.screens.flatMap((s, i) => {
        const line = s.open();
        return line ? [lineElement(line, i === 1 ? "line stderr" : "line")] : [];
      }));
    }
    if (this.dirty.size === 0) return;
    this.dirty.clear();
    this.trim();
    if (this.sticky) this.toEnd();
    this.pause = Math.min(Math.max(3 * (performance.now() - began), LEAST_PAUSE), MOST_PAUSE);
  }

  /** Takes the oldest out until there are not too many. */
  trim() {
    while (this.root.childElementCount - 2 > MOST_COMMANDS) this.removeOldest();
    while (this.count > MOST_LINES) {
      const first = this.first();
      if (!first) break;
      const output = first.querySelector(".output");
      const extra = this.count - MOST_LINES;
      if (output && (first === this.root.lastElementChild || output.childElementCount > extra)) {
        const n = Math.min(extra, output.childElementCount);
        for (let i = 0; i < n; i++) output.firstElementChild?.remove();
        this.count -= n;
        this.dropped += n;
        if (n === 0) break;
      } else this.removeOldest();
    }
    this.top.hidden = this.dropped === 0;
    this.top.textContent = `${this.dropped} older lines are not shown any more`;
  }

  first() { return this.top.nextElementSibling; }

  removeOldest() {
    const first = this.first();
    if (!first) return;
    for (const [number, c] of this.commands) {
      if (c.root !== first) continue;
      this.count -= c.output.childElementCount;
      this.dropped += c.output.childElementCount;
      this.commands.delete(number);
      this.dirty.delete(c); // What it has got since is not counted any more.
    }
    first.remove();
  }
}
