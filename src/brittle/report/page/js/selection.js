// @ts-check
/** Which points are selected, in which order; and for each view those that all other views select. */

import { classOf, classes, columns, count, ids, labelled, labels, nameOf, runs } from "./data.js";
import { fieldBy } from "./fields.js";
import { tagsOf } from "./notes.js";
import { CHANGES, KINDS, STATES, state } from "./state.js";

/** Of each point its place in `STATES`. */
export const states = new Uint8Array(count);

/** Of each point its place in `KINDS`. */
export const kinds = new Uint8Array(count);

/** Of each point, a bit for each of `CHANGES` that it made from this run to the chosen one. */
export const changes = new Uint8Array(count);

/** Of each point, a bit for each filter that leaves it out. */
const outside = new Uint32Array(count);

/** From which of `STATES` to which, for the first of `CHANGES`. */
const STATE_CHANGES = [
  [0, 2],
  [0, 1],
  [1, 2],
  [2, 0],
  [2, 1],
  [1, 0],
];
const RIGHT_TO_WRONG = 6;
const WRONG_TO_RIGHT = 7;

const GROUP = 1;
const CLASS = 2;
const FIND = 4;
const CHANGED = 8;

/** Of each point, how many of the ranges leave it out. */
const missed = new Uint16Array(count);

/** A text of fewer characters is looked for as a word of its own: a `9` would be in nearly every name. */
const SHORT = 3;

/** @type {string[] | null} */
let names = null;

/** @type {Int32Array} */
let order = new Int32Array(0);

/** Of each point, its place in the order of the list; -1 for none. */
export const places = new Int32Array(count);

/** The selected points in the order of the list. */
export function selected() {
  return order;
}

/** The predictions of the run that the page speaks of. */
export function predictions() {
  return runs[columns[state.by].run].predicted;
}

/** Judges every point by the score, the limit and the run that are chosen. */
export function judge() {
  const column = columns[state.by];
  const before = columns.find(({ run, label }) => run === 0 && label === column.label) ?? column;
  const bound = 1 - state.limit;
  for (let point = 0; point < count; point++) {
    kinds[point] = kindOf(point, runs[column.run]);
    states[point] = stateOf(point, column, bound);
    const [held, was] = [stateOf(point, before, bound), kindOf(point, runs[0])];
    const moved = STATE_CHANGES.findIndex(([from, to]) => held === from && states[point] === to);
    const relabelled = was === 0 && kinds[point] === 1 ? RIGHT_TO_WRONG : was === 1 && kinds[point] === 0 ? WRONG_TO_RIGHT : -1;
    changes[point] = bit(moved) | bit(relabelled);
  }
}

/**
 * @param {number} point
 * @param {import("./data.js").Run} run
 */
function kindOf(point, { correct }) {
  return correct[point] === 1 ? 0 : correct[point] === 0 ? 1 : 2;
}

/**
 * Whether a point holds: the whole interval of its flip probability lies at `bound` or below.
 * @param {number} point
 * @param {import("./data.js").Column} column
 * @param {number} bound
 */
function stateOf(point, { run, value, low, high, judges }, bound) {
  if (!runs[run].held[point]) return 4;
  if (Number.isNaN(value[point])) return 3;
  if (!judges) return 5;
  if (!low || !high) return 1;
  return high[point] <= bound ? 0 : low[point] >= bound ? 2 : 1;
}

/** Selects by all filters, and orders. */
export function select() {
  const kind = KINDS.indexOf(state.kind);
  const wanted = state.state ? STATES.indexOf(state.state) : -1;
  const change = CHANGES.indexOf(state.changed);
  const keys = Object.keys(state.ranges);
  for (let point = 0; point < count; point++) {
    outside[point] =
      ((kind >= 0 && kinds[point] !== kind) || (wanted >= 0 && states[point] !== wanted) ? GROUP : 0) |
      (state.inClass >= 0 && classFor(point) !== state.inClass ? CLASS : 0) |
      (change >= 0 && !(changes[point] & (1 << change)) ? CHANGED : 0);
  }
  missed.fill(0);
  keys.forEach(leaveOut);
  if (state.find) search(state.find.toLowerCase());
  let inside = 0;
  for (let point = 0; point < count; point++) if (isIn(point)) inside++;
  order = new Int32Array(inside);
  for (let point = 0, next = 0; point < count; point++) if (isIn(point)) order[next++] = point;
  sort();
  places.fill(-1);
  order.forEach((point, place) => (places[point] = place));
}

/**
 * The bit of one of `CHANGES`; none for -1.
 * @param {number} place
 */
function bit(place) {
  return place < 0 ? 0 : 1 << place;
}

/** @param {number} point */
function isIn(point) {
  return !outside[point] && !missed[point];
}

/**
 * The class that a point is listed under: its label, or where no point has a label its prediction; -1 for none.
 * @param {number} point
 */
export function classFor(point) {
  return labelled ? labels[point] : predictions()[point];
}

/** @param {string} key */
function leaveOut(key) {
  for (let point = 0; point < count; point++) missed[point] += Number(misses(key, point));
}

/**
 * Whether the range of a field leaves a point out.
 * @param {string} key
 * @param {number} point
 */
function misses(key, point) {
  const field = fieldBy(key);
  if (!field || !state.ranges[key]) return false;
  const [low, high] = state.ranges[key];
  const value = field.values[point];
  return !(value >= low && value <= high);
}

/** @param {string} text */
function search(text) {
  const predicted = predictions();
  names ??= Array.from({ length: count }, (_, point) => nameOf(point).toLowerCase());
  const inClass = new Set(classes.filter((number) => speaksOf(classOf(number).toLowerCase(), text)));
  for (let point = 0; point < count; point++) {
    const found = speaksOf(names[point], text) || inClass.has(labels[point]) || inClass.has(predicted[point]);
    const own = text.length >= SHORT && ids[point].toLowerCase().startsWith(text);
    if (!found && !own && !speaksOf(tagsOf(point).toLowerCase(), text)) outside[point] |= FIND;
  }
}

/**
 * Whether a name holds a text: anywhere, or if that is a character or two, as a word of its own (`9` in `class 9`, `0009`).
 * @param {string} name
 * @param {string} text
 */
function speaksOf(name, text) {
  return text.length >= SHORT ? name.includes(text) : name === text || name.split(/[^\p{L}\p{N}]+/u).some((word) => word === text || word.replace(/^0+/, "") === text);
}

function sort() {
  const values = sortValues();
  const sign = state.down ? -1 : 1;
  order.sort((one, other) => {
    const [first, second] = [values[one], values[other]];
    if (Number.isNaN(first) || Number.isNaN(second)) return Number(Number.isNaN(first)) - Number(Number.isNaN(second)) || one - other;
    return first === second ? one - other : sign * (first < second ? -1 : 1);
  });
}

/** @returns {import("./data.js").Numbers} */
function sortValues() {
  if (state.sort === "label") return labels;
  if (state.sort === "predicted") return predictions();
  return fieldBy(state.sort)?.order ?? Int32Array.from({ length: count }, (_, point) => point);
}

/**
 * Whether all filters but those of one view select a point: the groups, the classes (which show every group), what
 * changed, the range of a field, or no view.
 * @param {number} point
 * @param {"group" | "classes" | "changed" | "none" | { range: string }} view
 */
export function selectedBut(point, view) {
  if (typeof view === "object") return !outside[point] && missed[point] === Number(misses(view.range, point));
  const own = { group: GROUP, classes: CLASS | GROUP, changed: CHANGED, none: 0 }[view];
  return (outside[point] & ~own) === 0 && !missed[point];
}

/** How many filters are set. */
export function filters() {
  const ranges = Object.keys(state.ranges).length;
  return Number(Boolean(state.kind || state.state)) + Number(Boolean(state.changed)) + Number(state.inClass >= 0) + Number(Boolean(state.find)) + ranges;
}
