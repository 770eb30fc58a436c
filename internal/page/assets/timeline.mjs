// What is played of a recording, and when. It has no part in the page, so that it can be tested without a browser.

/** The longest pause of a recording that is played, in seconds. One that is longer is shortened to that. */
export const MOST_PAUSE = 2;

/** The most markers that are kept. */
export const MOST_MARKERS = 500;

/**
 * @typedef {["o" | "r" | "m", number, string]} Cast  an event as limpet serve sends it: recordings.go in internal/page has what they mean
 * @typedef {{at: number, code: "o" | "r", data: string}} Shown  at is in seconds of the timeline
 * @typedef {{at: number, label: string}} Marker
 */

/** Timeline has the events of a recording, in order, at the times at which they are played. */
export class Timeline {
  constructor() {
    /** @type {Shown[]} */
    this.events = [];
    /** @type {Marker[]} */
    this.markers = [];
    this.left = 0; // markers that were too many
    this.length = 0; // in seconds, with pauses that are shortened
    this.recorded = 0; // in seconds, as it was recorded
  }

  /** @param {Cast} event  not before those that were added */
  add([code, at, data]) {
    this.length = round(this.length + Math.min(Math.max(at - this.recorded, 0), MOST_PAUSE));
    this.recorded = Math.max(at, this.recorded);
    if (code !== "m") this.events.push({ at: this.length, code, data });
    else if (this.markers.length < MOST_MARKERS) this.markers.push({ at: this.length, label: data });
    else this.left++;
  }

  /** How many events there are up to a time, that time among them. @param {number} at */
  until(at) {
    let low = 0, high = this.events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (/** @type {Shown} */ (this.events[middle]).at <= at) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /**
   * What is drawn in one go, of the events from one up to another: output, or a size.
   * @param {number} from
   * @param {number} to  the index behind the last one
   * @param {number} most  characters of output; one event may have more
   * @returns {{text: string, size?: [number, number], next: number}}
   */
  piece(from, to, most) {
    const texts = [];
    let length = 0, next = from;
    for (; next < to; next++) {
      const { code, data } = /** @type {Shown} */ (this.events[next]);
      if (code === "r") {
        if (next > from) break;
        const [cols = 0, rows = 0] = data.split("x").map(Number);
        return { text: "", size: [cols, rows], next: next + 1 };
      }
      if (length > 0 && length + data.length > most) break;
      texts.push(data);
      length += data.length;
    }
    return { text: texts.join(""), next };
  }
}

/** To the microsecond, as recordings have it: a range rounds its value, and its end has to be that of the timeline. @param {number} seconds */
const round = (seconds) => Math.round(seconds * 1e6) / 1e6;

/** A time as on a clock. @param {number} seconds */
export function clock(seconds) {
  const s = Math.floor(Math.max(seconds, 0));
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const minutes = Math.floor(s / 60) % 60, hours = Math.floor(s / 3600);
  return hours > 0 ? `${hours}:${two(minutes)}:${two(s % 60)}` : `${minutes}:${two(s % 60)}`;
}
