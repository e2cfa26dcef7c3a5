// @ts-check
/** Fields to order, draw and filter points by: every score, as one number a point. */

import { columns, runs } from "./data.js";
import { even, symmetricLog, towardsOne } from "./scales.js";
import { keptText, short } from "./text.js";

/** @typedef {import("./data.js").Column} Column */
/** @typedef {import("./data.js").Numbers} Numbers */
/** @typedef {import("./scales.js").Scale} Scale */

/**
 * @typedef {object} Field
 * @property {string} key name in the address
 * @property {string} name in words
 * @property {string} short without its run
 * @property {string} label title without parameters
 * @property {string} detail parameters that distinguish it from fields of the same label; empty for none
 * @property {Column} column
 * @property {Numbers} values the score; for a flip probability, the probability that the prediction is kept
 * @property {Numbers} order sort key: for a flip probability its negative, so that values near 0 differ
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
  const { probability, sigma, setting, title } = column;
  const label = !probability ? title : sigma === null ? "confidence" : "p_robust";
  const detail = [probability ? title : "", parametersOf(column), setting].filter(Boolean).join(", ");
  const words = detail ? `${label} (${detail})` : label;
  const run = runs.length > 1 ? `, ${column.run ? runs[column.run].name : "this run"}` : "";
  const values = probability ? Float64Array.from(column.value, (flip) => 1 - flip) : column.value;
  return {
    key: `s${column.place}`,
    name: words + run,
    short: words,
    label,
    detail,
    column,
    values,
    order: probability ? Float64Array.from(column.value, (flip) => -flip) : column.value,
    probability,
    safer: probability ? "higher" : column.safer,
    scale: probability ? towardsOne() : scaleOf(values),
  };
}

/**
 * The parameters that tell a score from those of the same title, in words; empty where none does.
 * @param {Column} column
 */
function parametersOf(column) {
  const alike = columns.filter((sibling) => sibling.run === column.run && sibling.title === column.title && sibling.setting === column.setting);
  if (alike.length < 2) return "";
  const isUnique = alike.every(({ variant, place }) => variant !== column.variant || place === column.place);
  return (isUnique ? column.variant : column.label).slice(column.name.length).replace(/^\(|\)$/g, "").replaceAll("=", " ");
}

/**
 * Return the title of a score, with the parameters that distinguish it from scores of the same title.
 * @param {Column} column
 */
export function titleOf(column) {
  return [column.title, parametersOf(column)].filter(Boolean).join(", ");
}

/**
 * The value of a point as the page writes it.
 * @param {Field} field
 * @param {number} point
 */
export function textAt({ column, probability }, point) {
  return numberText(column.value[point], probability);
}

/**
 * The interval of a point as the page writes it, its lower end first.
 * @param {Field} field
 * @param {number} point
 */
export function endsAt({ column, probability }, point) {
  const ends = [column.low, column.high].map((all) => numberText(all ? all[point] : NaN, probability));
  return probability ? ends.reverse() : ends;
}

/**
 * @param {number} value
 * @param {boolean} probability
 */
function numberText(value, probability) {
  return probability ? keptText(value) : short(value);
}

/**
 * @param {Numbers} values
 * @returns {Scale}
 */
function scaleOf(values) {
  const finite = Float64Array.from(values).filter(Number.isFinite).sort();
  if (!finite.length) return even(0, 1);
  const [low, high] = [finite[0], finite[finite.length - 1]];
  const sizes = finite.map(Math.abs).sort();
  const typical = sizes[sizes.length >> 1];
  const large = sizes[sizes.length - 1];
  if (large > 30 * typical && typical > 0) return symmetricLog(low, high, typical / 10);
  return even(low, high === low ? low + 1 : high);
}

/**
 * The name of a field with the direction that is safer.
 * @param {{name: string, safer: "higher" | "lower" | null}} field
 */
export function withDirection({ name, safer }) {
  return safer ? `${name} (${safer} is safer)` : name;
}

/**
 * Return possible titles of the axis of a field, the longest first.
 * @param {Field} field
 */
export function axisNames({ name, short, label, safer }) {
  return [withDirection({ name, safer }), withDirection({ name: short, safer }), withDirection({ name: label, safer }), label];
}

/**
 * The field of this key, or undefined.
 * @param {string} key
 */
export function fieldBy(key) {
  return fields.find((field) => field.key === key);
}

/**
 * Return the probabilities of a run, or without any, all its scores.
 * @param {number} run
 */
export function mainFieldsOf(run) {
  const runFields = fields.filter(({ column }) => column.run === run);
  const deciding = runFields.filter(({ column }) => column.probability);
  return deciding.length ? deciding : runFields;
}
