// @ts-check
/** Scales: from values to places between 0 and 1, and back. */

/**
 * @typedef {object} Scale
 * @property {(value: number) => number} place where a value lies, from 0 to 1
 * @property {(place: number) => number} value which value lies there
 * @property {{value: number, text: string}[]} ticks
 * @property {number[]} edges of the bins of a histogram, in values
 */

import { short } from "./text.js";

/** Edges of the scale of a flip probability, which shows its tail. */
const TAIL = [0, 1e-6, 1e-4, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1];
const TAIL_TEXTS = ["0", "10⁻⁶", "0.01%", "0.1%", "1%", "5%", "10%", "25%", "50%", "75%", "90%", "100%"];
const TURNED_TEXTS = ["1", "1−10⁻⁶", "99.99%", "99.9%", "99%", "95%", "90%", "75%", "50%", "25%", "10%", "0"];
const BINS = 20;

/**
 * The scale of flip probabilities: equal room from each of these edges to the next.
 * @returns {Scale}
 */
export function tail() {
  const last = TAIL.length - 1;
  return {
    place(value) {
      const bin = binOf(TAIL, value);
      return (bin + (value - TAIL[bin]) / (TAIL[bin + 1] - TAIL[bin])) / last;
    },
    value(place) {
      const along = Math.min(Math.max(place, 0), 1) * last;
      const bin = Math.min(Math.floor(along), last - 1);
      return TAIL[bin] + (along - bin) * (TAIL[bin + 1] - TAIL[bin]);
    },
    ticks: TAIL.map((value, place) => ({ value, text: TAIL_TEXTS[place] })),
    edges: TAIL,
  };
}

/**
 * The scale of confidences: that of flip probabilities, turned round, so that it shows how near to 1 they come.
 * @returns {Scale}
 */
export function turned() {
  const flipped = tail();
  return {
    place: (value) => 1 - flipped.place(1 - value),
    value: (place) => 1 - flipped.value(1 - place),
    ticks: TAIL.map((value, place) => ({ value: 1 - value, text: TURNED_TEXTS[place] })).reverse(),
    edges: TAIL.map((value) => 1 - value).reverse(),
  };
}

/**
 * The bin that a value lies in: the lower edge belongs to it, and the last edge to the last bin.
 * @param {number[]} edges
 * @param {number} value
 */
export function binOf(edges, value) {
  let low = 0;
  let high = edges.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (value >= edges[middle]) low = middle;
    else high = middle - 1;
  }
  return low;
}

/**
 * An even scale from `low` to `high`.
 * @param {number} low
 * @param {number} high
 * @returns {Scale}
 */
export function even(low, high) {
  return bent(low, high, (value) => value, (value) => value);
}

/**
 * A scale for values of which some are many times as large as others: logarithmic beyond a size, even below it.
 * @param {number} low
 * @param {number} high
 * @param {number} size
 * @returns {Scale}
 */
export function symmetricLog(low, high, size) {
  return bent(
    low,
    high,
    (value) => Math.sign(value) * Math.log1p(Math.abs(value) / size),
    (value) => Math.sign(value) * Math.expm1(Math.abs(value)) * size,
  );
}

/**
 * @param {number} low
 * @param {number} high
 * @param {(value: number) => number} forth
 * @param {(value: number) => number} back
 * @returns {Scale}
 */
function bent(low, high, forth, back) {
  const from = forth(low);
  const wide = forth(high) - from || 1;
  /** @param {number} place */
  const value = (place) => back(from + place * wide);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map(value).map((one) => ({ value: one, text: short(one) }));
  const edges = Array.from({ length: BINS + 1 }, (_, bin) => (bin === 0 ? low : bin === BINS ? high : value(bin / BINS)));
  return { place: (one) => (forth(one) - from) / wide, value, ticks, edges };
}
