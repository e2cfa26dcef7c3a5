// @ts-check
/** The start: shows the interactive parts, and redraws the views after every change. */

import { drawCard, watchCard } from "./card.js";
import { drawChanges } from "./changes.js";
import { drawControls, watchControls } from "./controls.js";
import { byId, keepFocus, unfoldTo } from "./dom.js";
import { drawHistogram, watchHistogram } from "./histogram.js";
import { drawList, reveal, scrollToStart, watchList } from "./list.js";
import { drawOverview, watchOverview } from "./overview.js";
import { watchSaving } from "./save.js";
import { hasPictures } from "./pictures.js";
import { drawRing, drawScatter, watchScatter } from "./scatter.js";
import { updateStates, places, select } from "./selection.js";
import { choose, chooseByAddress, listen, state } from "./state.js";

/** Changes that need no new selection. */
const OPENING = ["point"];

function drawAll() {
  drawControls();
  drawOverview();
  drawChanges();
  drawHistogram();
  drawScatter();
  drawList();
  drawCard();
}

byId("explore").hidden = false;
byId("explore").classList.toggle("pictured", hasPictures);
updateStates();
select();
drawAll();
reveal();
drawList();

listen((changed) => keepFocus(() => follow(changed)));

/**
 * Redraw the views that depend on a change.
 * @param {Set<string>} changed names of the changed fields of the state
 */
function follow(changed) {
  if ([...changed].every((name) => OPENING.includes(name))) {
    reveal();
    drawList();
    drawRing();
    drawCard();
    return;
  }
  if (changed.has("by") || changed.has("limit") || changed.has("against")) updateStates();
  select();
  scrollToStart();
  drawAll();
  if (state.point >= 0 && places[state.point] < 0 && !changed.has("point")) choose({ point: -1 });
}

watchOverview();
watchControls();
watchHistogram();
watchScatter();
watchList();
watchCard();
watchSaving();

for (const link of document.querySelectorAll('a[href*="#"]')) {
  link.addEventListener("click", (event) => {
    event.preventDefault(); // the address keeps what is chosen
    unfoldTo(String(link.getAttribute("href")).replace(/^.*#/, ""));
  });
}

addEventListener("resize", () => {
  drawHistogram();
  drawScatter();
  drawList();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
addEventListener("hashchange", chooseByAddress);
