// A recording of a terminal that is played in the page, by xterm.js. asciinema's own player needs WebAssembly, which the page's policy refuses.
import { Failure, streamRecording } from "./api.mjs";
import { element } from "./log.mjs";
import { duration, harmless } from "./text.mjs";
import { clock, MOST_PAUSE, Timeline } from "./timeline.mjs";
import { load, makeTerminal, shrink } from "./xterm.mjs";

/** How far an arrow key goes, in seconds. */
const STEP = 5;

/** The most characters that xterm.js is given at a time. It draws them before it gets more: a browser that is slow plays slowly. */
const MOST_PIECE = 64 << 10;

/** How far what is drawn may be behind the time, in ms. */
const MOST_BEHIND = 250;

/** How often the position is shown while nothing is printed, in ms. */
const TICK = 50;

/**
 * @typedef {{
 *   root: HTMLElement, screen: HTMLElement, name: HTMLElement, status: HTMLElement, play: HTMLButtonElement, at: HTMLInputElement, time: HTMLElement,
 *   speed: HTMLSelectElement, markers: HTMLElement, list: HTMLElement, aloud: HTMLInputElement,
 * }} PlayerParts
 */

/** Player is a recording that is open. */
export class Player {
  /** @param {string} name @param {PlayerParts} parts */
  constructor(name, parts) {
    this.name = name;
    this.parts = parts;
    this.timeline = new Timeline();
    this.size = [80, 24]; // at the start
    /** @type {import("./api.mjs").RecordingEnd | undefined} */
    this.end = undefined; // what limpet serve has said at last
    this.since = 0; // when at was shown, while it is played
    this.at = 0; // what is shown, in seconds of the timeline
    this.next = 0; // the event behind what xterm.js was given
    this.ready = false; // all of it is there
    this.playing = false;
    this.held = false; // the range is: it is not moved by itself then
    this.turn = 0; // counts what a person wants: what was begun before ends
    this.reset = false; // what is shown is of a time behind the one that is wanted
    this.events = new AbortController(); // ends what listens to the page, and the stream
    parts.screen.replaceChildren();
    parts.list.replaceChildren();
    parts.markers.hidden = true;
    parts.name.textContent = harmless(name);
    parts.at.value = "0";
    this.allow(false);
    this.say("loading");
    this.show();
    void this.begin();
  }

  /** Makes the terminal, reads the recording, and plays it. */
  async begin() {
    const { parts } = this, { signal } = this.events;
    const [{ Terminal }] = await load();
    if (signal.aborted) return;
    const term = this.term = makeTerminal(Terminal, parts.aloud.checked);
    term.open(parts.screen);
    term.attachCustomKeyEventHandler(() => false); // They are the page's.
    parts.aloud.addEventListener("change", () => { term.options.screenReaderMode = parts.aloud.checked; }, { signal });
    parts.play.addEventListener("click", () => this.toggle(), { signal });
    parts.speed.addEventListener("change", () => { if (this.playing) this.play(); }, { signal });
    parts.at.addEventListener("input", () => this.seek(Number(parts.at.value)), { signal });
    for (const [name, held] of /** @type {const} */ ([["pointerdown", true], ["pointerup", false], ["pointercancel", false], ["change", false]])) {
      parts.at.addEventListener(name, () => { this.held = held; }, { signal });
    }
    parts.root.addEventListener("keydown", (e) => this.press(e), { signal });
    this.resizes = new ResizeObserver(() => shrink(term, parts.screen));
    this.resizes.observe(parts.screen);
    try {
      await streamRecording(this.name, signal, (line) => {
        if (Array.isArray(line)) this.timeline.add(line);
        else if (line.kind === "recording") this.hear(line);
        else this.end = line;
      });
      if (!this.end) throw new Failure(0, "the stream is not whole");
    } catch (e) {
      if (signal.aborted) return;
      this.say(e instanceof Failure && e.status > 0 ? harmless(e.message) : "The connection is lost: open the recording again.");
      return;
    }
    if (signal.aborted) return;
    this.tell();
    parts.at.max = String(this.timeline.length);
    this.allow(true);
    this.play();
  }

  /** Says whether there is something to play. @param {boolean} ready */
  allow(ready) {
    this.ready = ready;
    this.parts.play.disabled = this.parts.at.disabled = !ready;
  }

  /** @param {import("./api.mjs").RecordingHead} head */
  hear(head) {
    this.size = [head.cols, head.rows];
    this.term?.resize(head.cols, head.rows);
    if (this.term) shrink(this.term, this.parts.screen);
    const about = head.title && head.command && head.title !== head.command ? `${head.title} (${head.command})` : head.title ?? head.command ?? "";
    if (about) this.parts.name.textContent = harmless(`${this.name}: ${about}`).slice(0, 300);
  }

  /** Says what there is to say of the recording, and lists the markers. */
  tell() {
    const { timeline, parts, end } = this;
    const facts = [];
    if (end?.cut) facts.push("it ends within a line: it is still being written, or was cut off");
    else if (end?.error) facts.push(`the rest cannot be played: ${harmless(end.error)}`);
    if (timeline.events.length === 0) facts.push("nothing was printed in it");
    if (timeline.recorded - timeline.length >= 1) facts.push(`pauses are shortened to ${MOST_PAUSE} s: it took ${duration(timeline.recorded * 1000)}`);
    this.say(facts.join("; "));
    parts.markers.hidden = timeline.markers.length === 0;
    parts.list.replaceChildren(...timeline.markers.map(({ at, label }) => {
      const button = element("button", "", `${clock(at)} ${harmless(label).slice(0, 200) || "marker"}`);
      button.setAttribute("type", "button");
      button.addEventListener("click", () => this.seek(at));
      const item = element("li", "");
      item.append(button);
      return item;
    }));
    if (timeline.left > 0) parts.list.append(element("li", "note", `${timeline.left} more are not listed`));
  }

  /** @param {KeyboardEvent} e */
  press(e) {
    if (e.ctrlKey || e.altKey || e.metaKey || e.target === this.parts.speed) return;
    if (e.key === " " && !(e.target instanceof HTMLButtonElement)) this.toggle(); // A button is pressed by it.
    else if (e.key === "ArrowLeft") this.seek(this.now() - STEP);
    else if (e.key === "ArrowRight") this.seek(this.now() + STEP);
    else if (e.key === "Home") this.seek(0);
    else if (e.key === "End") this.seek(this.timeline.length);
    else return;
    e.preventDefault();
    e.stopPropagation();
  }

  toggle() {
    if (!this.ready) return;
    if (this.playing) this.pause();
    else if (this.at >= this.timeline.length) this.seek(0, true);
    else this.play();
  }

  /** The time that is to be shown now. @param {number} [when] */
  now(when = performance.now()) {
    if (!this.playing) return this.at;
    return Math.min(this.at + (when - this.since) / 1000 * Number(this.parts.speed.value), this.timeline.length);
  }

  play() { this.seek(this.now(), true); }

  pause() { this.seek(this.now(), false); }

  /** Shows another time, and plays on from there, or not. @param {number} at @param {boolean} [playing]  as before, if it is left out */
  seek(at, playing) {
    if (!this.ready) return;
    this.playing = playing ?? this.playing;
    const wanted = Math.min(Math.max(at, 0), this.timeline.length);
    if (this.timeline.until(wanted) < this.next) this.reset = true;
    this.at = wanted;
    this.since = performance.now();
    this.show();
    void this.run(++this.turn);
  }

  /** Draws what there is to draw, as time goes by while it is played, until a person wants something else. @param {number} turn */
  async run(turn) {
    const { term, timeline } = this;
    if (!term) return;
    if (this.reset) {
      await write(term, "\x1b\\"); // What was given to it before is drawn, and a string that was not ended ends.
      if (turn !== this.turn) return;
      this.reset = false;
      term.reset();
      term.resize(this.size[0] ?? 80, this.size[1] ?? 24);
      this.next = 0;
    }
    for (;;) {
      const when = performance.now(), at = this.now(when), to = timeline.until(at);
      while (this.next < to) {
        const { text, size, next } = timeline.piece(this.next, to, MOST_PIECE);
        if (size) await write(term, ""); // What comes before it is drawn in the size from before.
        if (turn !== this.turn) return;
        this.next = next;
        if (size) term.resize(...size);
        else await write(term, text);
        if (turn !== this.turn) return;
        if (size) shrink(term, this.parts.screen);
      }
      if (!this.playing) break;
      this.at = at;
      this.since = Math.max(when, performance.now() - MOST_BEHIND); // What takes longer to draw holds the time up.
      if (at >= timeline.length) this.playing = false;
      this.show();
      if (!this.playing) break;
      const wait = ((timeline.events[this.next]?.at ?? timeline.length) - at) * 1000 / Number(this.parts.speed.value);
      await new Promise((done) => setTimeout(done, Math.min(Math.max(wait, 0), TICK)));
      if (turn !== this.turn) return;
    }
  }

  /** Shows the position. */
  show() {
    const { parts, timeline } = this;
    const ended = timeline.length > 0 && this.at >= timeline.length && !this.playing;
    const time = `${clock(this.at)} / ${clock(timeline.length)}`;
    if (parts.time.textContent !== time) parts.time.textContent = time;
    const button = this.playing ? "Pause" : ended ? "Play again" : "Play";
    if (parts.play.textContent !== button) parts.play.textContent = button;
    if (!this.held) parts.at.value = String(this.at);
    parts.at.setAttribute("aria-valuetext", time);
  }

  /** @param {string} text */
  say(text) { this.parts.status.textContent = text; }

  close() {
    this.turn++;
    this.playing = false;
    this.events.abort();
    this.resizes?.disconnect();
    this.term?.dispose();
    this.parts.screen.replaceChildren();
  }
}

/** Has xterm.js draw some output, behind what it was given before. @param {import("./xterm.mjs").Terminal} term @param {string} text @returns {Promise<void>} */
const write = (term, text) => new Promise((drawn) => term.write(text, drawn));
