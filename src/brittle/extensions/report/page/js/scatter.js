// @ts-check
/** One score against another; a drag selects, a click opens the nearest point. */

import { bring, byId } from "./dom.js";
import { count } from "./data.js";
import { axisNames, fieldBy, fields } from "./fields.js";
import { MARGIN, across, colour, fitting, onDrag, placeAcross, placeUp, surface, up, writeBelow } from "./paint.js";
import { kinds, selected, selectedBut } from "./selection.js";
import { choose, state } from "./state.js";
import { counted } from "./text.js";

/** @typedef {import("./fields.js").Field} Field */

const canvas = /** @type {HTMLCanvasElement} */ (byId("scatter"));
const above = /** @type {HTMLCanvasElement} */ (byId("ring"));
const REACH = 14;

/** Up to so many points are drawn in full; of more the marks are smaller and paler, down to these shares. */
const SPARSE = 500;
const SMALLEST = 0.45;
const FAINTEST = 0.4;

/** Kinds are drawn in so many turns each, so that none covers the other. */
const TURNS = 16;

const COLOURS = ["--accent", "--breaks", "--ink"];

/** The two fields that are drawn. */
function axes() {
  return { x: fieldBy(state.across) ?? fields[0], y: fieldBy(state.up) ?? fields[state.by] };
}

/** Draws it. */
export function drawScatter() {
  const on = surface(canvas);
  const { x, y } = axes();
  drawAxes(on, x, y);
  const { pen, width, height } = on;
  let without = 0;
  for (const chosen of [false, true]) {
    const crowd = Math.max(1, (chosen ? selected().length : count - selected().length) / SPARSE);
    const size = Math.max(crowd ** -0.2, SMALLEST);
    pen.globalAlpha = (chosen ? 0.6 : 0.5) * Math.max(crowd ** -0.25, FAINTEST);
    for (let turn = 0; turn < TURNS; turn++) {
      for (const kind of [0, 1, 2]) {
        pen.fillStyle = colour(chosen ? COLOURS[kind] : "--rule");
        for (let point = turn; point < count; point += TURNS) {
          if (kinds[point] !== kind || selectedBut(point, "none") !== chosen) continue;
          const left = across(x.scale.place(x.values[point]), width);
          const top = up(y.scale.place(y.values[point]), height);
          if (!Number.isFinite(left) || !Number.isFinite(top)) without++;
          else mark(pen, kind, left, top, size);
        }
      }
    }
  }
  pen.globalAlpha = 1;
  drawRange(on, x, y);
  drawRing();
  byId("without").textContent = without ? `${counted(without)} without one of the two numbers are not drawn.` : "";
  canvas.setAttribute("aria-label", `${x.name} across, ${y.name} upwards, one mark a point. The list holds the same points.`);
}

/**
 * A square for what is right or has no label, a cross for what is wrong.
 * @param {CanvasRenderingContext2D} pen
 * @param {number} kind
 * @param {number} left
 * @param {number} top
 * @param {number} size 1 where points are few, and less where they are many
 */
function mark(pen, kind, left, top, size) {
  if (kind === 1) {
    const [long, thick] = [7 * size, 2 * size];
    pen.fillRect(left - long / 2, top - thick / 2, long, thick);
    pen.fillRect(left - thick / 2, top - long / 2, thick, (long - thick) / 2);
    pen.fillRect(left - thick / 2, top + thick / 2, thick, (long - thick) / 2);
  } else {
    const side = 3.5 * size;
    pen.fillRect(left - side / 2, top - side / 2, side, side);
  }
}

/**
 * @param {import("./paint.js").Surface} on
 * @param {Field} x
 * @param {Field} y
 */
function drawAxes(on, x, y) {
  const { pen, width, height } = on;
  pen.strokeStyle = colour("--rule");
  pen.fillStyle = colour("--muted");
  pen.textAlign = "right";
  let free = Infinity;
  for (const { value, text } of y.scale.ticks) {
    const at = Math.round(up(y.scale.place(value), height)) + 0.5;
    pen.beginPath();
    pen.moveTo(MARGIN.left, at);
    pen.lineTo(width - MARGIN.right, at);
    pen.stroke();
    if (at > free - 12) continue;
    pen.fillText(text, MARGIN.left - 6, at + 4);
    free = at;
  }
  pen.textAlign = "center";
  pen.fillText(fitting(pen, axisNames(x), width), width / 2, height - 6);
  pen.textAlign = "left";
  pen.fillText(fitting(pen, axisNames(y), width - 2), 2, 11);
  writeBelow(on, x.scale.ticks.map(({ value, text }) => ({ at: across(x.scale.place(value), width), text })));
}

/**
 * The rectangle that is selected on these axes.
 * @param {import("./paint.js").Surface} on
 * @param {Field} x
 * @param {Field} y
 */
function drawRange({ pen, width, height }, x, y) {
  if (!state.ranges[x.key] && !state.ranges[y.key]) return;
  const [low, high] = (state.ranges[x.key] ?? [-Infinity, Infinity]).map((end) => within(x.scale.place(end)));
  const [bottom, top] = (state.ranges[y.key] ?? [-Infinity, Infinity]).map((end) => within(y.scale.place(end)));
  const [left, right] = [across(low, width), across(high, width)];
  pen.strokeStyle = colour("--ink");
  pen.strokeRect(left, up(top, height), right - left, up(bottom, height) - up(top, height));
}

/** @param {number} place */
function within(place) {
  return Math.min(Math.max(place, 0), 1);
}

/** Draws a ring around the open point, on a surface of its own. */
export function drawRing() {
  const { pen, width, height } = surface(above);
  if (state.point < 0) return;
  const { x, y } = axes();
  const left = across(x.scale.place(x.values[state.point]), width);
  const top = up(y.scale.place(y.values[state.point]), height);
  if (!Number.isFinite(left) || !Number.isFinite(top)) return;
  pen.strokeStyle = colour("--ink");
  pen.lineWidth = 2;
  pen.beginPath();
  pen.arc(left, top, 8, 0, 2 * Math.PI);
  pen.stroke();
}

/** Lets a drag select a rectangle, and a click open the nearest of the selected points. */
export function watchScatter() {
  const frame = byId("dragged");
  onDrag(
    canvas,
    (start, end, { width, height }) => {
      frame.hidden = true;
      const { x, y } = axes();
      if (Math.hypot(start[0] - end[0], start[1] - end[1]) < 5) return open(start, width, height, x, y);
      const ranges = { ...state.ranges };
      ranges[x.key] = ends(x, [start[0], end[0]].map((left) => placeAcross(left, width)));
      ranges[y.key] = ends(y, [start[1], end[1]].map((top) => placeUp(top, height)));
      choose({ ranges });
    },
    (start, end) => {
      const box = { left: Math.min(start[0], end[0]), top: Math.min(start[1], end[1]) };
      frame.hidden = false;
      frame.style.left = `${box.left}px`;
      frame.style.top = `${box.top}px`;
      frame.style.width = `${Math.abs(start[0] - end[0])}px`;
      frame.style.height = `${Math.abs(start[1] - end[1])}px`;
    },
  );
}

/**
 * The values of a field between two places; beyond an end of the axis everything.
 * @param {Field} field
 * @param {number[]} between
 * @returns {[number, number]}
 */
function ends(field, between) {
  const [low, high] = [Math.min(...between), Math.max(...between)];
  return [low <= 0 ? -Infinity : field.scale.value(low), high >= 1 ? Infinity : field.scale.value(high)];
}

/**
 * @param {[number, number]} spot
 * @param {number} width
 * @param {number} height
 * @param {Field} x
 * @param {Field} y
 */
function open(spot, width, height, x, y) {
  let found = -1;
  let least = REACH * REACH;
  for (let point = 0; point < count; point++) {
    if (!selectedBut(point, "none")) continue;
    const left = across(x.scale.place(x.values[point]), width) - spot[0];
    const top = up(y.scale.place(y.values[point]), height) - spot[1];
    const apart = left * left + top * top;
    if (apart < least) [least, found] = [apart, point];
  }
  if (found >= 0) {
    choose({ point: found });
    bring(byId("card"));
    return byId("card").focus({ preventScroll: true });
  }
  const ranges = { ...state.ranges };
  delete ranges[x.key];
  delete ranges[y.key];
  choose({ ranges });
}
