// @ts-check
/** What changed from this run to the one that is chosen. */

import { byId, element, unfoldTo } from "./dom.js";
import { columns, count, runs } from "./data.js";
import { changes, selectedBut } from "./selection.js";
import { CHANGES, choose, state } from "./state.js";
import { counted, shown } from "./text.js";

/** Draws how many points changed, each with a button that selects them; nothing for this run itself. */
export function drawChanges() {
  const { run } = columns[state.by];
  const box = byId("changes");
  box.hidden = run === 0;
  if (run === 0) return box.replaceChildren();
  const tallies = CHANGES.map(() => 0);
  for (let point = 0; point < count; point++) {
    if (selectedBut(point, "changed")) tallies.forEach((_, place) => (tallies[place] += (changes[point] >> place) & 1));
  }
  const buttons = CHANGES.map((name, place) => {
    const on = state.changed === name;
    const click = () => choose({ changed: on ? "" : name });
    return element("button", { type: "button", click, "aria-pressed": String(on) }, `${counted(tallies[place])} ${name}`);
  });
  const go = () => unfoldTo("other-runs");
  const link = element("button", { type: "button", click: go }, "Tests of the differences");
  box.replaceChildren(`From this run to ${shown(runs[run].name)}: `, ...buttons, " ", link);
}
