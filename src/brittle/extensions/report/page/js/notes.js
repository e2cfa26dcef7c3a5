// @ts-check
/** Tags and notes on points, kept in the browser. */

import { identity, ids } from "./data.js";

/** @typedef {{tags: string, note: string}} Note */

const KEY = `brittle notes ${identity}`;

/** How long a note is at most. */
export const LONGEST = 2000;

let kept = true;

/** @type {Map<string, Note>} */
let notes = new Map(stored());

/** @returns {[string, Note][]} */
function stored() {
  try {
    const entries = Object.entries(JSON.parse(localStorage.getItem(KEY) ?? "{}"));
    return entries.map(([id, note]) => [id, { tags: String(note?.tags ?? ""), note: String(note?.note ?? "") }]);
  } catch (problem) {
    kept = problem instanceof SyntaxError;
    return [];
  }
}

/**
 * The note on a point.
 * @param {number} point
 * @returns {Note}
 */
export function noteOf(point) {
  return notes.get(ids[point]) ?? { tags: "", note: "" };
}

/**
 * The tags of a point.
 * @param {number} point
 */
export function tagsOf(point) {
  return notes.size ? noteOf(point).tags : "";
}

/**
 * Keeps a note.
 * @param {number} point
 * @param {Note} note
 */
export function keepNote(point, note) {
  if (kept) notes = new Map(stored()); // another window may have kept some
  const cut = { tags: note.tags.slice(0, LONGEST), note: note.note.slice(0, LONGEST) };
  if (cut.tags || cut.note) notes.set(ids[point], cut);
  else notes.delete(ids[point]);
  try {
    localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(notes)));
  } catch {
    kept = false;
  }
}

/** Whether the browser keeps them; a page inside another one may not. */
export function keeps() {
  return kept;
}

/** How many points have one. */
export function noted() {
  return notes.size;
}
