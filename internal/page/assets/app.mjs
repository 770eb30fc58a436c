// The page: which sessions there are, and what happens in the one that is chosen.
import { Failure, getJobs, getQuestions, getSessions, getTerminals, streamEvents, takeToken } from "./api.mjs";
import { Inbox } from "./inbox.mjs";
import { Jobs } from "./jobs.mjs";
import { buttonOf, showButtons } from "./list.mjs";
import { element, Log } from "./log.mjs";
import { Notices } from "./notices.mjs";
import { Recordings } from "./recordings.mjs";
import { Shares } from "./shares.mjs";
import { Terminals } from "./terminals.mjs";
import { duration, harmless } from "./text.mjs";
import { arrange } from "./tree.mjs";

/** How often the lists are asked for, in ms: while somebody looks, and else. */
const OFTEN = 2000, SELDOM = 10000;

/** @param {string} id */
const by = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

const log = new Log(by("log"));
const jobs = new Jobs(by("jobs"), by("jobs-summary"), by("jobs-list"));
const terminals = new Terminals();
const recordings = new Recordings(() => {
  if (terminals.view?.taken) terminals.view.back(); // What is typed into it could not be seen.
});
const inbox = new Inbox();
const notices = new Notices((name) => {
  const s = sessions.find((one) => one.name === name && !one.ended);
  if (s) pick(key(s));
});
let noticed = -1; // the number of the last one; negative: it is not known yet
const NEWS = "limpet-news"; // an event, which has the lists be asked for now
const shares = new Shares(() => sessions.find((s) => key(s) === chosen), () => terminals.view?.id ?? "");
/** What this page is for, if it was shared; null if it is the owner's, undefined until that is known. @type {import("./api.mjs").SessionList["share"] | null} */
let shared;

/** @type {import("./api.mjs").Session[]} */
let sessions = []; // in the order of the list
/** What each of them is indented below. @type {Map<import("./api.mjs").Session, import("./api.mjs").Session | undefined>} */
let places = new Map();
/** @type {import("./api.mjs").Session | undefined} */
let newest;
let chosen = ""; // its key
const CHOSEN = "limpet-chosen"; // where it is kept, so that a reload shows the same
let following = new AbortController();

/** What tells one session from others, also of the same name. @param {import("./api.mjs").Session} s */
const key = (s) => `${s.name} ${s.id}`;

/** @param {number} ms @returns {Promise<void>} */
const pause = (ms) => new Promise((resolve) => {
  const timer = setTimeout(done, ms);
  function done() {
    clearTimeout(timer);
    for (const name of ["visibilitychange", NEWS]) document.removeEventListener(name, done);
    resolve();
  }
  for (const name of ["visibilitychange", NEWS]) document.addEventListener(name, done);
});

/** @param {string} text @param {boolean} [bad] */
function say(text, bad) {
  const status = by("status");
  if (status.textContent !== text) status.textContent = text;
  status.classList.toggle("bad", bad === true);
}

/** What is wrong, in words. @param {unknown} e */
function words(e) {
  if (!(e instanceof Failure)) return String(e);
  if (e.status === 0) return "The connection is lost: trying again. Is limpet serve still running?";
  if (e.status === 401) return "This link is not valid any more: start limpet serve, and open the link that it prints. If somebody has shared it with you, ask for another one: it was revoked, or its time is over.";
  return e.message;
}

/** Shows the list. */
function showSessions() {
  showButtons(by("sessions"), sessions, key, (button, s) => {
    button.className = s.running ? "running" : s.ended ? "ended" : "";
    if (key(s) === chosen) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
    const lines = [element("span", "name", s.name), element("span", "what", harmless(summary(s)))];
    if (s.forked_from && places.get(s)?.id !== s.forked_from.id) lines.push(element("span", "what", `forked from ${harmless(s.forked_from.name)}`));
    if (s.checkpoints) lines.push(element("span", "what", `checkpoints: ${harmless(s.checkpoints.join(", "))}`));
    button.replaceChildren(...lines);
  }, pick, (s) => places.get(s));
  by("none").hidden = sessions.length > 0;
  const run = sessions.filter((s) => s.running).length;
  notices.setTitle(run > 0 ? `(${run}) limpet` : "limpet");
}

/** Says which machines do not answer. @param {import("./api.mjs").Machine[]} machines */
function showMachines(machines) {
  const lost = machines.flatMap((m) => m.error ? [m.error.includes(m.target) ? m.error : `${m.target}: ${m.error}`] : []);
  const list = by("machines");
  list.hidden = lost.length === 0;
  if (lost.join("\n") === list.dataset["said"]) return; // A reader of screens would say it again.
  list.dataset["said"] = lost.join("\n");
  list.replaceChildren(...lost.map((text) => element("li", "", harmless(text))));
}

/** @param {string} of  a key */
const button = (of) => buttonOf(by("sessions"), of);

/** What a session does, in a line. @param {import("./api.mjs").Session} s */
function summary(s) {
  if (s.ended) return s.ended.why;
  if (!s.answers) return "does not answer";
  if (s.running) return "$ " + s.running.replace(/\n.*/s, "").slice(0, 80);
  return s.dir ?? "";
}

/** Shows what is known of the chosen one. */
function showFacts() {
  const s = sessions.find((one) => key(one) === chosen);
  if (!s) return;
  by("name").textContent = s.name;
  const facts = [];
  const date = (/** @type {string} */ t) => new Date(t).toLocaleString();
  if (s.ended) {
    facts.push(s.ended.why);
    if (!s.ended.at.startsWith("0001")) facts.push(date(s.ended.at));
    if (s.ended.dir) facts.push(`was in ${s.ended.dir}`);
    if (s.ended.running) facts.push(`ran ${s.ended.running.slice(0, 200)}`);
  } else if (shared?.terminal) facts.push("one of its terminals is shared with you");
  else if (!s.answers) facts.push("its process does not answer");
  else {
    facts.push(s.running ? "runs" : s.state ?? "", `in ${s.dir ?? ""}`, `made ${date(s.created)}`);
    if (!s.running) facts.push(`last used ${duration(s.idle_ms)} ago`);
    facts.push(`commands: ${s.commands}`);
    if (s.jobs > 0) facts.push(`jobs: ${s.jobs}`);
    if (s.terminals > 0) facts.push(`terminals: ${s.terminals}`);
    if (s.checkpoints) facts.push(`checkpoints: ${s.checkpoints.join(", ")}`);
    if (s.policy) facts.push(`sandbox: ${s.policy}`);
  }
  if (s.forked_from) facts.push(`forked from ${s.forked_from.name}`);
  by("facts").textContent = harmless(facts.join(" · "));
}

/** Is choose, of a person, who wants to see the session. @param {string} to  a key */
function pick(to) {
  recordings.close();
  choose(to);
}

/** @param {string} to  a key */
function choose(to) {
  if (to === chosen) return;
  chosen = to;
  following.abort();
  following = new AbortController();
  const s = sessions.find((one) => key(one) === to);
  by("main").hidden = !s;
  if (!s) {
    void follow("", following.signal);
    return;
  }
  sessionStorage.setItem(CHOSEN, to);
  log.clear(s.name);
  jobs.clear(s.name);
  terminals.clear(s.name);
  shares.close();
  showSessions();
  showFacts();
  button(to)?.scrollIntoView({ block: "nearest" });
  if (s.ended) {
    log.note("The session has ended: what it printed is not remembered.");
    void follow("", following.signal);
    return;
  }
  if (shared?.terminal) terminals.open(shared.terminal);
  else void follow(s.name, following.signal);
  void watchSession(s.name, following.signal);
}

/** Shows the events of a session, and notices, until another one is chosen. @param {string} name  "" for none @param {AbortSignal} signal */
async function follow(name, signal) {
  let keeper = "", seq = 0, wait = 250, lost = false;
  while (!signal.aborted) {
    if (shared && name === "") return; // Notices are of all sessions.
    try {
      await streamEvents(name, keeper, seq, shared ? null : noticed, signal, (e) => {
        if (signal.aborted) return;
        if (lost) {
          lost = false;
          log.note("The connection is back.");
        }
        wait = 250;
        if (e.kind === "hello") {
          if (keeper !== "" && !e.resumed) log.note("Another process keeps the session from here on.");
          if (!e.resumed) seq = 0;
          keeper = e.keeper;
          noticed = e.notices;
        } else if (e.kind === "told") {
          noticed = e.notice.number;
          notices.tell(e.notice);
          document.dispatchEvent(new Event(NEWS));
        } else if (e.kind === "over") {
          if (e.why === "ended") {
            log.note("The session has ended.");
            name = keeper = "";
          }
          if (e.why === "lost") log.note(`The session is not watched any more: ${harmless(e.error)}; trying again`);
        } else {
          if (seq > 0 && e.seq > seq + 1) log.note(`${e.seq - seq - 1} events are missing here: they came too fast, or are too old.`);
          if (seq === 0 && e.seq > 1) log.note("What happened before is not remembered.");
          seq = e.seq;
          if (e.kind !== "notice" || e.notice) log.event(e); // A page that was shared is not told what it says.
        }
      });
    } catch (e) {
      if (signal.aborted) return;
      if (e instanceof Failure && e.status === 401) return;
      if (!lost && name !== "") {
        lost = true;
        log.note(words(e));
      }
    }
    await pause(wait * (1 + Math.random()));
    wait = Math.min(wait * 2, 10000);
  }
}

/** Asks for the jobs and the terminals of a session. @param {string} name @param {AbortSignal} signal */
async function watchSession(name, signal) {
  while (!signal.aborted) {
    try {
      const [allJobs, allTerminals] = await Promise.all([shared?.terminal ? null : getJobs(name, signal), getTerminals(name, signal)]);
      if (signal.aborted) return;
      if (allJobs) jobs.show(allJobs);
      terminals.show(allTerminals);
    } catch (e) {
      if (e instanceof Failure && (e.status === 401 || e.status === 404)) return;
    }
    await pause(document.hidden ? SELDOM : OFTEN);
  }
}

/** Asks for the lists for as long as the page is open. */
async function watchLists() {
  for (;;) {
    try {
      const [all, early] = await Promise.all([getSessions(), shared === null ? getQuestions() : null]);
      if (shared === undefined) {
        shared = all.share ?? null;
        if (shared) {
          by("notify").hidden = true;
          by("none").textContent = "The session that was shared with you has ended.";
        }
        void follow("", following.signal);
      }
      const asked = shared ? null : early ?? await getQuestions(); // By a share link they are not to be had.
      shares.show(!shared, all.typing);
      void recordings.update(!shared && all.recordings === true);
      by("log").hidden = Boolean(shared?.terminal);
      const list = all.sessions.reverse().sort((a, b) => Number(Boolean(a.ended)) - Number(Boolean(b.ended))); // The newest first, ended ones last.
      newest = list[0];
      const arranged = arrange(list);
      sessions = arranged.map((one) => one.session);
      places = new Map(arranged.map((one) => [one.session, one.over]));
      showSessions();
      showMachines(all.machines ?? []);
      if (asked) inbox.show(asked);
      const there = sessions.find((s) => key(s) === chosen);
      if (there) showFacts();
      else choose(first());
      const until = shared ? `, shared with you until ${new Date(shared.expires).toLocaleString()}` : "";
      say((all.typing || asked?.answering ? "connected" : "connected, read-only") + until);
    } catch (e) {
      say(words(e), true);
      if (e instanceof Failure && e.status === 401) return;
    }
    await pause(document.hidden ? SELDOM : OFTEN);
  }
}

/** The session that is shown first: that of before a reload, one that runs something, or the newest. */
function first() {
  const before = sessionStorage.getItem(CHOSEN);
  const s = sessions.find((one) => key(one) === before) ?? sessions.find((one) => one.running) ?? newest;
  return s ? key(s) : "";
}

/** Moves the choice. @param {number} by  1 for the next session, -1 for the one before */
function move(by) {
  const at = sessions.findIndex((s) => key(s) === chosen);
  const s = sessions[Math.min(Math.max(at + by, 0), sessions.length - 1)];
  if (!s) return;
  const to = key(s);
  pick(to);
  button(to)?.focus();
}

document.addEventListener("keydown", (e) => { // What is typed into a terminal does not come here: see view.mjs.
  if (e.ctrlKey || e.altKey || e.metaKey) return;
  const inList = document.activeElement?.closest("#sessions") != null;
  if (e.key === "j" || inList && (e.key === "ArrowDown" || e.key === "ArrowRight")) move(1);
  else if (e.key === "k" || inList && (e.key === "ArrowUp" || e.key === "ArrowLeft")) move(-1);
  else if (e.key === "G") log.toEnd();
  else return;
  e.preventDefault();
});
by("announce").addEventListener("change", (e) => {
  by("log").setAttribute("aria-live", /** @type {HTMLInputElement} */ (e.target).checked ? "polite" : "off");
});
by("down").addEventListener("click", () => log.toEnd());
by("log").addEventListener("scroll", () => { by("down").hidden = log.isAtEnd(); });
window.addEventListener("hashchange", () => {
  if (takeToken()) location.reload(); // Somebody has put another link into the address bar.
});

if (takeToken()) {
  say("connecting");
  void watchLists();
} else say("Open the link that limpet serve has printed: this address is not all of it.", true);
