// @ts-check
/** The changes from this run to another one, whichever of them is on show. */

import { byId, element, fill, unfoldTo } from "./dom.js";
import { columns, count, runs } from "./data.js";
import { bringSelection } from "./list.js";
import { changes, comparedRunPlace, isSelectedBut } from "./selection.js";
import { CHANGES, choose, state } from "./state.js";
import { counted, show } from "./text.js";

/** Sections of `CHANGES`: the first `TOGETHER` combine several, then come changes of states, then right and wrong. */
const TOGETHER = 3;
const OF_STATES = 9;

/** Draw the number of points with each change, as buttons that select them; nothing without another run. */
export function drawChanges() {
  const box = byId("changes");
  box.hidden = runs.length < 2;
  if (box.hidden) return;
  const tallies = CHANGES.map(() => 0);
  for (let point = 0; point < count; point++) {
    if (isSelectedBut(point, "changed")) tallies.forEach((_, place) => (tallies[place] += (changes[point] >> place) & 1));
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

/** Name the compared runs; with several other runs and this one on show, offer a choice. */
function runNames() {
  const comparedRun = comparedRunPlace();
  if (runs.length === 2 || columns[state.by].run) return [`From this run to ${show(runs[comparedRun].name)}: `];
  const list = /** @type {HTMLSelectElement} */ (element("select", { id: "against", "data-keep": "against" }));
  fill(list, runs.slice(1).map(({ name }, place) => ({ value: String(place + 1), text: show(name) })), String(comparedRun));
  list.addEventListener("change", () => choose({ against: Number(list.value) }));
  return [element("label", {}, "From this run to ", list)];
}
