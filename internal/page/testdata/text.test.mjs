// Run by TestThePagesParser, or: node --test internal/page/testdata
import assert from "node:assert/strict";
import { test } from "node:test";
import { bytes, decode, duration, harmless, MOST_CELLS, Screen } from "../assets/text.mjs";

/** @param {string | Uint8Array} text */
const encode = (text) => (typeof text === "string" ? new TextEncoder().encode(text) : text);

/**
 * What is shown of some pieces, as text, the open line with a > at its end.
 * @param {(string | Uint8Array)[]} pieces
 */
function shown(...pieces) {
  const s = new Screen();
  const lines = pieces.flatMap((piece) => s.write(encode(piece))).map((l) => l.runs.map((r) => r.text).join(""));
  const open = s.open();
  return open ? [...lines, open.runs.map((r) => r.text).join("") + ">"] : lines;
}

/** The runs of the one line that is printed. @param {string} text */
function runs(text) {
  const [line] = new Screen().write(encode(text + "\n"));
  return line?.runs.map((r) => [r.text, r.cls]);
}

test("lines are those of a terminal in the end", () => {
  for (const [text = "", ...want] of [
    ["one\ntwo\n", "one", "two"],
    ["one\r\ntwo", "one", "two>"],
    ["10%\r20%\r100%\n", "100%"],
    ["long text\rab\n", "abng text"],
    ["long text\r\x1b[Kab\n", "ab"],
    ["long text\x1b[2K\rab\n", "ab"],
    ["abc\x1b[1K|\n", "   |"],
    ["abc\b\bX\n", "aXc"],
    ["a\tb\n", "a       b"],
    ["\x1b[5Gx\x1b[1Gy\x1b[2Cz\n", "y  zx"],
    ["ab\x1b[9DX\n", "Xb"],
    ["\n\n", "", ""],
    ["Ünïcode ✓ 漢字 😀\n", "Ünïcode ✓ 漢字 😀"],
  ]) assert.deepEqual(shown(text), want, JSON.stringify(text));
});

test("pieces may be cut anywhere", () => {
  const whole = "a\x1b[31mé😀\x1b]0;title\x1b\\b\x1b[0m\r\x1b[Kend\x1b(B\n\x1bPq#1\x1b\\next";
  const all = encode(whole);
  const want = shown(whole);
  assert.deepEqual(want, ["end", "next>"]);
  for (let i = 0; i <= all.length; i++) assert.deepEqual(shown(all.slice(0, i), all.slice(i)), want, `cut at ${i}`);
  assert.deepEqual(shown(...Array.from(all, (b) => Uint8Array.of(b))), want);
});

test("colours are classes", () => {
  assert.deepEqual(runs("a\x1b[31mb\x1b[0mc"), [["a", ""], ["b", "f1"], ["c", ""]]);
  assert.deepEqual(runs("\x1b[1;4;92;41mx\x1b[22;24my\x1b[39;49mz"), [["x", "f10 b1 bold underline"], ["y", "f10 b1"], ["z", ""]]);
  assert.deepEqual(runs("\x1b[7mx\x1b[31my\x1b[27mz"), [["x", "f-bg i-fg"], ["y", "f-bg i1"], ["z", "f1"]]);
  assert.deepEqual(runs("\x1b[38;5;196mx\x1b[48;2;0;0;250my\x1b[m"), [["x", "f9"], ["y", "f9 b4"]]);
  assert.deepEqual(runs("\x1b[38:5:2mx\x1b[38;5;240my"), [["x", "f2"], ["y", "f8"]]);
  assert.deepEqual(runs("\x1b[8msecret\x1b[28m."), [["secret.", ""]]);
  assert.deepEqual(runs("\x1b[999;38mx"), [["x", ""]]);
});

test("other escapes leave nothing, and hide nothing", () => {
  for (const [text = "", ...want] of [
    ["\x1b]0;title\x07a\n", "a"],
    ["\x1b]8;;http://x/\x1b\\link\x1b]8;;\x1b\\\n", "link"],
    ["\x1b]52;c;aGk=\x07a\x1b[?1049h\x1b[2J\x1b[Hb\x1bc\x1b7c\n", "abc"],
    ["a\x07\x00\x01\x7fb\n", "ab"],
    ["\u009b31mred\u009d0;t\u009c.\n", "red."],
    ["\x1b]0;no end\nseen\n", "", "seen"],
    ["\x1bPno end\nseen\n", "", "seen"],
    ["\x1b[31\nseen\n", "", "seen"],
    ["\x1b]0;a\x18b\n", "b"],
    ["<script>alert(1)</script>&amp;\n", "<script>alert(1)</script>&amp;"],
    ["a\u202eb\u2066c\n", "a\ufffdb\ufffdc"],
  ]) assert.deepEqual(shown(text), want, JSON.stringify(text));
});

test("bytes that are no UTF-8 are shown as such", () => {
  assert.deepEqual(shown(Uint8Array.of(0x61, 0xff, 0xc3, 0x0a, 0x62, 0x0a)), ["a\ufffd\ufffd", "b"]);
});

test("a line of 10 MB is bounded", () => {
  const s = new Screen();
  const piece = new Uint8Array(1 << 20).fill(0x78);
  for (let i = 0; i < 10; i++) assert.deepEqual(s.write(piece), []);
  const [line] = s.write(encode("\n"));
  assert.equal(line?.runs[0]?.text.length, MOST_CELLS);
  assert.equal(line?.left, (10 << 20) - MOST_CELLS);
  assert.equal(s.open(), null);
});

test("a flood of escapes keeps nothing", () => {
  const s = new Screen();
  assert.deepEqual(s.write(encode("\x1b[" + "1;".repeat(1 << 20))), []);
  assert.ok(s.sequence.length <= 256);
  assert.deepEqual(s.write(encode("\x1b[0m\x1b[31m".repeat(1 << 17))), []);
  assert.ok(s.style.cls.length < 100);
  const [line] = s.write(encode("\x1b[65535Cx\n"));
  assert.ok(line && line.runs.reduce((n, r) => n + r.text.length, 0) <= MOST_CELLS);
});

test("an operating system command that never ends hides no more than its bound", () => {
  const s = new Screen();
  s.write(encode("\x1b]0;" + "x".repeat(10000)));
  assert.notEqual(s.open(), null);
});

test("scripts show what they hide", () => {
  assert.equal(harmless("a\r\n\tb\x1b[8mc\rd\u202ee\x7f\u0085"), "a\n\tb\u241b[8mc\u240dd\ufffde\u2421\ufffd");
});

test("what is open ends with the stream", () => {
  const s = new Screen();
  s.write(encode("open"));
  assert.equal(s.end()?.runs[0]?.text, "open");
  assert.equal(s.end(), null);
});

test("numbers are for people", () => {
  assert.deepEqual([12.4, 1500, 61000, 3.7e6, 1e8].map(duration), ["12 ms", "1.5 s", "1 min 1 s", "1 h 1 min", "1 d 3 h"]);
  assert.deepEqual([5, 2048, 3 << 20].map(bytes), ["5 bytes", "2.0 KiB", "3.0 MiB"]);
  assert.deepEqual(decode("AP9h"), Uint8Array.of(0, 255, 97));
});
