// The recordings of terminals in the page: a list of them, and the one that is played.
import { Failure, getRecordings } from "./api.mjs";
import { buttonOf, showButtons } from "./list.mjs";
import { element } from "./log.mjs";
import { Player } from "./player.mjs";
import { bytes, duration, harmless } from "./text.mjs";

/** @param {string} id */
const by = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** Recordings shows those of limpet serve --recordings. */
export class Recordings {
  /** @param {() => void} begin  is called when one is about to be played */
  constructor(begin) {
    this.begin = begin;
    this.busy = false;
    /** @type {Player | null} */
    this.player = null;
    by("player-close").addEventListener("click", () => {
      const name = this.player?.name ?? "";
      this.close();
      buttonOf(by("recordings-list"), name)?.focus();
    });
  }

  /** Asks for the list, if there is one. @param {boolean} there */
  async update(there) {
    by("recordings").hidden = !there;
    if (!there) this.close();
    if (!there || this.busy) return;
    this.busy = true;
    try {
      this.show(await getRecordings());
    } catch (e) {
      if (e instanceof Failure && e.status > 0) this.say(harmless(e.message)); // Else the page says that the connection is lost.
    } finally {
      this.busy = false;
    }
  }

  /** @param {import("./api.mjs").RecordingList} answer */
  show(answer) {
    showButtons(by("recordings-list"), answer.recordings, (one) => one.name, (button, one) => {
      const facts = [bytes(one.bytes), new Date(one.modified).toLocaleString()];
      if (one.length_ms !== undefined) facts.unshift(duration(one.length_ms));
      button.replaceChildren(element("span", "name", harmless(one.name)), element("span", "what", facts.join(", ")));
      this.mark(button);
    }, (name) => this.play(name));
    this.say(answer.more > 0 ? `${answer.more} older ones are not listed` : answer.recordings.length === 0 ? "There are none. One is made by: limpet term record" : "");
  }

  /** Marks the button if its recording is the one that is played. @param {HTMLElement} button */
  mark(button) {
    if (this.player && button.dataset["key"] === this.player.name) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }

  markAll() {
    for (const button of by("recordings-list").querySelectorAll("button")) this.mark(button);
  }

  /** Plays a recording from its start, with what is in it now. @param {string} name */
  play(name) {
    this.player?.close();
    this.begin();
    document.body.classList.add("plays");
    by("player").hidden = false;
    this.player = new Player(name, {
      root: by("player"), screen: by("player-screen"), name: by("player-name"), status: by("player-status"), play: /** @type {HTMLButtonElement} */ (by("player-play")),
      at: /** @type {HTMLInputElement} */ (by("player-at")), time: by("player-time"), speed: /** @type {HTMLSelectElement} */ (by("player-speed")),
      markers: by("player-markers"), list: by("player-list"), aloud: /** @type {HTMLInputElement} */ (by("announce")),
    });
    this.markAll();
    by("player").focus();
  }

  /** Takes the player out of the page. */
  close() {
    if (!this.player) return;
    this.player.close();
    this.player = null;
    document.body.classList.remove("plays");
    by("player").hidden = true;
    this.markAll();
  }

  /** @param {string} text */
  say(text) {
    const status = by("recordings-status");
    if (status.textContent !== text) status.textContent = text;
  }
}
