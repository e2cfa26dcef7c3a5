// @ts-check
/** Which points are selected, in which order; and for each view those that all other views select. */

import { classOf, classes, columns, count, ids, labelled, labels, nameOf, ownLimit, rows, runs } from "./data.js";
import { fieldBy } from "./fields.js";
import { tagsOf } from "./notes.js";
import { CHANGES, KINDS, STATES, state } from "./state.js";

/** Of each point its place in `STATES`. */
export const states = new Uint8Array(count);

/** Of each point its place in `KINDS`. */
export const kinds = new Uint8Array(count);

/** Of each point, a bit for each of `CHANGES` that it made from this run to the compared one. */
export const changes = new Uint16Array(count);

/** Of what a point was (row) and is (column), by places in `STATES` and `KINDS`: a bit for each of `CHANGES`. */
const [OF_STATES, OF_KINDS] = [STATES, KINDS].map((names) => names.map((was) => names.map((is) => bits(was, is))));

/**
 * @param {string} was
 * @param {string} is
 */
function bits(was, is) {
  return CHANGES.reduce((all, { before, after }, place) => all | (Number(before.includes(was) && after.includes(is)) << place), 0);
}

/** Of each point, a bit for each filter that leaves it out. */
const outside = new Uint32Array(count);

const GROUP = 1;
const CLASS = 2;
const FIND = 4;
const CHANGED = 8;

/** Of each point, how many of the ranges leave it out. */
const missed = new Uint16Array(count);

/** @type {string[] | null} The names of all points as they are searched. */
let haystack = null;

/** @type {"" | "whole" | "parts" | "none"} What the text to find was found as: empty where none is looked for. */
let foundAs = "";

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

/** The place of the run that this one is compared with: the one on show, or where that is this one, the chosen one. */
export function compared() {
  return columns[state.by].run || state.against;
}

/**
 * The column whose intervals judge the points of a score: at the limit of the run the one that was drawn for it, if any.
 * @param {import("./data.js").Column} column
 */
export function judgeOf(column) {
  return state.limit === ownLimit && typeof column.decidedBy === "number" ? columns[column.decidedBy] : column;
}

/** Judges every point by the score, the limit and the run that are chosen, and what changes from this run to another. */
export function judge() {
  const column = judgeOf(columns[state.by]);
  const bound = 1 - state.limit;
  for (let point = 0; point < count; point++) {
    kinds[point] = kindOf(point, runs[column.run]);
    states[point] = stateOf(point, column, bound);
  }
  if (runs.length < 2) return;
  const other = compared();
  const [first, second] = [0, other].map((place) => columns.find(({ run, label }) => run === place && label === column.label));
  for (let point = 0; point < count; point++) {
    const states = first && second ? OF_STATES[stateOf(point, first, bound)][stateOf(point, second, bound)] : 0;
    changes[point] = states | OF_KINDS[kindOf(point, runs[0])][kindOf(point, runs[other])];
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
  const change = CHANGES.findIndex(({ name }) => name === state.changed);
  const keys = Object.keys(state.ranges);
  for (let point = 0; point < count; point++) {
    outside[point] =
      ((kind >= 0 && kinds[point] !== kind) || (wanted >= 0 && states[point] !== wanted) ? GROUP : 0) |
      (state.inClass >= 0 && classFor(point) !== state.inClass ? CLASS : 0) |
      (change >= 0 && !(changes[point] & (1 << change)) ? CHANGED : 0);
  }
  missed.fill(0);
  keys.forEach(leaveOut);
  foundAs = "";
  if (state.find) search(state.find.trim().toLowerCase());
  let inside = 0;
  for (let point = 0; point < count; point++) if (isIn(point)) inside++;
  order = new Int32Array(inside);
  for (let point = 0, next = 0; point < count; point++) if (isIn(point)) order[next++] = point;
  sort();
  places.fill(-1);
  order.forEach((point, place) => (places[point] = place));
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

/**
 * Leaves out what a text does not find. What is called so as a whole comes first: a name, an id, a row, a class or a tag;
 * where nothing is, what holds the text in its name, its classes or its tags, or begins with it in its id.
 * @param {string} text
 */
function search(text) {
  const whole = wholly(text);
  foundAs = whole.includes(1) ? "whole" : "parts";
  const found = foundAs === "whole" ? whole : partly(text);
  if (!found.includes(1)) foundAs = "none";
  for (let point = 0; point < count; point++) if (!found[point]) outside[point] |= FIND;
}

/** The names of all points as they are searched. */
function lowerNames() {
  haystack ??= Array.from({ length: count }, (_, point) => nameOf(point).toLowerCase());
  return haystack;
}

/** @param {string} text */
function wholly(text) {
  const names = lowerNames();
  const inClass = new Set(classes.filter((number) => classOf(number).toLowerCase() === text || String(number) === text));
  const predicted = predictions();
  return Uint8Array.from({ length: count }, (_, point) => {
    const called = names[point] === text || ids[point].toLowerCase() === text || String(rows[point]) === text;
    const tagged = tagsOf(point).toLowerCase().split(",").some((tag) => tag.trim() === text);
    return Number(called || tagged || inClass.has(labels[point]) || inClass.has(predicted[point]));
  });
}

/** @param {string} text */
function partly(text) {
  const names = lowerNames();
  const inClass = new Set(classes.filter((number) => classOf(number).toLowerCase().includes(text)));
  const predicted = predictions();
  return Uint8Array.from({ length: count }, (_, point) => {
    const named = names[point].includes(text) || ids[point].toLowerCase().startsWith(text) || tagsOf(point).toLowerCase().includes(text);
    return Number(named || inClass.has(labels[point]) || inClass.has(predicted[point]));
  });
}

/** What the text to find was looked for in, as a sentence; empty where none is. */
export function searched() {
  if (!foundAs) return "";
  if (foundAs === "none") return "Found nowhere: not as a name, an id, a row, a class or a tag, and in none of their texts.";
  if (foundAs === "whole") return "Found as a whole name, id, row, class (label or prediction) or tag.";
  return "No whole name, id, row, class or tag is this: found inside names, classes and tags, and where ids begin.";
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
 * Whether all filters but that of one view select a point: the groups, the classes, what changed, the range of a field, or
 * no view.
 * @param {number} point
 * @param {"group" | "class" | "changed" | "none" | { range: string }} view
 */
export function selectedBut(point, view) {
  if (typeof view === "object") return !outside[point] && missed[point] === Number(misses(view.range, point));
  const own = { group: GROUP, class: CLASS, changed: CHANGED, none: 0 }[view];
  return (outside[point] & ~own) === 0 && !missed[point];
}

/** How many filters are set. */
export function filters() {
  const ranges = Object.keys(state.ranges).length;
  return Number(Boolean(state.kind || state.state)) + Number(Boolean(state.changed)) + Number(state.inClass >= 0) + Number(Boolean(state.find)) + ranges;
}
