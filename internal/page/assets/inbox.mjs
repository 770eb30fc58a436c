// The inbox: the questions that wait, with all that a person must read to answer them, and the answers that were given here. The texts
// of a question come escaped, and are put there as text.
import { Failure, getSheet, sendAnswer } from "./api.mjs";
import { element } from "./log.mjs";
import { duration, harmless } from "./text.mjs";

/** How long no answer is taken after something in the inbox has appeared or moved, in ms: what was pressed then was meant for something else. */
const SETTLES = 500;

/** The most answers that are shown. */
const MOST_LOGGED = 200;

/** @param {string} id */
const by = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** Whether somebody types into a terminal of this page. */
const isTaken = () => document.querySelector("#terminal.taken") !== null;

/** Question is one that waits. */
class Question {
  /** @param {Inbox} inbox @param {import("./api.mjs").Question} q */
  constructor(inbox, q) {
    this.inbox = inbox;
    this.id = q.id;
    this.digest = q.digest;
    this.busy = false;
    this.loaded = false;
    this.gone = false;
    this.refused = false; // an answer was, which was said
    this.root = document.createElement("li");
    this.details = document.createElement("details");
    this.summary = element("summary", "");
    this.age = element("span", "note");
    this.body = element("div", "sheet", "It is being loaded.");
    this.details.append(this.summary, this.body);
    this.root.append(this.details);
    this.summary.append(element("code", "script", harmless(q.script ?? "").slice(0, 100)), " ", element("span", "", harmless(q.from)), " ", this.age);
    this.details.open = !isTaken(); // The size of a terminal is that of the window.
    this.details.addEventListener("toggle", () => inbox.settle());
    this.summary.addEventListener("click", () => inbox.settle());
    this.show(q);
  }

  /** @param {import("./api.mjs").Question} q */
  show(q) {
    const left = q.left_seconds ? `, ${duration(q.left_seconds * 1000)} left` : "";
    this.age.textContent = `${q.session ? `session ${q.session}, ` : ""}asked ${duration(q.age_seconds * 1000)} ago${left}`;
    if (!this.loaded && !this.busy) void this.load();
  }

  async load() {
    this.busy = true;
    try {
      const sheet = await getSheet(this.id);
      if (sheet.digest === this.digest) this.fill(sheet); // Else there is another one in the next list.
    } catch { // It is tried again with the next list.
    } finally {
      this.busy = false;
    }
  }

  /** @param {import("./api.mjs").Sheet} sheet */
  fill(sheet) {
    this.loaded = true;
    const parts = sheet.parts.flatMap((part) => [
      ...(part.title ? [element("p", "", `${part.title}:`)] : []), element("div", "text", part.text || "\n"),
    ]);
    const notes = element("ul", "notes");
    notes.append(...sheet.notes.map((note) => element("li", "", note)));
    this.said = element("p", "bad");
    this.said.setAttribute("role", "status");
    this.body.replaceChildren(element("p", "title", sheet.title), ...parts, notes,
      ...(this.inbox.answering ? sheet.choices.map((choice) => this.choice(choice)) : [this.remedy(sheet)]), this.said);
    this.inbox.settle();
  }

  /** What a person does who may not answer here. @param {import("./api.mjs").Sheet} sheet */
  remedy(sheet) {
    const text = element("p", "note", `The answers are: ${sheet.choices.map((c) => c.text.toLowerCase()).join("; ")}. Give one at a terminal of yours: `);
    text.append(element("code", "", sheet.command), " or start limpet serve with ", element("code", "", "--allow-answers"), ".");
    return text;
  }

  /** @param {import("./api.mjs").Choice} choice */
  choice(choice) {
    const row = element("div", "choice");
    for (const rule of choice.rules ?? []) row.append(element("code", "text", rule));
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = choice.text;
    button.dataset["answer"] = choice.answer;
    row.append(button);
    const field = choice.field ? this.field(choice.field) : null;
    if (field) {
      row.append(field);
      field.addEventListener("keydown", (e) => { // The page's own keys are letters.
        e.stopPropagation();
        if (e.key !== "Enter" || e.isComposing) return;
        e.preventDefault();
        if (!e.repeat && this.inbox.takes(e)) void this.answer(choice, field);
      });
    }
    button.addEventListener("keydown", (e) => { if (e.repeat) e.preventDefault(); }); // A key that is held down is one answer.
    button.addEventListener("click", (e) => { if (this.inbox.takes(e)) void this.answer(choice, field); });
    return row;
  }

  /** @param {"reason" | "name" | "password"} kind */
  field(kind) {
    const field = document.createElement("input");
    field.type = kind === "password" ? "password" : "text";
    field.autocomplete = "off";
    field.spellcheck = false;
    field.maxLength = 1023;
    const label = kind === "reason" ? "why not; whoever asked is told" : kind === "password" ? "password" : "answer";
    field.placeholder = label;
    field.setAttribute("aria-label", label);
    return field;
  }

  /** @param {import("./api.mjs").Choice} choice @param {HTMLInputElement | null} field */
  async answer(choice, field) {
    if (this.busy || this.gone) return;
    this.busy = true;
    this.enable(false);
    const typed = field?.value ?? "";
    if (field && choice.field !== "reason") field.value = "";
    try {
      const said = await sendAnswer(this.id, this.digest, choice, typed);
      this.inbox.done.add(key(this));
      this.inbox.remove(this);
      this.inbox.say(`Answered: ${harmless(said)}`);
    } catch (e) {
      this.busy = false;
      this.enable(true);
      const known = e instanceof Failure && e.status > 0 && e.status !== 504;
      this.refused = known;
      this.say(known ? `Not answered: ${harmless(e.message)}` : "The connection is lost: it is not known whether the answer has arrived.");
    }
  }

  /** @param {string} text */
  say(text) {
    if (this.said) this.said.textContent = text;
    this.inbox.say(text);
    this.inbox.settle(); // It has moved the questions behind it.
  }

  /** @param {boolean} on */
  enable(on) {
    for (const e of this.body.querySelectorAll("button, input")) /** @type {HTMLButtonElement | HTMLInputElement} */ (e).disabled = !on;
  }

  /** Takes it out of the page, with what was typed. */
  remove() {
    this.gone = true;
    for (const e of this.body.querySelectorAll("input")) e.value = "";
    this.root.remove();
  }
}

/** Inbox shows the questions, and never moves the focus. */
export class Inbox {
  constructor() {
    /** @type {Map<string, Question>} */
    this.all = new Map();
    /** @type {Set<string>} */
    this.done = new Set(); // those that were answered here, and may be in a list that was made before
    this.answering = false;
    this.settled = 0; // the time from which on an answer is taken, as that of an event
    this.timer = 0;
    this.logged = "";
  }

  /** @param {import("./api.mjs").QuestionList} list */
  show(list) {
    this.answering = list.answering;
    const there = new Set(list.questions.map(key));
    for (const of of this.done) if (!there.has(of)) this.done.delete(of);
    const waiting = list.questions.filter((q) => !this.done.has(key(q)));
    for (const [of, q] of this.all) {
      if (there.has(of)) continue;
      this.remove(q);
      if (!q.refused) this.say(list.questions.some((one) => one.id === q.id) ? "A question has changed: read it again." : "A question is not asked any more.");
    }
    for (const q of waiting) {
      const one = this.all.get(key(q));
      if (one) one.show(q);
      else this.add(q);
    }
    this.showCount(waiting);
    this.showLog(list.log);
    by("inbox").hidden = waiting.length === 0 && list.log.length === 0;
  }

  /** @param {import("./api.mjs").Question} q */
  add(q) {
    const one = new Question(this, q);
    this.all.set(key(q), one);
    by("questions-list").append(one.root); // At the end: those before it stay where they are.
    this.settle();
  }

  /** @param {Question} q */
  remove(q) {
    this.all.delete(key(q));
    q.remove();
    this.settle();
  }

  /** @param {import("./api.mjs").Question[]} list */
  showCount(list) {
    const line = by("questions");
    line.hidden = list.length === 0;
    const names = [...new Set(list.map((q) => q.session).filter((n) => n))];
    const text = list.length === 0 ? "" : (list.length === 1 ? "A question waits" : `${list.length} questions wait`) +
      (names.length > 0 ? ` (${names.slice(0, 5).join(", ")})` : "") + (this.answering ? "." : ". Answer at a terminal: limpet approvals answer");
    if (line.textContent !== text) line.textContent = text;
  }

  /** @param {import("./api.mjs").Answered[]} log */
  showLog(log) {
    const now = JSON.stringify(log);
    if (now === this.logged) return;
    this.logged = now;
    by("answered").hidden = log.length === 0;
    by("answered-summary").textContent = `Answered here: ${log.length}${log.length === MOST_LOGGED ? ", and those before" : ""}`;
    by("answered-list").replaceChildren(...log.map((one) => {
      const item = element("li", "");
      item.append(element("time", "", new Date(one.at).toLocaleString()), " ", harmless(one.from), one.session ? `, session ${one.session}: ` : ": ",
        element("code", "", harmless(one.brief)), ": ", element("b", "", harmless(one.answer)));
      return item;
    }).reverse()); // The newest first.
    this.settle();
  }

  /** Takes no answer for a while. */
  settle() {
    this.settled = performance.now() + SETTLES;
    by("inbox").classList.add("settles");
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => by("inbox").classList.remove("settles"), SETTLES);
  }

  /** Whether a press is an answer. @param {UIEvent} e */
  takes(e) {
    if (e.timeStamp < this.settled) {
      this.say("Nothing was answered: something has just moved here. Look, and press again.");
      return false;
    }
    if (isTaken() && e.detail === 0 && !(e.target instanceof HTMLInputElement)) { // It was pressed by a key.
      this.say("Nothing was answered: keys are for the terminal that is taken over. Hand it back, or use the pointer.");
      return false;
    }
    return true;
  }

  /** @param {string} text */
  say(text) { by("inbox-status").textContent = text; }
}

/** What tells a question from others, also if it has changed. @param {{id: string, digest: string}} q */
const key = (q) => `${q.id} ${q.digest}`;
