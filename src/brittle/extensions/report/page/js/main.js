// @ts-check
/** Begins: shows what needs a script, and draws every view again when what is chosen changes. */

import { drawCard, watchCard } from "./card.js";
import { drawChanges } from "./changes.js";
import { drawControls, watchControls } from "./controls.js";
import { byId, keepFocus, unfoldTo } from "./dom.js";
import { drawHistogram, watchHistogram } from "./histogram.js";
import { drawList, reveal, toStart, watchList } from "./list.js";
import { drawOverview, watchOverview } from "./overview.js";
import { watchSaving } from "./save.js";
import { pictured } from "./pictures.js";
import { drawRing, drawScatter, watchScatter } from "./scatter.js";
import { judge, places, select } from "./selection.js";
import { choose, chooseByAddress, listen, state } from "./state.js";

/** What changes no more than the open point. */
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
byId("explore").classList.toggle("pictured", pictured);
judge();
select();
drawAll();
reveal();
drawList();

listen((changed) => keepFocus(() => follow(changed)));

/**
 * Draws what follows from a change.
 * @param {Set<string>} changed the names of what changed
 */
function follow(changed) {
  if ([...changed].every((name) => OPENING.includes(name))) {
    reveal();
    drawList();
    drawRing();
    drawCard();
    return;
  }
  if (changed.has("by") || changed.has("limit") || changed.has("against")) judge();
  select();
  toStart();
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
