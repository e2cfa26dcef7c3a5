// @ts-check
/** What the page was written with: the points of a run and its scores. */

import { byId } from "./dom.js";

/** @typedef {Float64Array | Int32Array | Uint8Array} Numbers */
/** @typedef {{kind: string, bytes: string}} Packed */
/** @typedef {{names: string[], of: Packed}} PackedTexts */

/**
 * One score of one run.
 * @typedef {object} Column
 * @property {number} place its place among all columns
 * @property {number} run the run that it is of: 0 is this one
 * @property {string} label with all parameters
 * @property {string} name without them
 * @property {string} title what people call it
 * @property {string} setting the noise, in words; empty for none
 * @property {number | null} sigma
 * @property {string} family of the noise
 * @property {string} unit of its level; empty in units of the input
 * @property {string} level sigma in that unit
 * @property {string} variant the score with what tells it from its siblings, but noise and draws
 * @property {string} quantity
 * @property {boolean} probability whether the value is a flip probability
 * @property {boolean} judges whether points hold or break by it
 * @property {number | null} [decidedBy] the place of the column that was drawn for the limit of the run, where the states are of that
 * @property {"higher" | "lower" | null} safer
 * @property {string} explanation
 * @property {Numbers} value
 * @property {Numbers | null} low
 * @property {Numbers | null} high
 * @property {Texts | null} status
 * @property {Texts | null} evidence
 * @property {Texts | null} details
 */

/** @typedef {{names: string[], of: Numbers}} Texts */

/** @typedef {{point: number, score: string, predicted: number, own?: string, other?: string}} Nearest */

const written = JSON.parse(byId("data").textContent ?? "{}");

const KINDS = { f8: Float64Array, i4: Int32Array, u1: Uint8Array };

/**
 * Numbers as the page holds them.
 * @param {Packed} packed
 * @returns {Numbers}
 */
function unpacked(packed) {
  const text = atob(packed.bytes);
  const bytes = new Uint8Array(text.length);
  for (let place = 0; place < text.length; place++) bytes[place] = text.charCodeAt(place);
  return new KINDS[/** @type {keyof typeof KINDS} */ (packed.kind)](bytes.buffer);
}

/**
 * @param {PackedTexts | null} packed
 * @returns {Texts | null}
 */
function texts(packed) {
  return packed && { names: packed.names, of: unpacked(packed.of) };
}

/** @type {number} How many points the run has. */
export const count = written.count;

/** @type {string[]} Their ids. */
export const ids = written.ids;

/** @type {number} A prediction holds where it is kept with this probability, unless the reader names another one. */
export const ownLimit = written.limit;

/** @type {string} That the points were chosen from others, with a blank behind it; empty where they were not. */
export const chosen = written.chosen;

/** @type {string} What notes on these points are kept under: runs over the same data, and as many of them, share theirs. */
export const identity = written.identity;

/** @type {number} The place of the column that speaks for the run. */
export const spokesman = written.by;

/** @type {Record<string, string>} What intervals rest on that count no copies. */
export const rests = written.rests;

/** @type {{ counted: string, verbs: [string, string], correct: string, unlabelled: string }} How the page says how many are right. */
export const rightWords = written.right;

/** @type {Record<string, string>} What each status means. */
export const statuses = written.statuses;

/** @type {{side: number, perSide: number, sheets: string[], tiles: Numbers, steps: number | null, grey: boolean} | null} */
export const pictures = written.pictures && { ...written.pictures, tiles: unpacked(written.pictures.tiles) };

/** @type {Map<number, Nearest[]>} The nearest inputs with another prediction that were found, by their points. */
export const nearest = new Map();
for (const entry of /** @type {Nearest[]} */ (written.nearest)) {
  const own = nearest.get(entry.point);
  if (own) own.push(entry);
  else nearest.set(entry.point, [entry]);
}

/** @type {{names: string[], levels: Record<string, string[]>, values: Numbers, others: Numbers | null} | null} Features of points that are no images. */
export const inputs = written.inputs && {
  names: written.inputs.names,
  levels: written.inputs.levels,
  values: unpacked(written.inputs.values),
  others: written.inputs.others && unpacked(written.inputs.others),
};

export const rows = unpacked(written.rows);
export const labels = unpacked(written.label);

/**
 * What to do next with another run: the score that its commands read, these commands, and where they run.
 * @typedef {{by: string, steps: {state: string, kind: string, command: string}[], where: string}} Next
 */

/**
 * A run: of its intervals the confidence, and of each point whether it holds it, its prediction (-1 for none), and whether
 * that is right: 0 no, 1 yes, 2 not known. What to do next with this run stands on the first screen.
 * @typedef {{name: string, confidence: number, held: Numbers, predicted: Numbers, correct: Numbers, next?: Next}} Run
 */

/** @type {Run[]} */
export const runs = written.runs.map((/** @type {any} */ run) => ({
  ...run,
  held: unpacked(run.held),
  predicted: unpacked(run.predicted),
  correct: unpacked(run.correct),
}));

/** @type {Column[]} */
export const columns = written.columns.map((/** @type {any} */ column, /** @type {number} */ place) => {
  const value = unpacked(column.value);
  /** @param {Packed | "value" | null} end */
  const ends = (end) => (end === "value" ? value : end && unpacked(end));
  return {
    ...column,
    place,
    value,
    low: ends(column.low),
    high: ends(column.high),
    status: texts(column.status),
    evidence: texts(column.evidence),
    details: texts(column.details),
  };
});

const names = texts(written.names);
const details = texts(written.details);
const votes = texts(written.votes);

/**
 * The text of a point, empty for none.
 * @param {Texts | null} all
 * @param {number} point
 */
export function textOf(all, point) {
  const place = all ? all.of[point] : -1;
  return all && place >= 0 && place < all.names.length ? all.names[place] : "";
}

/**
 * What a point is called: its name, or its row.
 * @param {number} point
 */
export function nameOf(point) {
  return textOf(names, point) || `row ${rows[point]}`;
}

/**
 * What was wrong with a point, if anything.
 * @param {number} point
 */
export function troubleOf(point) {
  return textOf(details, point);
}

/**
 * Which classes the noisy copies of a point are predicted; empty where all are predicted alike.
 * @param {number} point
 */
export function votesOf(point) {
  return textOf(votes, point);
}

/**
 * The name of a class.
 * @param {number} number -1 for none
 */
export function classOf(number) {
  return number < 0 ? "–" : (written.classes[number] ?? `class ${number}`);
}

/** Numbers of all classes that points have. */
export const classes = Object.keys(written.classes).map(Number).sort((one, other) => one - other);

/** Whether any point has a label. */
export const labelled = labels.some((label) => label >= 0);
