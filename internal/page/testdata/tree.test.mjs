// Run by TestThePagesParser, or: node --test internal/page/testdata
import assert from "node:assert/strict";
import { test } from "node:test";
import { arrange, DEEPEST } from "../assets/tree.mjs";

/** @typedef {{name: string, id: string, ended?: object, forked_from?: {id: string, name: string}}} Session */

/** A session, of a text like "fork<parent", with @machine and a + at its end if it is of another machine, or has ended. @param {string} text @returns {Session} */
function session(text) {
  const [of = "", machine] = text.replace("+", "").split("@");
  const [id = "", from] = of.split("<");
  return { name: machine ? `name@${machine}` : "name", id, ...(text.endsWith("+") ? { ended: {} } : {}), ...(from ? { forked_from: { id: from, name: `name of ${from}` } } : {}) };
}

/** What is shown of sessions: each behind a dash for each that it is below. @param {...string} texts */
function shown(...texts) {
  const sessions = texts.map(session);
  const list = arrange(sessions);
  assert.equal(list.length, sessions.length);
  assert.deepEqual(new Set(list.map((one) => one.session)), new Set(sessions), "each is there, once");
  /** @type {Map<Session, number>} */
  const depth = new Map();
  return list.map(({ session, over }) => {
    const of = over === undefined ? 0 : 1 + (depth.get(over) ?? NaN); // It is before this one.
    depth.set(session, of);
    return "-".repeat(of) + session.id;
  });
}

test("forks are below their parents, in the order of the list", () => {
  for (const [want = "", ...texts] of [
    [""],
    ["b a", "b", "a"],
    ["a -c -b", "c<a", "b<a", "a"],
    ["d a -b --c", "d", "c<b", "b<a", "a"],
    ["c a -b", "c<gone", "b<a", "a"],
    ["a b", "a", "b<a+"],
    ["b a", "b<a", "a+"],
    ["c b a", "c<a@x", "b<a@y", "a"],
    ["a c -b a", "a", "c@x", "b<c@x", "a@x"],
    ["c b -d", "c<b", "d<b+", "b+"],
  ]) assert.equal(shown(...texts).join(" "), want, texts.join(" "));
});

test("what lies hides none, and ends", () => {
  for (const [want = "", ...texts] of [
    ["a", "a<a"],
    ["a -b", "a<b", "b<a"],
    ["x a -c --b", "a<b", "b<c", "c<a", "x"],
    ["a -b -d -c", "a<b", "b<a", "d<a", "c<a"],
    ["a -b a", "a", "a", "b<a"],
    ["a -a", "a", "a<a"],
    ["a -b", "a<b+", "b<a+"],
  ]) assert.equal(shown(...texts).join(" "), want, texts.join(" "));
});

test("a long line of forks is not indented without end, and takes no time", () => {
  const many = Array.from({ length: 5000 }, (_, i) => (i === 0 ? "0" : `${i}<${i - 1}`));
  for (const texts of [many, many.toReversed(), ["0<4999", ...many.slice(1)]]) {
    const list = shown(...texts);
    assert.equal(list[DEEPEST], "-".repeat(DEEPEST) + DEEPEST);
    assert.equal(list.at(-1), "-".repeat(DEEPEST) + 4999);
  }
});
