// @ts-check
/** The selection as files: CSV, and ids for `brittle score --ids`. */

import { byId, element } from "./dom.js";
import { classOf, ids, labels, nameOf, rows, runs, textOf } from "./data.js";
import { fields } from "./fields.js";
import { noteOf, noteCount } from "./notes.js";
import { predictions, selected, states } from "./selection.js";
import { STATES } from "./state.js";
import { show } from "./text.js";

/**
 * Places where a spreadsheet would begin a formula, in both widths, or a text looks marked: at the start, and behind a
 * semicolon, at which it splits a line where the comma is in numbers. As in `brittle.store.export`.
 */
const GUARDED = /^(?=[=+\-@＝＋－＠\t\r\n'])|[;\t\r\n](?=[ "]*[=+\-@＝＋－＠'])/g;

/**
 * A text as a cell of a CSV file; what a spreadsheet would run begins with an apostrophe.
 * @param {string} text
 */
function csvCell(text) {
  const safe = text.replaceAll(GUARDED, "$&'");
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * A text of the run as a cell, from which `brittle` reads it back: what cannot be seen as escapes, a backslash as two.
 * @param {string} text
 */
function runCell(text) {
  return csvCell(show(text.replaceAll("\\", "\\\\")));
}

/**
 * A number as a cell of a CSV file; empty for none.
 * @param {number} number
 */
function numberCell(number) {
  return Number.isNaN(number) ? "" : String(number);
}

/**
 * Return the state of a point; empty where the chosen score decides none.
 * @param {number} point
 */
function stateCell(point) {
  const name = STATES[states[point]];
  return name === "unjudged" ? "" : name;
}

/** The selected points in the order of the list, with every score. */
function selectionCsv() {
  const withNotes = noteCount() > 0;
  const headings = ["point", "row", "name", "label", "predicted", "state"];
  for (const { column } of fields) {
    const name = column.run ? `${runs[column.run].name}: ${column.label}` : column.label;
    headings.push(column.probability ? `${name}.p_robust` : name, `${name}.low`, `${name}.high`, `${name}.status`);
  }
  if (withNotes) headings.push("tags", "note");
  const predicted = predictions();
  const lines = [headings.map(runCell).join(",")];
  for (const point of selected()) {
    const cells = [runCell(ids[point]), String(rows[point]), runCell(nameOf(point))];
    cells.push(...[labels[point], predicted[point]].map((number) => (number < 0 ? "" : runCell(classOf(number)))), stateCell(point));
    for (const { column, values, probability } of fields) {
      const ends = [column.low, column.high].map((all) => (all ? all[point] : NaN));
      const [low, high] = probability ? [1 - ends[1], 1 - ends[0]] : ends;
      cells.push(...[values[point], low, high].map(numberCell), runCell(textOf(column.status, point)));
    }
    if (withNotes) cells.push(csvCell(noteOf(point).tags), csvCell(noteOf(point).note));
    lines.push(cells.join(","));
  }
  return `${lines.join("\n")}\n`;
}

/** The ids of the selected points, one a line. */
function selectionIds() {
  return [...selected()].map((point) => ids[point]).join("\n") + "\n";
}

/**
 * @param {string} name
 * @param {string} kind
 * @param {string} text
 */
function save(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: kind }));
  const link = /** @type {HTMLAnchorElement} */ (element("a", { href: address, download: name }));
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Make the buttons save. */
export function watchSaving() {
  byId("save-csv").addEventListener("click", () => save("selection.csv", "text/csv", selectionCsv()));
  byId("save-ids").addEventListener("click", () => save("ids.txt", "text/plain", selectionIds()));
  byId("save-csv").title = "Every score of the selected points; the column state is by the chosen score and limit";
}
