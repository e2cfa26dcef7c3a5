// @ts-check
/** What the reader has chosen: every view reads it, every gesture writes it, and the address keeps it. */

import { classes, columns, count, ownLimit, runs, spokesman } from "./data.js";
import { fieldBy, fields } from "./fields.js";

export const KINDS = ["right", "wrong", "no label"];

/**
 * What can change from this run to another: what was and what is now, each as a state or, of a kind, right or wrong.
 * @typedef {{name: string, before: string[], after: string[]}} Change
 */

/** @type {Change[]} */
export const CHANGES = [
  { name: "no longer holds", before: ["holds"], after: ["undecided", "breaks"] },
  { name: "now breaks", before: ["holds", "undecided"], after: ["breaks"] },
  { name: "now holds", before: ["undecided", "breaks"], after: ["holds"] },
  { name: "held, now breaks", before: ["holds"], after: ["breaks"] },
  { name: "held, now undecided", before: ["holds"], after: ["undecided"] },
  { name: "was undecided, now breaks", before: ["undecided"], after: ["breaks"] },
  { name: "broke, now holds", before: ["breaks"], after: ["holds"] },
  { name: "broke, now undecided", before: ["breaks"], after: ["undecided"] },
  { name: "was undecided, now holds", before: ["undecided"], after: ["holds"] },
  { name: "right, now wrong", before: ["right"], after: ["wrong"] },
  { name: "wrong, now right", before: ["wrong"], after: ["right"] },
];
export const STATES = ["holds", "undecided", "breaks", "failed", "absent", "unjudged"];

/**
 * @typedef {object} State
 * @property {number} by the column that the page speaks of
 * @property {number} limit a prediction holds where it is kept with this probability or more
 * @property {string} kind one of `KINDS`; empty for all
 * @property {string} state one of `STATES`; empty for all
 * @property {string} changed the name of one of `CHANGES`, from this run to the other one; empty for all
 * @property {number} against the run that this one is compared with while this one is on show; 0 where there is none
 * @property {number} inClass -1 for all
 * @property {Record<string, [number, number]>} ranges of fields, by their keys
 * @property {string} find
 * @property {string} sort a field's key, or `row`, `label`, `predicted`
 * @property {boolean} down
 * @property {number} point the open one; -1 for none
 * @property {string} across the field of the plot's horizontal axis
 * @property {string} up that of its vertical axis
 */

const withoutNoise = fields.find((field) => field.column.probability && field.column.sigma === null);
const other = fields.find((field) => field.column.place !== spokesman);

/** @returns {State} */
function initial() {
  const by = columns[spokesman];
  return {
    by: spokesman,
    limit: ownLimit,
    kind: "",
    state: "",
    changed: "",
    against: Math.min(1, runs.length - 1),
    inClass: -1,
    ranges: {},
    find: "",
    sort: `s${spokesman}`,
    down: fields[spokesman].safer !== "higher",
    point: -1,
    across: (by.sigma === null && by.probability ? other : (withoutNoise ?? other))?.key ?? `s${spokesman}`,
    up: `s${spokesman}`,
  };
}

/** @type {State} */
export const state = { ...initial(), ...read(location.hash) };

/** @type {((changed: Set<string>) => void)[]} */
const listeners = [];

/**
 * Calls `listener` after every change, with the names of what changed.
 * @param {(changed: Set<string>) => void} listener
 */
export function listen(listener) {
  listeners.push(listener);
}

/**
 * Changes what is chosen.
 * @param {Partial<State>} change
 */
export function choose(change) {
  Object.assign(state, change);
  try {
    history.replaceState(null, "", address());
  } catch {
    // a page inside another one has no address of its own
  }
  const changed = new Set(Object.keys(change));
  for (const listener of listeners) listener(changed);
}

/** Chooses what the address says, as when the page is opened with it. */
export function chooseByAddress() {
  choose({ ...initial(), ...read(location.hash) });
}

/** Chooses all points again. */
export function clear() {
  choose({ kind: "", state: "", changed: "", inClass: -1, ranges: {}, find: "" });
}

/** What is chosen, where it is not what the page begins with. */
function address() {
  const first = initial();
  const words = new URLSearchParams();
  for (const name of /** @type {const} */ (["by", "limit", "kind", "state", "changed", "against", "find", "sort", "down", "point", "across", "up"])) {
    if (state[name] !== first[name]) words.set(name, String(state[name]));
  }
  if (state.inClass >= 0) words.set("class", String(state.inClass));
  for (const [key, [low, high]] of Object.entries(state.ranges)) words.append("range", `${key}:${low}:${high}`);
  return `#${words}`;
}

/**
 * What an address says; what it says wrongly is left out.
 * @param {string} hash
 * @returns {Partial<State>}
 */
function read(hash) {
  const words = new URLSearchParams(hash.slice(1));
  /** @type {Partial<State>} */
  const found = {};
  const by = whole(words.get("by"), columns.length);
  if (by !== null) found.by = by;
  const point = whole(words.get("point"), count);
  if (point !== null) found.point = point;
  const inClass = Number(words.get("class") ?? NaN);
  if (classes.includes(inClass)) found.inClass = inClass;
  const limit = Number(words.get("limit") ?? NaN);
  if (limit > 0 && limit < 1) found.limit = limit;
  const kind = words.get("kind");
  if (kind && KINDS.includes(kind)) found.kind = kind;
  const stateName = words.get("state");
  if (stateName && STATES.includes(stateName)) found.state = stateName;
  const changed = words.get("changed");
  if (changed && CHANGES.some(({ name }) => name === changed)) found.changed = changed;
  const against = whole(words.get("against"), runs.length);
  if (against) found.against = against;
  if (words.has("find")) found.find = /** @type {string} */ (words.get("find")).slice(0, 200);
  if (words.has("down")) found.down = words.get("down") === "true";
  const sort = words.get("sort");
  if (sort && (["row", "label", "predicted"].includes(sort) || fieldBy(sort))) found.sort = sort;
  for (const axis of /** @type {const} */ (["across", "up"])) {
    const key = words.get(axis);
    if (key && fieldBy(key)) found[axis] = key;
  }
  const ranges = Object.fromEntries(words.getAll("range").flatMap(range));
  if (Object.keys(ranges).length) found.ranges = ranges;
  return found;
}

/**
 * @param {string} text
 * @returns {[string, [number, number]][]}
 */
function range(text) {
  const [key, low, high] = text.split(":");
  const ends = /** @type {[number, number]} */ ([Number(low ?? NaN), Number(high ?? NaN)]);
  return fieldBy(key) && !ends.some(Number.isNaN) ? [[key, ends]] : [];
}

/**
 * @param {string | null} text
 * @param {number} end
 */
function whole(text, end) {
  const number = Number(text || NaN);
  return Number.isInteger(number) && number >= 0 && number < end ? number : null;
}
