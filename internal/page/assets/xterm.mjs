// xterm.js as the page uses it: to show terminals that are there, and recordings of some. Programs get no clipboard (OSC 52), and a link is
// followed when the person confirms it.
import { styleByCSSOM } from "./styles.mjs";
import { harmless } from "./text.mjs";

/** @typedef {import("./vendor/xterm.mjs").Terminal} Terminal */

/** The most lines that have left the screen at its top. */
const SCROLLBACK = 2000;

/** The size of characters in pixels, and the least that a large terminal is made to fit by. */
export const FONT = 14;
const LEAST_FONT = 6;

const THEME = { background: "#16181b", foreground: "#dfe1e4", cursor: "#dfe1e4" };

/** xterm.js, which is loaded when the first terminal is opened. */
export const load = (() => {
  /** @type {Promise<[typeof import("./vendor/xterm.mjs"), typeof import("./vendor/addon-fit.mjs")]> | undefined} */
  let loaded;
  return () => {
    if (!loaded) {
      styleByCSSOM();
      loaded = Promise.all([import("./vendor/xterm.mjs"), import("./vendor/addon-fit.mjs")]);
    }
    return loaded;
  };
})();

/**
 * Makes a terminal that shows, and takes no keys. Its caller opens it.
 * @param {typeof import("./vendor/xterm.mjs").Terminal} Terminal
 * @param {boolean} aloud  whether a screen reader is told what is printed
 * @returns {Terminal}
 */
export function makeTerminal(Terminal, aloud) {
  return new Terminal({
    scrollback: SCROLLBACK, fontSize: FONT, lineHeight: 1.15, fontFamily: getComputedStyle(document.documentElement).getPropertyValue("--mono"), theme: THEME,
    disableStdin: true, altClickMovesCursor: false, screenReaderMode: aloud, logLevel: "off",
    linkHandler: { activate: (_, url) => follow(url), allowNonHttpProtocols: false },
  });
}

/** Has the characters of a terminal have a size in which it fits into an element. @param {Terminal} term @param {HTMLElement} into */
export function shrink(term, into) {
  const screen = term.element?.querySelector(".xterm-screen");
  if (!screen || screen.clientWidth === 0) return;
  const now = term.options.fontSize ?? FONT;
  const room = Math.min(into.clientWidth / screen.clientWidth, into.clientHeight / screen.clientHeight);
  const font = Math.max(LEAST_FONT, Math.min(FONT, Math.floor(now * room)));
  if (font !== now) term.options.fontSize = font;
}

/** Opens a link that a program has printed, if the person wants that. @param {string} url */
function follow(url) {
  if (!/^https?:\/\//i.test(url)) return;
  if (window.confirm(`A program on the terminal wants this to be opened:\n\n${harmless(url)}`)) window.open(url, "_blank", "noopener,noreferrer");
}
