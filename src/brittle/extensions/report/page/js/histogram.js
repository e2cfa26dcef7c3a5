// @ts-check
/** The histogram of the chosen score; a drag selects. */

import { byId } from "./dom.js";
import { columns, count } from "./data.js";
import { axisNames, withDirection, fields } from "./fields.js";
import { STATE_COLOURS, across, colour, fitText, onDrag, placeAcross, surface, up, writeBelow } from "./paint.js";
import { binOf } from "./scales.js";
import { isSelectedBut, states } from "./selection.js";
import { STATES, choose, state } from "./state.js";
import { counted } from "./text.js";

const canvas = /** @type {HTMLCanvasElement} */ (byId("histogram"));

/** Draw the histogram. */
export function drawHistogram() {
  byId("histogram-states").hidden = !columns[state.by].isDecisive;
  const on = surface(canvas);
  const { pen, width, height } = on;
  const { scale, key } = fields[state.by];
  const name = withDirection(fields[state.by]);
  const bins = tallies();
  const highest = Math.max(1, ...bins.map((bin) => bin.reduce((sum, tally) => sum + tally)));
  const range = state.ranges[key];
  pen.textAlign = "center";
  bins.forEach((bin, place) => {
    const barLeft = across(place / bins.length, width) + 1;
    const wide = across((place + 1) / bins.length, width) - barLeft - 1;
    const inside = !range || (scale.edges[place] >= range[0] && scale.edges[place] <= range[1]);
    pen.globalAlpha = inside ? 1 : 0.25;
    let below = 0;
    bin.forEach((tally, which) => {
      const room = 0.92 / highest;
      pen.fillStyle = colour(STATE_COLOURS[which]);
      const top = up((below + tally) * room, height);
      pen.fillRect(barLeft, top, wide, up(below * room, height) - top);
      below += tally;
    });
    pen.globalAlpha = 1;
    pen.fillStyle = colour("--muted");
    const text = counted(below);
    if (below && pen.measureText(text).width < wide + 4) {
      pen.fillText(text, barLeft + wide / 2, up((0.92 * below) / highest, height) - 3);
    }
  });
  writeBelow(on, scale.ticks.map(({ value, text }) => ({ at: across(scale.place(value), width), text })));
  pen.textAlign = "center";
  pen.fillText(fitText(pen, axisNames(fields[state.by]), width), width / 2, height - 6);
  canvas.setAttribute("aria-label", describe(bins, name, scale.edges));
}

/** Count the points in each bin by their states. */
function tallies() {
  const { scale, values, key } = fields[state.by];
  const bins = Array.from({ length: scale.edges.length - 1 }, () => STATES.map(() => 0));
  for (let point = 0; point < count; point++) {
    if (Number.isFinite(values[point]) && isSelectedBut(point, { range: key })) bins[binOf(scale.edges, values[point])][states[point]]++;
  }
  return bins;
}

/**
 * @param {number[][]} bins
 * @param {string} name
 * @param {number[]} edges
 */
function describe(bins, name, edges) {
  const parts = bins.map((bin, place) => `from ${edges[place].toPrecision(3)}: ${bin.reduce((sum, tally) => sum + tally)}`);
  return `Histogram of ${name}. Points ${parts.join(", ")}.`;
}

/** Make a drag select bins, and a click a single bin. */
export function watchHistogram() {
  onDrag(canvas, (start, end, { width }) => {
    const { scale, key } = fields[state.by];
    const last = scale.edges.length - 2;
    /** @param {number} x */
    const bin = (x) => Math.min(Math.max(Math.floor(placeAcross(x, width) * (last + 1)), 0), last);
    const [startBin, endBin] = [bin(Math.min(start[0], end[0])), bin(Math.max(start[0], end[0]))];
    const low = scale.edges[startBin];
    const high = endBin === last ? scale.edges[last + 1] : justBelow(scale.edges[endBin + 1]);
    const before = state.ranges[key];
    const ranges = { ...state.ranges };
    if (before && before[0] === low && before[1] === high) delete ranges[key];
    else ranges[key] = [low, high];
    choose({ ranges });
  });
}

/**
 * Return a number just below, so that a bin ends before the next one begins.
 * @param {number} value
 */
function justBelow(value) {
  return value - Math.abs(value) * 1e-12 - Number.MIN_VALUE;
}
