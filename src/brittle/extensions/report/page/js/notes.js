// @ts-check
/** Tags and notes on points, kept in the browser. */

import { identity, ids } from "./data.js";

/** @typedef {{tags: string, note: string}} Note */

const KEY = `brittle notes ${identity}`;

/** Largest number of characters of a note. */
export const MAX_NOTE_LENGTH = 2000;

let isStored = true;

/** @type {Map<string, Note>} */
let notes = new Map(storedNotes());

/** @returns {[string, Note][]} */
function storedNotes() {
  try {
    const entries = Object.entries(JSON.parse(localStorage.getItem(KEY) ?? "{}"));
    return entries.map(([id, note]) => [id, { tags: String(note?.tags ?? ""), note: String(note?.note ?? "") }]);
  } catch (problem) {
    isStored = problem instanceof SyntaxError;
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
 * Store a note.
 * @param {number} point
 * @param {Note} note
 */
export function keepNote(point, note) {
  if (isStored) notes = new Map(storedNotes()); // another window may have kept some
  const cut = { tags: note.tags.slice(0, MAX_NOTE_LENGTH), note: note.note.slice(0, MAX_NOTE_LENGTH) };
  if (cut.tags || cut.note) notes.set(ids[point], cut);
  else notes.delete(ids[point]);
  try {
    localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(notes)));
  } catch {
    isStored = false;
  }
}

/** Return whether the browser stores notes; a page inside another one may not. */
export function canStore() {
  return isStored;
}

/** Count the points with a note. */
export function noteCount() {
  return notes.size;
}
