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

/** Edges of the scale of a probability, which shows how near to 1 it comes: their distances from 1. */
const FROM_ONE = [1, 0.9, 0.75, 0.5, 0.25, 0.1, 0.05, 0.01, 1e-3, 1e-4, 1e-6, 0];
const TEXTS = ["0", "0.1", "0.25", "0.5", "0.75", "0.9", "0.95", "0.99", "0.999", "0.9999", "1−10⁻⁶", "1"];
const BINS = 20;

/**
 * The scale of probabilities: equal room from each of these edges to the next.
 * @returns {Scale}
 */
export function towardsOne() {
  const edges = FROM_ONE.map((distance) => 1 - distance);
  const last = edges.length - 1;
  return {
    place(value) {
      const bin = binOf(edges, value);
      return (bin + (value - edges[bin]) / (edges[bin + 1] - edges[bin])) / last;
    },
    value(place) {
      const along = Math.min(Math.max(place, 0), 1) * last;
      const bin = Math.min(Math.floor(along), last - 1);
      return edges[bin] + (along - bin) * (edges[bin + 1] - edges[bin]);
    },
    ticks: edges.map((value, place) => ({ value, text: TEXTS[place] })),
    edges,
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
  return transformedScale(low, high, (value) => value, (value) => value);
}

/**
 * A scale for values of which some are many times as large as others: logarithmic beyond a size, even below it.
 * @param {number} low
 * @param {number} high
 * @param {number} size
 * @returns {Scale}
 */
export function symmetricLog(low, high, size) {
  return transformedScale(
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
function transformedScale(low, high, forth, back) {
  const from = forth(low);
  const wide = forth(high) - from || 1;
  /** @param {number} place */
  const value = (place) => back(from + place * wide);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map(value).map((tick) => ({ value: tick, text: short(tick) }));
  const edges = Array.from({ length: BINS + 1 }, (_, bin) => (bin === 0 ? low : bin === BINS ? high : value(bin / BINS)));
  return { place: (number) => (forth(number) - from) / wide, value, ticks, edges };
}
