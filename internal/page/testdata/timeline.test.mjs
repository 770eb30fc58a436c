// Run by TestThePagesParser, or: node --test internal/page/testdata
import assert from "node:assert/strict";
import { test } from "node:test";
import { clock, MOST_MARKERS, Timeline } from "../assets/timeline.mjs";

/** @param {import("../assets/timeline.mjs").Cast[]} events */
function timeline(...events) {
  const t = new Timeline();
  for (const e of events) t.add(e);
  return t;
}

test("pauses are shortened, and everything else is when it was", () => {
  const t = timeline(["o", 0.5, "a"], ["o", 2.5, "b"], ["m", 100, "here"], ["o", 100, "c"], ["r", 101.5, "80x24"], ["o", 4000, "d"]);
  assert.deepEqual(t.events.map((e) => [e.at, e.data]), [[0.5, "a"], [2.5, "b"], [4.5, "c"], [6, "80x24"], [8, "d"]]);
  assert.deepEqual(t.markers, [{ at: 4.5, label: "here" }]);
  assert.deepEqual([t.length, t.recorded], [8, 4000]);
});

test("a pause before the first event and one before a marker at the end count", () => {
  const t = timeline(["o", 60, "a"], ["m", 61, ""]);
  assert.deepEqual([t.events[0]?.at, t.length, t.recorded], [2, 3, 61]);
  assert.deepEqual([timeline().length, timeline().until(5)], [0, 0]);
});

test("times have microseconds", () => {
  const t = timeline(["o", 0.1, "a"], ["o", 0.3, "b"], ["o", 9.172433, "c"]);
  assert.deepEqual(t.events.map((e) => e.at), [0.1, 0.3, 2.3]);
  assert.equal(timeline(["o", 0.000001, "a"], ["o", 2.5, "b"], ["o", 2.672433, "c"]).length, 2.172434);
});

test("times do not go back", () => {
  const t = timeline(["o", 3, "a"], ["o", 1, "b"], ["o", 4, "c"]);
  assert.deepEqual(t.events.map((e) => e.at), [2, 2, 3]);
});

test("events are found by their time", () => {
  const t = timeline(["o", 0, "a"], ["o", 0, "b"], ["o", 1, "c"], ["o", 1, "d"], ["o", 2, "e"]);
  for (const [at = 0, want] of [[-1, 0], [0, 2], [0.5, 2], [1, 4], [1.9, 4], [2, 5], [9, 5]]) assert.equal(t.until(at), want, String(at));
});

test("output is drawn in pieces, and a size by itself", () => {
  const t = timeline(["o", 0, "ab"], ["o", 0, "cd"], ["o", 0, "ef"], ["r", 0, "100x30"], ["r", 0, "80x24"], ["o", 0, "0123456789"], ["o", 0, "x"]);
  assert.deepEqual(t.piece(0, 7, 4), { text: "abcd", next: 2 });
  assert.deepEqual(t.piece(0, 7, 100), { text: "abcdef", next: 3 });
  assert.deepEqual(t.piece(0, 1, 100), { text: "ab", next: 1 });
  assert.deepEqual(t.piece(3, 7, 4), { text: "", size: [100, 30], next: 4 });
  assert.deepEqual(t.piece(4, 7, 4), { text: "", size: [80, 24], next: 5 });
  assert.deepEqual(t.piece(5, 7, 4), { text: "0123456789", next: 6 });
  assert.deepEqual(t.piece(7, 7, 4), { text: "", next: 7 });
});

test("markers are bounded", () => {
  const t = new Timeline();
  for (let i = 0; i < MOST_MARKERS + 3; i++) t.add(["m", i, String(i)]);
  assert.deepEqual([t.markers.length, t.left], [MOST_MARKERS, 3]);
});

test("a clock has hours where there are some", () => {
  for (const [seconds, want] of /** @type {const} */ ([[0, "0:00"], [59.9, "0:59"], [61, "1:01"], [3600, "1:00:00"], [90061, "25:01:01"], [-1, "0:00"]])) {
    assert.equal(clock(seconds), want);
  }
});
