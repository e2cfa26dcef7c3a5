// @ts-check
/** What points can be ordered, drawn and filtered by: every score, as one number a point. */

import { columns } from "./data.js";
import { even, symmetricLog, tail, turned } from "./scales.js";

/** @typedef {import("./data.js").Column} Column */
/** @typedef {import("./data.js").Numbers} Numbers */
/** @typedef {import("./scales.js").Scale} Scale */

/**
 * @typedef {object} Field
 * @property {string} key what the address calls it
 * @property {string} name in words
 * @property {Column} column
 * @property {Numbers} values
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
  if (column.probability && column.sigma === null) {
    const values = Float64Array.from(column.value, (flip) => 1 - flip);
    const name = `confidence, by ${column.title.toLowerCase()}`;
    return { key, name, column, values, probability: true, safer: "higher", scale: turned() };
  }
  const what = column.probability ? "flip probability, " : "";
  const noise = column.setting && `, ${column.setting}`;
  const name = `${what}${column.probability ? column.title : titleOf(column)}${noise}`;
  const scale = column.probability ? tail() : scaleOf(column.value);
  return { key, name, column, values: column.value, probability: column.probability, safer: column.safer, scale };
}

/**
 * What a score is called, with what tells it from those of the same title.
 * @param {Column} column
 */
export function titleOf(column) {
  const alike = columns.filter((one) => one.title === column.title && one.setting === column.setting);
  return alike.length > 1 ? `${column.title} ${column.label.slice(column.name.length)}` : column.title;
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
 * The field of this key, or undefined.
 * @param {string} key
 */
export function fieldBy(key) {
  return fields.find((field) => field.key === key);
}

/** Those that can say whether a prediction holds. */
export const deciding = fields.filter((field) => field.column.probability);

