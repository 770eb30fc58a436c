// Share links in the page: the owner makes and revokes them here, for the session that is chosen or the terminal that is open.
import { Failure, getShares, makeShare, revokeShare } from "./api.mjs";
import { element } from "./log.mjs";

/** For how long a link may be valid, in seconds. */
const TIMES = /** @type {const} */ ([[900, "15 minutes"], [3600, "1 hour"], [8 * 3600, "8 hours"], [24 * 3600, "24 hours"]]);

/** @param {string} id */
const by = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** Shares is the form that makes a link, and the list of those that there are. */
export class Shares {
  /** @param {() => import("./api.mjs").Session | undefined} chosen @param {() => string} open  the ID of the terminal that is open */
  constructor(chosen, open) {
    this.chosen = chosen;
    /** @type {import("./api.mjs").Session | undefined} */
    this.session = undefined;
    this.terminal = "";
    this.form = /** @type {HTMLFormElement} */ (by("share-form"));
    this.time = /** @type {HTMLSelectElement} */ (by("share-time"));
    this.typing = /** @type {HTMLSelectElement} */ (by("share-typing"));
    this.link = /** @type {HTMLInputElement} */ (by("share-link"));
    for (const [seconds, text] of TIMES) this.time.add(new Option(text, String(seconds)));
    this.time.value = "3600";
    by("share-session").addEventListener("click", () => this.ask(""));
    by("share-terminal").addEventListener("click", () => this.ask(open()));
    by("share-close").addEventListener("click", () => this.close());
    by("share").addEventListener("keydown", (e) => e.stopPropagation()); // The page's own keys are letters.
    this.link.addEventListener("focus", () => this.link.select());
    this.form.addEventListener("submit", (e) => {
      e.preventDefault();
      void this.make();
    });
  }

  /** Shows whether this page may share, and typing. @param {boolean} owner @param {boolean} typing */
  show(owner, typing) {
    by("share-session").hidden = by("share-terminal").hidden = !owner;
    for (const option of this.typing.options) if (option.value === "type") option.hidden = option.disabled = !typing;
    if (!typing) this.typing.value = "view";
  }

  /** Opens the form. @param {string} terminal  its ID; "" for all of the session */
  ask(terminal) {
    this.session = this.chosen();
    this.terminal = terminal;
    if (!this.session) return;
    by("share-what").textContent = terminal ? `Share the terminal ${terminal}` : `Share the session ${this.session.name}`;
    by("share").hidden = false;
    this.forget();
    this.typing.value = "view";
    this.typing.focus();
    void this.list();
  }

  /** Takes the link that was made out of the page. */
  forget() {
    this.link.value = "";
    by("share-made").hidden = true;
    this.say("");
  }

  close() {
    this.forget();
    by("share").hidden = true;
  }

  async make() {
    const { session, terminal } = this;
    if (!session) return;
    this.forget();
    try {
      const made = await makeShare({ session: session.name, id: session.id, terminal, typing: this.typing.value === "type", seconds: Number(this.time.value) });
      if (this.session !== session || this.terminal !== terminal || by("share").hidden) {
        await revokeShare(made.id); // Nobody has seen the link.
        return;
      }
      this.link.value = `${location.origin}${location.pathname}#${made.token}`;
      by("share-made").hidden = false;
      this.link.focus();
      await this.list();
    } catch (e) {
      this.say(words(e));
    }
  }

  async list() {
    try {
      this.fill(await getShares());
    } catch (e) {
      this.say(words(e));
    }
  }

  /** @param {import("./api.mjs").ShareList} all */
  fill(all) {
    by("share-list").replaceChildren(...all.shares.map((one) => {
      const item = element("li", "");
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "Revoke";
      button.addEventListener("click", () => void this.revoke(one.id));
      item.append(element("b", "", one.terminal ?? one.session), one.terminal ? ` of ${one.session}` : "", `, ${one.typing ? "viewing and typing" : "viewing"}, until `,
        element("time", "", new Date(one.expires).toLocaleString()), " ", button);
      return item;
    }));
  }

  /** @param {string} id */
  async revoke(id) {
    try {
      this.fill(await revokeShare(id));
      this.forget(); // It may be that one.
      this.say("Revoked: what was open by that link has ended.");
    } catch (e) {
      const gone = e instanceof Failure && e.status === 404; // Its time is over.
      if (gone) await this.list();
      else this.say(`Not revoked: ${words(e)}`);
    }
  }

  /** @param {string} text */
  say(text) { by("share-status").textContent = text; }
}

/** @param {unknown} e */
function words(e) {
  if (e instanceof Failure && e.status > 0) return e.message;
  return "The connection is lost: look at the list, and try again.";
}
