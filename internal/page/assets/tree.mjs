// Which session stands below which: a fork below the one that it came from.

/** How deep forks are indented: there is no room for more. A fork of one that is as deep stands beside it. */
export const DEEPEST = 5;

/** What tells sessions apart: another machine may say any ID. @param {{name: string}} s  of the machine @param {string} id */
const key = (s, id) => `${id} ${s.name.replace(/^[^@]*/, "")}`;

/**
 * Orders sessions: each fork comes behind its parent, and behind what was forked from that before it in the list, and says by over below which
 * session it is indented. It is below none if its parent is not there, or has ended and it has not, or the other way round: then that is for the
 * page to say in words. What sessions say may be wrong, also that they come from each other: each of them is in the answer, once.
 * @template {{name: string, id: string, ended?: object, forked_from?: {id: string, name: string}}} S
 * @param {S[]} sessions  those that have ended last
 * @returns {{session: S, over: S | undefined}[]}
 */
export function arrange(sessions) {
  /** @type {{session: S, over: S | undefined}[]} */
  const out = [];
  for (const ended of [false, true]) {
    const group = sessions.filter((s) => Boolean(s.ended) === ended);
    /** @type {Map<string, S>} */
    const byID = new Map();
    for (const s of group) if (!byID.has(key(s, s.id))) byID.set(key(s, s.id), s);
    /** @type {Map<S, S[]>} */
    const forks = new Map();
    /** @type {S[]} */
    const first = []; // those without a parent in the group
    for (const s of group) {
      const parent = s.forked_from && byID.get(key(s, s.forked_from.id));
      if (!parent || parent === s) first.push(s);
      else forks.set(parent, [...(forks.get(parent) ?? []), s]);
    }
    /** @type {Set<S>} */
    const placed = new Set();
    // Sessions that come from each other are below none without a parent. The one that is first in the list is taken for that.
    for (const start of [...first, ...group]) {
      /** @type {{session: S, over: S | undefined, depth: number}[]} */
      const open = [{ session: start, over: undefined, depth: 0 }];
      for (let at = open.pop(); at; at = open.pop()) {
        const { session, over, depth } = at;
        if (placed.has(session)) continue;
        placed.add(session);
        out.push({ session, over });
        const below = depth < DEEPEST ? { over: session, depth: depth + 1 } : { over, depth };
        for (const fork of (forks.get(session) ?? []).reverse()) open.push({ session: fork, ...below });
      }
    }
  }
  return out;
}
