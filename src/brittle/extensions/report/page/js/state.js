// @ts-check
/** The choices of the reader: every view reads them, every gesture writes them, and the address stores them. */

import { classes, columns, count, runLimit, runs, representative } from "./data.js";
import { fieldBy, fields } from "./fields.js";

export const KINDS = ["right", "wrong", "no label"];

/**
 * A change from this run to another: old and new states, or old and new kinds (right, wrong).
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
 * @property {number} by place of the chosen column
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
 * @property {string} up the field of its vertical axis
 */

const withoutNoise = fields.find((field) => field.column.probability && field.column.sigma === null);
const alternativeField = fields.find((field) => field.column.place !== representative);

/** @returns {State} */
function initial() {
  const by = columns[representative];
  return {
    by: representative,
    limit: runLimit,
    kind: "",
    state: "",
    changed: "",
    against: Math.min(1, runs.length - 1),
    inClass: -1,
    ranges: {},
    find: "",
    sort: `s${representative}`,
    down: fields[representative].safer !== "higher",
    point: -1,
    across: (by.sigma === null && by.probability ? alternativeField : (withoutNoise ?? alternativeField))?.key ?? `s${representative}`,
    up: `s${representative}`,
  };
}

/** @type {State} */
export const state = { ...initial(), ...read(location.hash) };

/** @type {((changed: Set<string>) => void)[]} */
const listeners = [];

/**
 * Call `listener` after every change, with the names of the changed fields.
 * @param {(changed: Set<string>) => void} listener
 */
export function listen(listener) {
  listeners.push(listener);
}

/**
 * Change the choices.
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

/** Make the choices of the address, as at the opening of the page. */
export function chooseByAddress() {
  choose({ ...initial(), ...read(location.hash) });
}

/** Choose all points again. */
export function clear() {
  choose({ kind: "", state: "", changed: "", inClass: -1, ranges: {}, find: "" });
}

/** Return the choices that differ from the initial ones, as an address. */
function address() {
  const initialState = initial();
  const words = new URLSearchParams();
  for (const name of /** @type {const} */ (["by", "limit", "kind", "state", "changed", "against", "find", "sort", "down", "point", "across", "up"])) {
    if (state[name] !== initialState[name]) words.set(name, String(state[name]));
  }
  if (state.inClass >= 0) words.set("class", String(state.inClass));
  for (const [key, [low, high]] of Object.entries(state.ranges)) words.append("range", `${key}:${low}:${high}`);
  return `#${words}`;
}

/**
 * Read the choices in an address; invalid ones are left out.
 * @param {string} hash
 * @returns {Partial<State>}
 */
function read(hash) {
  const words = new URLSearchParams(hash.slice(1));
  /** @type {Partial<State>} */
  const fromAddress = {};
  const by = wholeNumber(words.get("by"), columns.length);
  if (by !== null) fromAddress.by = by;
  const point = wholeNumber(words.get("point"), count);
  if (point !== null) fromAddress.point = point;
  const inClass = Number(words.get("class") ?? NaN);
  if (classes.includes(inClass)) fromAddress.inClass = inClass;
  const limit = Number(words.get("limit") ?? NaN);
  if (limit > 0 && limit < 1) fromAddress.limit = limit;
  const kind = words.get("kind");
  if (kind && KINDS.includes(kind)) fromAddress.kind = kind;
  const stateName = words.get("state");
  if (stateName && STATES.includes(stateName)) fromAddress.state = stateName;
  const changed = words.get("changed");
  if (changed && CHANGES.some(({ name }) => name === changed)) fromAddress.changed = changed;
  const against = wholeNumber(words.get("against"), runs.length);
  if (against) fromAddress.against = against;
  if (words.has("find")) fromAddress.find = /** @type {string} */ (words.get("find")).slice(0, 200);
  if (words.has("down")) fromAddress.down = words.get("down") === "true";
  const sort = words.get("sort");
  if (sort && (["row", "label", "predicted"].includes(sort) || fieldBy(sort))) fromAddress.sort = sort;
  for (const axis of /** @type {const} */ (["across", "up"])) {
    const key = words.get(axis);
    if (key && fieldBy(key)) fromAddress[axis] = key;
  }
  const ranges = Object.fromEntries(words.getAll("range").flatMap(range));
  if (Object.keys(ranges).length) fromAddress.ranges = ranges;
  return fromAddress;
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
function wholeNumber(text, end) {
  const number = Number(text || NaN);
  return Number.isInteger(number) && number >= 0 && number < end ? number : null;
}
