// @ts-check
/** What changed from this run to the one that is chosen. */

import { switchTo } from "./controls.js";
import { byId, element, unfoldTo } from "./dom.js";
import { columns, count, runs } from "./data.js";
import { changes, selectedBut } from "./selection.js";
import { CHANGES, choose, state } from "./state.js";
import { counted, shown } from "./text.js";

/** Draws how many points changed, each with a button that selects them; of this run itself, what leads to the others. */
export function drawChanges() {
  const { run } = columns[state.by];
  const box = byId("changes");
  box.hidden = runs.length < 2;
  if (box.hidden) return box.replaceChildren();
  if (run === 0) {
    const others = runs.slice(1).map(({ name }, place) => element("button", { type: "button", click: () => switchTo(place + 1) }, shown(name)));
    return box.replaceChildren("See what changed from this run to: ", ...others);
  }
  const tallies = CHANGES.map(() => 0);
  for (let point = 0; point < count; point++) {
    if (selectedBut(point, "changed")) tallies.forEach((_, place) => (tallies[place] += (changes[point] >> place) & 1));
  }
  const buttons = CHANGES.map((name, place) => {
    const on = state.changed === name;
    const click = () => choose({ changed: on ? "" : name });
    return tallies[place] || on ? [element("button", { type: "button", click, "aria-pressed": String(on) }, `${counted(tallies[place])} ${name}`)] : [];
  });
  const none = buttons.some((made) => made.length) ? "" : "no prediction, and no point went from holding to breaking or back. ";
  const go = () => unfoldTo("other-runs");
  const link = element("button", { type: "button", click: go }, "Tests of the differences");
  box.replaceChildren(`From this run to ${shown(runs[run].name)}: `, none, ...buttons.flat(), " ", link);
}
