// @ts-check
/** What changed from this run to another one, whichever of them is on show. */

import { byId, element, fill, unfoldTo } from "./dom.js";
import { columns, count, runs } from "./data.js";
import { bringSelection } from "./list.js";
import { changes, compared, selectedBut } from "./selection.js";
import { CHANGES, choose, state } from "./state.js";
import { counted, shown } from "./text.js";

/** How many of `CHANGES` are in words that take several together; then come those of states, then right and wrong. */
const TOGETHER = 3;
const OF_STATES = 9;

/** Draws how many points changed, each with a button that selects them; nothing without another run. */
export function drawChanges() {
  const box = byId("changes");
  box.hidden = runs.length < 2;
  if (box.hidden) return;
  const tallies = CHANGES.map(() => 0);
  for (let point = 0; point < count; point++) {
    if (selectedBut(point, "changed")) tallies.forEach((_, place) => (tallies[place] += (changes[point] >> place) & 1));
  }
  const buttons = CHANGES.map(({ name }, place) => button(name, tallies[place]));
  const link = element("button", { type: "button", click: () => unfoldTo("other-runs"), "data-keep": "tests" }, "Tests of the differences");
  box.replaceChildren(
    element("p", {}, ...runNames(), ...buttons.slice(0, TOGETHER)),
    element("p", {}, "In detail: ", ...buttons.slice(TOGETHER, OF_STATES)),
    element("p", {}, "Predictions: ", ...buttons.slice(OF_STATES), link),
  );
}

/**
 * @param {string} name
 * @param {number} points
 */
function button(name, points) {
  const on = state.changed === name;
  const click = () => {
    choose({ changed: on ? "" : name });
    if (!on) bringSelection();
  };
  return element("button", { type: "button", click, "aria-pressed": String(on), "data-keep": `change ${name}` }, `${name}: ${counted(points)}`);
}

/** Which runs are compared; with several others and this run on show, a choice of the other one. */
function runNames() {
  const other = compared();
  if (runs.length === 2 || columns[state.by].run) return [`From this run to ${shown(runs[other].name)}: `];
  const list = /** @type {HTMLSelectElement} */ (element("select", { id: "against", "data-keep": "against" }));
  fill(list, runs.slice(1).map(({ name }, place) => ({ value: String(place + 1), text: shown(name) })), String(other));
  list.addEventListener("change", () => choose({ against: Number(list.value) }));
  return [element("label", {}, "From this run to ", list)];
}
