// The terminals of a session in the page: a list of them, and the one that is open.
import { buttonOf, showButtons } from "./list.mjs";
import { element } from "./log.mjs";
import { duration, harmless } from "./text.mjs";
import { View } from "./view.mjs";

const OPEN = "limpet-terminal"; // where the open one is kept, so that a reload shows the same

/** @param {string} id */
const by = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** Terminals shows those of one session. */
export class Terminals {
  constructor() {
    this.session = "";
    /** @type {View | null} */
    this.view = null;
    by("terminal-close").addEventListener("click", () => this.close());
    by("terminal-take").addEventListener("click", () => this.view?.take());
    by("terminal-back").addEventListener("click", () => this.view?.back());
  }

  /** Shows another session. @param {string} session */
  clear(session) {
    this.hide();
    this.session = session;
    by("terminals-list").replaceChildren();
    by("terminals").hidden = true;
  }

  /** @param {import("./api.mjs").TerminalList} answer */
  show(answer) {
    showButtons(by("terminals-list"), answer.terminals.reverse(), (t) => t.id, (button, t) => this.fill(button, t), (id) => this.open(id));
    const run = answer.terminals.filter((t) => !t.ended).length;
    by("terminals-summary").textContent = `Terminals: ${run} running, ${answer.terminals.length - run} ended`;
    by("terminals").hidden = answer.terminals.length === 0;
    const before = sessionStorage.getItem(OPEN);
    const again = answer.terminals.find((t) => this.key(t.id) === before);
    if (!this.view && again) this.open(again.id);
  }

  /** @param {string} id */
  key(id) { return `${this.session} ${id}`; }

  /** @param {HTMLButtonElement} button @param {import("./api.mjs").TerminalInfo} t */
  fill(button, t) {
    const screen = element("span", "thumb", harmless(t.screen ?? ""));
    screen.setAttribute("aria-hidden", "true"); // The last line is read.
    screen.hidden = !t.screen;
    const about = element("span", "what");
    about.append(
      element("code", "script", harmless(t.command).slice(0, 200)), " ",
      element("span", t.ended ? "note" : "runs", harmless(t.exit ? `${t.state}, ${t.exit}` : t.state)), " ",
      element("span", "note", `${t.id}, ${t.cols}x${t.rows}, ${duration(t.elapsed_ms)}`), " ",
      element("span", "note", harmless(t.last_line ?? "").slice(0, 100)));
    button.replaceChildren(screen, about);
    this.mark(button);
  }

  /** Marks the button if its terminal is the open one. @param {HTMLElement} button */
  mark(button) {
    if (this.view && button.dataset["key"] === this.view.id) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }

  markAll() {
    for (const button of by("terminals-list").querySelectorAll("button")) this.mark(button);
  }

  /** @param {string} id */
  open(id) {
    if (this.view?.id === id) return;
    this.hide();
    sessionStorage.setItem(OPEN, this.key(id));
    by("terminal").hidden = false;
    this.view = new View(this.session, id, {
      root: by("terminal"), screen: by("screen"), name: by("terminal-name"), status: by("terminal-status"), take: by("terminal-take"), back: by("terminal-back"),
      aloud: /** @type {HTMLInputElement} */ (by("announce")),
    });
    this.markAll();
  }

  /** Takes the open one out of the page. */
  hide() {
    this.view?.close();
    this.view = null;
    by("terminal").hidden = true;
    this.markAll();
  }

  /** Is hide, of a person who does not want to see it. */
  close() {
    const id = this.view?.id;
    sessionStorage.removeItem(OPEN);
    this.hide();
    if (id) buttonOf(by("terminals-list"), id)?.focus();
  }
}
