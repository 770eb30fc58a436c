// The jobs of a session in the page, with the logs of those that are opened.
import { Failure, getLog, searchLog, stopJob } from "./api.mjs";
import { element, lineElement } from "./log.mjs";
import { bytes, decode, duration, harmless, Screen } from "./text.mjs";

/** The most lines of a log in the page. */
const MOST_LINES = 1000;

/** How long a second click stops a job, and not before, in ms: one click is made by mistake, and two quick ones as well. */
const SURE_FROM = 500, SURE_UNTIL = 5000;

/** Job is one in the page. */
class Job {
  /** @param {string} session @param {string} id */
  constructor(session, id) {
    this.session = session;
    this.id = id;
    this.root = document.createElement("li");
    this.details = document.createElement("details");
    this.summary = element("summary", "");
    this.log = element("div", "output joblog");
    this.log.tabIndex = 0;
    this.log.setAttribute("role", "log");
    this.log.setAttribute("aria-live", "off");
    this.stop = document.createElement("button");
    this.stop.textContent = "Stop";
    this.stop.type = "button";
    this.stop.hidden = true;
    this.asked = 0; // when the first click was; 0: there was none
    this.stop.addEventListener("click", (e) => void this.end(e.timeStamp));
    this.stop.addEventListener("keydown", (e) => { if (e.repeat) e.preventDefault(); }); // A key that is held down is one click.
    this.searches = 0; // that were begun
    this.pattern = document.createElement("input");
    this.pattern.type = "search";
    this.pattern.placeholder = "search, a regular expression";
    this.pattern.setAttribute("aria-label", `Search in the output of ${id}`);
    this.pattern.autocomplete = "off";
    this.pattern.spellcheck = false;
    this.pattern.maxLength = 200;
    this.pattern.addEventListener("keydown", (e) => e.stopPropagation()); // The page's own keys are letters.
    const form = document.createElement("form");
    form.className = "find";
    form.append(this.pattern, this.stop);
    form.addEventListener("submit", (e) => {
      e.preventDefault();
      void this.search();
    });
    this.found = element("div", "output found");
    this.found.setAttribute("role", "status");
    this.found.hidden = true;
    this.details.append(this.summary, form, this.found, this.log);
    this.root.append(this.details);
    this.screen = new Screen();
    this.next = -1; // the offset of what was not read yet; -1: nothing was
    this.busy = false;
    this.over = false; // all was read
    this.details.addEventListener("toggle", () => this.read());
  }

  /** Shows the lines that match, or none for an empty pattern. */
  async search() {
    const pattern = this.pattern.value, search = ++this.searches;
    this.found.hidden = pattern === "";
    if (pattern === "") return;
    this.say("It is being searched.");
    try {
      const found = await searchLog(this.session, this.id, pattern);
      if (search !== this.searches) return; // There is a newer one.
      const lines = found.matches.map((m) => {
        const line = element("div", "line");
        line.append(element("span", "note", `${m.number}: `), harmless(m.text));
        return line;
      });
      const notes = [];
      if (found.matches.length === 0) notes.push("no line matches");
      if (found.more) notes.push(`more than ${found.matches.length} lines match: these are the first`);
      if (found.dropped > 0) notes.push(`${bytes(found.dropped)} are not kept, and were not searched`);
      this.found.replaceChildren(...lines, ...notes.map((note) => element("div", "note", note)));
    } catch (e) {
      if (search === this.searches) this.say(e instanceof Failure ? e.message : String(e));
    }
  }

  /** Stops the job, at the second click. @param {number} now  when it was clicked, and not when there was time for it */
  async end(now) {
    if (this.asked === 0 || now - this.asked > SURE_UNTIL) {
      this.asked = now;
      this.stop.textContent = "Stop it? Click again";
      setTimeout(() => {
        if (this.asked !== now) return;
        this.asked = 0;
        this.stop.textContent = "Stop";
      }, SURE_UNTIL);
      return;
    }
    if (now - this.asked < SURE_FROM) return;
    this.asked = 0;
    this.stop.disabled = true;
    this.stop.textContent = "It is being stopped";
    try {
      this.show(await stopJob(this.session, this.id));
    } catch (e) {
      const known = e instanceof Failure && e.status > 0;
      this.say(known ? `Not stopped: ${e.message}` : "The connection is lost: it is not known whether it was stopped.");
    } finally {
      this.stop.disabled = false;
      this.stop.textContent = "Stop";
    }
  }

  /** @param {string} text */
  say(text) {
    this.found.hidden = false;
    this.found.replaceChildren(element("div", "note", harmless(text)));
  }

  /** @param {import("./api.mjs").Job} job @param {boolean} [stopping]  whether a person may stop it */
  show(job, stopping) {
    this.stop.hidden = job.finished || !(stopping ?? !this.stop.hidden);
    const how = job.exit ? `${job.state}, ${job.exit}` : job.state;
    this.summary.replaceChildren(
      element("span", job.failed ? "bad" : job.finished ? "good" : "runs", harmless(how)), " ",
      element("code", "script", harmless(job.command).slice(0, 300)), " ",
      element("span", "note", `${job.id}, ${duration(job.elapsed_ms)}, ${bytes(job.bytes)}`));
    this.log.setAttribute("aria-label", `Output of ${job.id}`);
    void this.read();
  }

  /** Reads what there is more in the log, if it is shown. */
  async read() {
    if (!this.details.open || this.busy || this.over) return;
    this.busy = true;
    try {
      for (;;) {
        const part = await getLog(this.session, this.id, this.next);
        if (this.next < 0 && part.offset > 0) this.log.append(element("div", "note", `the first ${bytes(part.offset)} are left out`));
        else if (part.dropped > 0) this.log.append(element("div", "note", `${bytes(part.dropped)} are not kept any more`));
        for (const line of this.screen.write(decode(part.text ?? ""))) this.add(lineElement(line, "line"));
        this.log.querySelector(".open")?.remove();
        this.over = part.finished && part.next >= part.end;
        const open = this.screen.open();
        if (open) this.add(lineElement(open, this.over ? "line" : "line open"));
        this.log.scrollTop = this.log.scrollHeight;
        const more = part.next < part.end && part.next > this.next;
        this.next = part.next;
        if (!more || !this.details.open) return;
      }
    } catch { // It is tried again with the next list.
    } finally {
      this.busy = false;
    }
  }

  /** @param {HTMLElement} line */
  add(line) {
    this.log.append(line);
    while (this.log.childElementCount > MOST_LINES) this.log.firstElementChild?.remove();
  }
}

/** Jobs shows those of one session. */
export class Jobs {
  /** @param {HTMLElement} root @param {HTMLElement} summary @param {HTMLElement} list */
  constructor(root, summary, list) {
    this.root = root;
    this.summary = summary;
    this.list = list;
    this.session = "";
    /** @type {Map<string, Job>} */
    this.all = new Map();
  }

  /** @param {string} session */
  clear(session) {
    this.session = session;
    this.all.clear();
    this.list.replaceChildren();
    this.root.hidden = true;
  }

  /** @param {import("./api.mjs").JobList} answer */
  show(answer) {
    const there = new Set();
    for (const job of answer.jobs) {
      there.add(job.id);
      let one = this.all.get(job.id);
      if (!one) {
        one = new Job(this.session, job.id);
        this.all.set(job.id, one);
        this.list.prepend(one.root); // The newest first.
      }
      one.show(job, answer.stopping);
    }
    for (const [id, one] of this.all) {
      if (there.has(id)) continue;
      one.root.remove();
      this.all.delete(id);
    }
    const run = answer.jobs.filter((j) => !j.finished).length;
    this.summary.textContent = `Jobs: ${run} running, ${answer.jobs.length - run} ended` + (answer.more > 0 ? `, ${answer.more} older ones not shown` : "");
    this.root.hidden = answer.jobs.length === 0;
  }
}
