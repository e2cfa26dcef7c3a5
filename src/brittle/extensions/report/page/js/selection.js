// @ts-check
/** The selected points in their order, and for each view those that all other views select. */

import { classOf, classes, columns, count, ids, hasLabels, labels, nameOf, runLimit, rows, runs } from "./data.js";
import { fieldBy } from "./fields.js";
import { tagsOf } from "./notes.js";
import { CHANGES, KINDS, STATES, state } from "./state.js";

/** Place in `STATES` of each point. */
export const states = new Uint8Array(count);

/** Place in `KINDS` of each point. */
export const kinds = new Uint8Array(count);

/** Bits of each point: those of `CHANGES` that it made from this run to the compared one. */
export const changes = new Uint16Array(count);

/** Bits of `CHANGES` from an old (row) to a new (column) place in `STATES` or `KINDS`. */
const [OF_STATES, OF_KINDS] = [STATES, KINDS].map((names) => names.map((was) => names.map((is) => bits(was, is))));

/**
 * @param {string} was
 * @param {string} is
 */
function bits(was, is) {
  return CHANGES.reduce((all, { before, after }, place) => all | (Number(before.includes(was) && after.includes(is)) << place), 0);
}

/** Bits of each point: the filters that leave it out. */
const filterMisses = new Uint32Array(count);

const GROUP = 1;
const CLASS = 2;
const FIND = 4;
const CHANGED = 8;

/** Number of ranges that leave each point out. */
const rangeMisses = new Uint16Array(count);

/** @type {string[] | null} The names of all points as they are searched. */
let haystack = null;

/** @type {"" | "whole" | "parts" | "none"} Match of the text to find: empty without such a text. */
let matchKind = "";

/** @type {Int32Array} */
let order = new Int32Array(0);

/** Place of each point in the order of the list; -1 for none. */
export const places = new Int32Array(count);

/** The selected points in the order of the list. */
export function selected() {
  return order;
}

/** Return the predictions of the run on show. */
export function predictions() {
  return runs[columns[state.by].run].predicted;
}

/** Return the place of the run compared with this one: the run on show, or while this one is, the chosen rival. */
export function comparedRunPlace() {
  return columns[state.by].run || state.against;
}

/**
 * Return the column whose intervals decide the states: at the limit of the run, the column drawn for that limit, if any.
 * @param {import("./data.js").Column} column
 */
export function decidingColumn(column) {
  return state.limit === runLimit && typeof column.decidedBy === "number" ? columns[column.decidedBy] : column;
}

/** Update the state of every point by the chosen score, limit and run, and its changes from this run to another. */
export function updateStates() {
  const column = decidingColumn(columns[state.by]);
  const bound = 1 - state.limit;
  for (let point = 0; point < count; point++) {
    kinds[point] = kindOf(point, runs[column.run]);
    states[point] = stateOf(point, column, bound);
  }
  if (runs.length < 2) return;
  const comparedRun = comparedRunPlace();
  const [thisColumn, otherColumn] = [0, comparedRun].map((place) => columns.find(({ run, label }) => run === place && label === column.label));
  for (let point = 0; point < count; point++) {
    const states = thisColumn && otherColumn ? OF_STATES[stateOf(point, thisColumn, bound)][stateOf(point, otherColumn, bound)] : 0;
    changes[point] = states | OF_KINDS[kindOf(point, runs[0])][kindOf(point, runs[comparedRun])];
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
 * Return the place in `STATES`: a point holds where the whole interval of its flip probability lies at `bound` or below.
 * @param {number} point
 * @param {import("./data.js").Column} column
 * @param {number} bound
 */
function stateOf(point, { run, value, low, high, isDecisive }, bound) {
  if (!runs[run].held[point]) return 4;
  if (Number.isNaN(value[point])) return 3;
  if (!isDecisive) return 5;
  if (!low || !high) return 1;
  return high[point] <= bound ? 0 : low[point] >= bound ? 2 : 1;
}

/** Select by all filters, and sort. */
export function select() {
  const kind = KINDS.indexOf(state.kind);
  const stateIndex = state.state ? STATES.indexOf(state.state) : -1;
  const change = CHANGES.findIndex(({ name }) => name === state.changed);
  const keys = Object.keys(state.ranges);
  for (let point = 0; point < count; point++) {
    filterMisses[point] =
      ((kind >= 0 && kinds[point] !== kind) || (stateIndex >= 0 && states[point] !== stateIndex) ? GROUP : 0) |
      (state.inClass >= 0 && classFor(point) !== state.inClass ? CLASS : 0) |
      (change >= 0 && !(changes[point] & (1 << change)) ? CHANGED : 0);
  }
  rangeMisses.fill(0);
  keys.forEach(countMisses);
  matchKind = "";
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
  return !filterMisses[point] && !rangeMisses[point];
}

/**
 * The class that a point is listed under: its label, or where no point has a label its prediction; -1 for none.
 * @param {number} point
 */
export function classFor(point) {
  return hasLabels ? labels[point] : predictions()[point];
}

/** @param {string} key */
function countMisses(key) {
  for (let point = 0; point < count; point++) rangeMisses[point] += Number(isOutOfRange(key, point));
}

/**
 * Return whether the range of a field leaves a point out.
 * @param {string} key
 * @param {number} point
 */
function isOutOfRange(key, point) {
  const field = fieldBy(key);
  if (!field || !state.ranges[key]) return false;
  const [low, high] = state.ranges[key];
  const value = field.values[point];
  return !(value >= low && value <= high);
}

/**
 * Leave out the points that do not match a text. Whole names, ids, rows, classes and tags have precedence;
 * without such a match, names, classes and tags that contain the text, and ids that begin with it.
 * @param {string} text
 */
function search(text) {
  const exactMatches = matchExactly(text);
  matchKind = exactMatches.includes(1) ? "whole" : "parts";
  const matches = matchKind === "whole" ? exactMatches : matchInside(text);
  if (!matches.includes(1)) matchKind = "none";
  for (let point = 0; point < count; point++) if (!matches[point]) filterMisses[point] |= FIND;
}

/** The names of all points as they are searched. */
function lowerNames() {
  haystack ??= Array.from({ length: count }, (_, point) => nameOf(point).toLowerCase());
  return haystack;
}

/** @param {string} text */
function matchExactly(text) {
  const names = lowerNames();
  const inClass = new Set(classes.filter((number) => classOf(number).toLowerCase() === text || String(number) === text));
  const predicted = predictions();
  return Uint8Array.from({ length: count }, (_, point) => {
    const isNamed = names[point] === text || ids[point].toLowerCase() === text || String(rows[point]) === text;
    const isTagged = tagsOf(point).toLowerCase().split(",").some((tag) => tag.trim() === text);
    return Number(isNamed || isTagged || inClass.has(labels[point]) || inClass.has(predicted[point]));
  });
}

/** @param {string} text */
function matchInside(text) {
  const names = lowerNames();
  const inClass = new Set(classes.filter((number) => classOf(number).toLowerCase().includes(text)));
  const predicted = predictions();
  return Uint8Array.from({ length: count }, (_, point) => {
    const hasText = names[point].includes(text) || ids[point].toLowerCase().startsWith(text) || tagsOf(point).toLowerCase().includes(text);
    return Number(hasText || inClass.has(labels[point]) || inClass.has(predicted[point]));
  });
}

/** Describe where the text to find was found; empty without such a text. */
export function searchText() {
  if (!matchKind) return "";
  if (matchKind === "none") return "Found nowhere: not as a name, an id, a row, a class or a tag, and in none of their texts.";
  if (matchKind === "whole") return "Found as a whole name, id, row, class (label or prediction) or tag.";
  return "No whole name, id, row, class or tag is this: found inside names, classes and tags, and where ids begin.";
}

function sort() {
  const values = sortValues();
  const sign = state.down ? -1 : 1;
  order.sort((a, b) => {
    const [valueA, valueB] = [values[a], values[b]];
    if (Number.isNaN(valueA) || Number.isNaN(valueB)) return Number(Number.isNaN(valueA)) - Number(Number.isNaN(valueB)) || a - b;
    return valueA === valueB ? a - b : sign * (valueA < valueB ? -1 : 1);
  });
}

/** @returns {import("./data.js").Numbers} */
function sortValues() {
  if (state.sort === "label") return labels;
  if (state.sort === "predicted") return predictions();
  return fieldBy(state.sort)?.order ?? Int32Array.from({ length: count }, (_, point) => point);
}

/**
 * Return whether all filters except those of a view select a point: groups, classes, changes, the range of a field, or
 * no view.
 * @param {number} point
 * @param {"group" | "class" | "changed" | "none" | { range: string }} view
 */
export function isSelectedBut(point, view) {
  if (typeof view === "object") return !filterMisses[point] && rangeMisses[point] === Number(isOutOfRange(view.range, point));
  const viewBit = { group: GROUP, class: CLASS, changed: CHANGED, none: 0 }[view];
  return (filterMisses[point] & ~viewBit) === 0 && !rangeMisses[point];
}

/** Count the filters that are set. */
export function filters() {
  const ranges = Object.keys(state.ranges).length;
  return Number(Boolean(state.kind || state.state)) + Number(Boolean(state.changed)) + Number(state.inClass >= 0) + Number(Boolean(state.find)) + ranges;
}
