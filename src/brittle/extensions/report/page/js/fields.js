// @ts-check
/** What points can be ordered, drawn and filtered by: every score, as one number a point. */

import { columns, runs } from "./data.js";
import { even, symmetricLog, tail, turned } from "./scales.js";

/** @typedef {import("./data.js").Column} Column */
/** @typedef {import("./data.js").Numbers} Numbers */
/** @typedef {import("./scales.js").Scale} Scale */

/**
 * @typedef {object} Field
 * @property {string} key what the address calls it
 * @property {string} name in words
 * @property {string} short without its run
 * @property {Column} column
 * @property {Numbers} values
 * @property {Numbers} order what sorts and ranks: of a confidence the flip probability, negated, so that those near 1 differ
 * @property {boolean} probability
 * @property {"higher" | "lower" | null} safer
 * @property {Scale} scale
 */

/** @type {Field[]} */
export const fields = columns.map(fieldOf);

/**
 * @param {Column} column
 * @returns {Field}
 */
function fieldOf(column) {
  const key = `s${column.place}`;
  const of = runs.length > 1 ? `, ${column.run ? runs[column.run].name : "this run"}` : "";
  if (column.probability && column.sigma === null) {
    const values = Float64Array.from(column.value, (flip) => 1 - flip);
    const short = `confidence, by ${column.title.toLowerCase()}`;
    return { key, name: short + of, short, column, values, order: column.value.map((flip) => -flip), probability: true, safer: "higher", scale: turned() };
  }
  const what = column.probability ? "flip probability, " : "";
  const noise = column.setting && `, ${column.setting}`;
  const short = `${what}${titleOf(column)}${noise}`;
  const scale = column.probability ? tail() : scaleOf(column.value);
  return { key, name: short + of, short, column, values: column.value, order: column.value, probability: column.probability, safer: column.safer, scale };
}

/**
 * What a score is called, with what tells it from those of the same title.
 * @param {Column} column
 */
export function titleOf(column) {
  const alike = columns.filter((one) => one.run === column.run && one.title === column.title && one.setting === column.setting);
  if (alike.length < 2) return column.title;
  const own = alike.every(({ variant, place }) => variant !== column.variant || place === column.place);
  return `${column.title} ${(own ? column.variant : column.label).slice(column.name.length)}`.trimEnd();
}

/**
 * @param {Numbers} values
 * @returns {Scale}
 */
function scaleOf(values) {
  const known = Float64Array.from(values).filter(Number.isFinite).sort();
  if (!known.length) return even(0, 1);
  const [low, high] = [known[0], known[known.length - 1]];
  const sizes = known.map(Math.abs).sort();
  const typical = sizes[sizes.length >> 1];
  const large = sizes[sizes.length - 1];
  if (large > 30 * typical && typical > 0) return symmetricLog(low, high, typical / 10);
  return even(low, high === low ? low + 1 : high);
}

/**
 * The name of a field with the direction that is safer.
 * @param {{name: string, safer: "higher" | "lower" | null}} field
 */
export function directed({ name, safer }) {
  return safer ? `${name} (${safer} is safer)` : name;
}

/**
 * What an axis of a field may be called, the most telling first.
 * @param {Field} field
 */
export function axisNames({ name, short, safer }) {
  return [directed({ name, safer }), directed({ name: short, safer }), name, short];
}

/**
 * The field of this key, or undefined.
 * @param {string} key
 */
export function fieldBy(key) {
  return fields.find((field) => field.key === key);
}

/**
 * What a run can be spoken of by: what says whether a prediction holds, or else every score.
 * @param {number} run
 */
export function speaking(run) {
  const own = fields.filter(({ column }) => column.run === run);
  const deciding = own.filter(({ column }) => column.probability);
  return deciding.length ? deciding : own;
}
