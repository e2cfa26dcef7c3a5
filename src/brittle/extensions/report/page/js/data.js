// @ts-check
/** The data of the page: the points of a run and its scores. */

import { byId } from "./dom.js";

/** @typedef {Float64Array | Int32Array | Uint8Array} Numbers */
/** @typedef {{kind: string, bytes: string}} Packed */
/** @typedef {{names: string[], codes: Packed}} PackedTexts */

/**
 * One score of one run.
 * @typedef {object} Column
 * @property {number} place its place among all columns
 * @property {number} run place of its run; 0 is this run
 * @property {string} label with all parameters
 * @property {string} name without them
 * @property {string} title common name
 * @property {string} setting the noise, in words; empty for none
 * @property {number | null} sigma
 * @property {string} family of the noise
 * @property {string} unit of its level; empty in units of the input
 * @property {string} level sigma in that unit
 * @property {string} variant the score with the parameters that distinguish it, except noise and draws
 * @property {string} quantity
 * @property {boolean} probability true where the value is a flip probability
 * @property {boolean} isDecisive true where points hold or break by it
 * @property {number | null} [decidedBy] place of the column drawn for the limit of the run, where that one gives the states
 * @property {"higher" | "lower" | null} safer
 * @property {string} explanation
 * @property {Numbers} value
 * @property {Numbers | null} low
 * @property {Numbers | null} high
 * @property {Texts | null} status
 * @property {Texts | null} evidence
 * @property {Texts | null} details
 */

/** @typedef {{names: string[], codes: Numbers}} Texts */

/** @typedef {{point: number, score: string, predicted: number, pointImage?: string, neighbourImage?: string}} Nearest */

const written = JSON.parse(byId("data").textContent ?? "{}");

const KINDS = { f8: Float64Array, i4: Int32Array, u1: Uint8Array };

/**
 * Numbers as the page holds them.
 * @param {Packed} packed
 * @returns {Numbers}
 */
function unpack(packed) {
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
  return packed && { names: packed.names, codes: unpack(packed.codes) };
}

/** @type {number} Number of points of the run. */
export const count = written.count;

/** @type {string[]} Ids of the points. */
export const ids = written.ids;

/** @type {number} Limit of the run: a prediction holds where it is kept with this probability. */
export const runLimit = written.limit;

/** @type {string} Sentence on how the points were sampled, with a trailing blank; empty for all points. */
export const sampleText = written.sampleText;

/** @type {string} Key of the notes on these points; runs over the same data and as many points share it. */
export const identity = written.identity;

/** @type {number} Place of the representative column of the run. */
export const representative = written.representative;

/** @type {Record<string, string>} Evidence of intervals that count no noisy copies, in words. */
export const evidenceTexts = written.evidence;

/** @type {{ counted: string, verbs: [string, string], correct: string, unlabelled: string }} Words for the number of correct predictions. */
export const correctWords = written.correctWords;

/** @type {Record<string, string>} Sentences of the statuses. */
export const statuses = written.statuses;

/** @type {{side: number, perSide: number, sheets: string[], tiles: Numbers, steps: number | null, grey: boolean} | null} */
export const pictures = written.pictures && { ...written.pictures, tiles: unpack(written.pictures.tiles) };

/** @type {Map<number, Nearest[]>} The nearest inputs with another prediction that were found, by their points. */
export const nearest = new Map();
for (const entry of /** @type {Nearest[]} */ (written.nearest)) {
  const entries = nearest.get(entry.point);
  if (entries) entries.push(entry);
  else nearest.set(entry.point, [entry]);
}

/** @type {{names: string[], levels: Record<string, string[]>, values: Numbers, neighbours: Numbers | null} | null} Features of points that are no images. */
export const inputs = written.inputs && {
  names: written.inputs.names,
  levels: written.inputs.levels,
  values: unpack(written.inputs.values),
  neighbours: written.inputs.neighbours && unpack(written.inputs.neighbours),
};

export const rows = unpack(written.rows);
export const labels = unpack(written.label);

/**
 * Next steps with another run: the score that its commands read, these commands, and their folder.
 * @typedef {{score: string, steps: {state: string, kind: string, command: string}[], place: string}} Next
 */

/**
 * A run: the confidence of its intervals, and per point `held` (1 where the run has it), the prediction (-1 for none), and
 * `correct`: 0 no, 1 yes, 2 unknown. The first screen holds the next steps of this run.
 * @typedef {{name: string, confidence: number, held: Numbers, predicted: Numbers, correct: Numbers, next?: Next}} Run
 */

/** @type {Run[]} */
export const runs = written.runs.map((/** @type {any} */ run) => ({
  ...run,
  held: unpack(run.held),
  predicted: unpack(run.predicted),
  correct: unpack(run.correct),
}));

/** @type {Column[]} */
export const columns = written.columns.map((/** @type {any} */ column, /** @type {number} */ place) => {
  const value = unpack(column.value);
  /** @param {Packed | "value" | null} end */
  const ends = (end) => (end === "value" ? value : end && unpack(end));
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
  const place = all ? all.codes[point] : -1;
  return all && place >= 0 && place < all.names.length ? all.names[place] : "";
}

/**
 * Return the name of a point, or its row without a name.
 * @param {number} point
 */
export function nameOf(point) {
  return textOf(names, point) || `row ${rows[point]}`;
}

/**
 * Return the problem with a point; empty for none.
 * @param {number} point
 */
export function troubleOf(point) {
  return textOf(details, point);
}

/**
 * Return the classes predicted for the noisy copies of a point; empty where all copies agree.
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
export const classes = Object.keys(written.classes).map(Number).sort((a, b) => a - b);

/** True where any point has a label. */
export const hasLabels = labels.some((label) => label >= 0);
