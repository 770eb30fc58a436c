// What programs print, as lines for people: what a terminal would show in the end. It has no part in the page, so that it can be tested
// without a browser. What comes out is text with the names of classes, and never markup.

/** The most cells of a line, in characters. What a line has beyond is counted, and not kept. */
export const MOST_CELLS = 4096;

/** The most characters of an escape sequence. One that is longer is none: an end that never comes may hide nothing. */
const MOST_SEQUENCE = 4096;

/**
 * @typedef {{text: string, cls: string}} Run  text in one style; cls is "" or classes, separated by blanks
 * @typedef {{runs: Run[], left: number}} Line  left: characters that are left out at its end
 */

/**
 * Bytes that others could hide something with are shown as what they are not: characters that turn the direction of text, and controls.
 * Line breaks and tabs stay.
 * @param {string} text
 */
export function harmless(text) {
  return text.replace(/\r\n/g, "\n")
    .replace(/[\u0000-\u0008\u000b-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/\u007f/g, "\u2421")
    .replace(/[\u0080-\u009f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");
}

// The states between characters.
const GROUND = 0, ESCAPE = 1, CSI = 2, STRING = 3, STRING_ESCAPE = 4, CHARSET = 5;

/** Style is that of the characters to come. */
class Style {
  constructor() {
    this.cls = "";
    this.reset();
  }

  reset() {
    this.fg = this.bg = "";
    this.bold = this.dim = this.italic = this.underline = this.inverse = this.strike = false;
    this.cls = "";
  }

  /**
   * Concealed text (8) is shown: a program may not hide from a person what it prints.
   * @param {number[]} params of SGR (ECMA-48, 8.3.117), and what xterm adds for colours
   */
  apply(params) {
    for (let i = 0; i < params.length; i++) {
      const p = params[i] ?? 0;
      if (p === 0) this.reset();
      else if (p === 1) this.bold = true;
      else if (p === 2) this.dim = true;
      else if (p === 3) this.italic = true;
      else if (p === 4 || p === 21) this.underline = true;
      else if (p === 7) this.inverse = true;
      else if (p === 9) this.strike = true;
      else if (p === 22) this.bold = this.dim = false;
      else if (p === 23) this.italic = false;
      else if (p === 24) this.underline = false;
      else if (p === 27) this.inverse = false;
      else if (p === 29) this.strike = false;
      else if (p >= 30 && p <= 37) this.fg = String(p - 30);
      else if (p >= 90 && p <= 97) this.fg = String(p - 90 + 8);
      else if (p >= 40 && p <= 47) this.bg = String(p - 40);
      else if (p >= 100 && p <= 107) this.bg = String(p - 100 + 8);
      else if (p === 39) this.fg = "";
      else if (p === 49) this.bg = "";
      else if (p === 38 || p === 48) {
        const [color, used] = extended(params, i + 1);
        i += used;
        if (p === 38) this.fg = color;
        else this.bg = color;
      }
    }
    this.cls = this.classes();
  }

  classes() {
    const all = [];
    if (this.inverse) {
      // The page's own colours change places where there is no other.
      all.push("f" + (this.bg || "-bg"), "i" + (this.fg || "-fg"));
    } else {
      if (this.fg) all.push("f" + this.fg);
      if (this.bg) all.push("b" + this.bg);
    }
    for (const name of /** @type {const} */ (["bold", "dim", "italic", "underline", "strike"])) {
      if (this[name]) all.push(name);
    }
    return all.join(" ");
  }
}

/**
 * The colour of 38 and 48, as the nearest of the sixteen, and how many parameters that took.
 * @param {number[]} params
 * @param {number} at
 * @returns {[string, number]}
 */
function extended(params, at) {
  if (params[at] === 5) {
    const n = params[at + 1] ?? 0;
    if (n < 16) return [String(n), 2];
    if (n >= 232) return [nearest(...grey(8 + (n - 232) * 10)), 2];
    const level = (/** @type {number} */ k) => (k === 0 ? 0 : 55 + 40 * k);
    const c = n - 16;
    return [nearest(level(Math.floor(c / 36)), level(Math.floor(c / 6) % 6), level(c % 6)), 2];
  }
  if (params[at] === 2) return [nearest(params[at + 1] ?? 0, params[at + 2] ?? 0, params[at + 3] ?? 0), 4];
  return ["", 0];
}

/** @param {number} v @returns {[number, number, number]} */
const grey = (v) => [v, v, v];

/** @type {[number, number, number][]} */
const SIXTEEN = [
  [0, 0, 0], [205, 0, 0], [0, 205, 0], [205, 205, 0], [0, 0, 238], [205, 0, 205], [0, 205, 205], [229, 229, 229],
  [127, 127, 127], [255, 0, 0], [0, 255, 0], [255, 255, 0], [92, 92, 255], [255, 0, 255], [0, 255, 255], [255, 255, 255],
];

/** @param {number} r @param {number} g @param {number} b */
function nearest(r, g, b) {
  let best = 0, least = Infinity;
  SIXTEEN.forEach(([x, y, z], i) => {
    const d = (r - x) ** 2 + (g - y) ** 2 + (b - z) ** 2;
    if (d < least) [best, least] = [i, d];
  });
  return String(best);
}

/** Screen makes lines of what one stream prints. It keeps the line that is not whole yet, and no other. */
export class Screen {
  constructor() {
    this.decoder = new TextDecoder("utf-8", { ignoreBOM: true }); // What is no UTF-8 becomes U+FFFD.
    this.style = new Style();
    this.state = GROUND;
    this.sequence = ""; // the parameters of the control sequence
    this.length = 0; // of the sequence so far
    /** @type {string[]} */
    this.cells = [];
    /** @type {string[]} */
    this.styles = []; // of the cells
    this.at = 0; // the cursor
    this.left = 0;
  }

  clear() {
    this.cells = [];
    this.styles = [];
    this.at = this.left = 0;
  }

  /**
   * Takes bytes, and returns the lines that are whole now.
   * @param {Uint8Array} bytes
   * @returns {Line[]}
   */
  write(bytes) {
    /** @type {Line[]} */
    const lines = [];
    for (const c of this.decoder.decode(bytes, { stream: true })) this.character(c, lines);
    return lines;
  }

  /** The line that is not whole yet; null if there is nothing in it. @returns {Line | null} */
  open() { return this.cells.length + this.left > 0 ? this.line() : null; }

  /** Ends what is open, as the stream has ended, and returns it. @returns {Line | null} */
  end() {
    const line = this.open();
    this.clear();
    return line;
  }

  /** @param {string} c @param {Line[]} lines */
  character(c, lines) {
    if (this.state !== GROUND && !this.sequenced(c)) return;
    switch (c) {
      case "\n":
        lines.push(this.line());
        this.clear();
        return;
      case "\r": this.at = 0; return;
      case "\b": this.at = Math.max(this.at - 1, 0); return;
      case "\t": this.at = Math.min((Math.floor(this.at / 8) + 1) * 8, MOST_CELLS); return;
      case "\x1b": this.begin(ESCAPE); return;
      case "\x9b": this.begin(CSI); return;
      case "\x90": case "\x98": case "\x9d": case "\x9e": case "\x9f": this.begin(STRING); return;
    }
    const code = /** @type {number} */ (c.codePointAt(0));
    if (code < 0x20 || code >= 0x7f && code < 0xa0) return;
    this.put(code >= 0x202a && code <= 0x202e || code >= 0x2066 && code <= 0x2069 ? "\ufffd" : c);
  }

  /** @param {string} c */
  put(c) {
    if (this.at >= MOST_CELLS) {
      this.left++;
      return;
    }
    while (this.cells.length < this.at) {
      this.cells.push(" ");
      this.styles.push("");
    }
    this.cells[this.at] = c;
    this.styles[this.at] = this.style.cls;
    this.at++;
  }

  /** @param {number} state */
  begin(state) {
    this.state = state;
    this.sequence = "";
    this.length = 0;
  }

  /**
   * Takes a character of an escape sequence, and returns whether it is none, but ends the sequence.
   * @param {string} c
   */
  sequenced(c) {
    if (++this.length > MOST_SEQUENCE || c === "\n" || c === "\x18" || c === "\x1a") {
      this.state = GROUND;
      return true; // A line break is one whatever was begun: the lines behind it are to be seen.
    }
    switch (this.state) {
      case ESCAPE:
        if (c === "[") this.begin(CSI);
        else if ("]PX^_".includes(c)) this.begin(STRING);
        else if (c === "\x1b") this.begin(ESCAPE);
        else if (c >= " " && c <= "/") this.state = CHARSET;
        else this.state = GROUND;
        return false;
      case CHARSET:
        if (c > "/" || c < " ") this.state = GROUND;
        return false;
      case STRING:
        if (c === "\x07" || c === "\x9c") this.state = GROUND;
        else if (c === "\x1b") this.state = STRING_ESCAPE;
        return false;
      case STRING_ESCAPE:
        if (c === "\\") this.state = GROUND;
        else if (c === "[") this.begin(CSI);
        else if ("]PX^_".includes(c)) this.begin(STRING);
        else this.state = GROUND;
        return false;
    }
    // CSI
    if (c === "\x1b") this.begin(ESCAPE);
    else if (c >= " " && c <= "?") {
      if (this.sequence.length < 256) this.sequence += c;
    } else if (c >= "@" && c <= "~") {
      this.state = GROUND;
      this.control(c);
    } else if (c === "\r" || c === "\b") return true; // Terminals obey them in the middle.
    return false;
  }

  /** Obeys a control sequence that is about the line. @param {string} final */
  control(final) {
    if (!/^[0-9;:]*$/.test(this.sequence)) return; // Private ones.
    const params = this.sequence.split(/[;:]/).map((p) => (p === "" ? 0 : Math.min(Number(p), 65535)));
    const [first = 0] = params;
    const n = Math.max(first, 1);
    switch (final) {
      case "m": this.style.apply(params); return;
      case "C": this.at = Math.min(this.at + n, MOST_CELLS); return;
      case "D": this.at = Math.max(this.at - n, 0); return;
      case "G": this.at = Math.min(n - 1, MOST_CELLS); return;
      case "K": this.erase(first); return;
    }
  }

  /** @param {number} how 0: from the cursor on, 1: up to it, 2: all */
  erase(how) {
    if (how === 1) {
      const end = Math.min(this.at + 1, this.cells.length);
      this.cells.fill(" ", 0, end);
      this.styles.fill("", 0, end);
      return;
    }
    const keep = how === 0 ? Math.min(this.at, this.cells.length) : 0;
    this.cells.length = this.styles.length = keep;
    this.left = 0;
  }

  /** @returns {Line} */
  line() {
    /** @type {Run[]} */
    const runs = [];
    this.cells.forEach((c, i) => {
      const cls = this.styles[i] ?? "";
      const last = runs.at(-1);
      if (last?.cls === cls) last.text += c;
      else runs.push({ text: c, cls });
    });
    return { runs, left: this.left };
  }
}

/** @param {number} ms */
export function duration(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${s.toFixed(1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

/** @param {number} n */
export function bytes(n) {
  if (n < 1024) return `${n} bytes`;
  if (n < 1024 * 1024) return `${(n / 1024).toFixed(1)} KiB`;
  return `${(n / 1024 / 1024).toFixed(1)} MiB`;
}

/** @param {string} base64 */
export function decode(base64) {
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}
