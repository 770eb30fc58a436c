// Notices: what a person may want to know who does not look at the page, or at another session. They are listed on it, marked in its title,
// and shown by the desktop to whoever has allowed that.
import { element } from "./log.mjs";
import { harmless } from "./text.mjs";

/** The most notices that are listed. */
const MOST_LISTED = 50;

/** The longest text that a desktop is given. */
const MOST_TEXT = 300;

/** @param {string} id */
const by = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** Whether a person looks at the page, as far as it can be known. */
const looks = () => !document.hidden && document.hasFocus();

export class Notices {
  /** @param {(session: string) => void} choose  shows a session */
  constructor(choose) {
    this.choose = choose;
    this.unseen = 0;
    this.title = "limpet";
    this.list = by("notices-list");
    by("notices-clear").addEventListener("click", () => this.clear());
    by("notify").addEventListener("click", () => void this.allow());
    for (const name of ["focus", "visibilitychange"]) {
      (name === "focus" ? window : document).addEventListener(name, () => {
        if (looks()) this.seen();
      });
    }
    this.offer();
  }

  /** Offers what the desktop can do, if it was not asked about yet. */
  offer() {
    by("notify").hidden = !("Notification" in window) || !window.isSecureContext || Notification.permission !== "default";
  }

  async allow() {
    await Notification.requestPermission();
    this.offer();
  }

  /** @param {string} title  that of the page, without what is unseen */
  setTitle(title) {
    this.title = title;
    document.title = this.unseen > 0 ? `[${this.unseen} new] ${title}` : title;
  }

  seen() {
    this.unseen = 0;
    this.setTitle(this.title);
  }

  clear() {
    this.list.replaceChildren();
    this.list.focus(); // The button that had it is gone.
    this.fit();
  }

  /** @param {import("./api.mjs").Notice} n */
  tell(n) {
    if (!looks()) {
      this.unseen++;
      this.setTitle(this.title);
      this.tellDesktop(n);
    }
    if (n.kind === "question" || n.kind === "password") return; // It is in the inbox.
    const line = element("li", "");
    const time = element("time", "", new Date(n.time).toLocaleTimeString());
    time.setAttribute("datetime", n.time);
    const name = document.createElement("button");
    name.type = "button";
    name.textContent = harmless(n.session ?? "");
    name.setAttribute("aria-label", `Show session ${name.textContent}`);
    name.addEventListener("click", () => this.choose(n.session ?? ""));
    line.append(time, " ", name, " ", element("span", "", harmless(n.text)));
    this.list.append(line);
    while (this.list.childElementCount > MOST_LISTED) this.list.firstElementChild?.remove();
    this.list.scrollTop = this.list.scrollHeight;
    this.fit();
  }

  /** Gives the list room if it has something. It is never hidden: a screen reader would not read the first line aloud. */
  fit() {
    const empty = this.list.childElementCount === 0;
    by("notices").classList.toggle("empty", empty);
    by("notices-clear").hidden = empty;
  }

  /** @param {import("./api.mjs").Notice} n */
  tellDesktop(n) {
    if (!("Notification" in window) || Notification.permission !== "granted") return;
    try {
      const shown = new Notification(n.session ? `limpet: ${harmless(n.session)}` : "limpet", {
        body: harmless(n.text).slice(0, MOST_TEXT), tag: `limpet ${n.number}`, icon: "icon.svg",
      });
      shown.addEventListener("click", () => {
        window.focus();
        if (n.session) this.choose(n.session);
      });
    } catch { /* Some browsers have it for service workers alone. The page has the notice. */ }
  }
}
