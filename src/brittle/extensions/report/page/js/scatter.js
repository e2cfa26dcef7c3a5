// @ts-check
/** One score against another; a drag selects, a click opens the nearest point. */

import { bring, byId } from "./dom.js";
import { count } from "./data.js";
import { axisNames, fieldBy, fields } from "./fields.js";
import { MARGIN, across, colour, fitText, onDrag, placeAcross, placeUp, surface, up, writeBelow } from "./paint.js";
import { kinds, selected, isSelectedBut } from "./selection.js";
import { choose, state } from "./state.js";
import { counted } from "./text.js";

/** @typedef {import("./fields.js").Field} Field */

const canvas = /** @type {HTMLCanvasElement} */ (byId("scatter"));
const ringCanvas = /** @type {HTMLCanvasElement} */ (byId("ring"));
const REACH = 14;

/** Largest number of points drawn in full; marks of more are smaller and paler, down to these shares. */
const SPARSE = 500;
const SMALLEST = 0.45;
const FAINTEST = 0.4;

/** Number of turns in which kinds alternate, so that none covers the other. */
const TURNS = 16;

const COLOURS = ["--accent", "--breaks", "--ink"];

/** The two fields that are drawn. */
function axes() {
  return { x: fieldBy(state.across) ?? fields[0], y: fieldBy(state.up) ?? fields[state.by] };
}

/** Draw the scatter plot. */
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
          if (kinds[point] !== kind || isSelectedBut(point, "none") !== chosen) continue;
          const markX = across(x.scale.place(x.values[point]), width);
          const markY = up(y.scale.place(y.values[point]), height);
          if (!Number.isFinite(markX) || !Number.isFinite(markY)) without++;
          else mark(pen, kind, markX, markY, size);
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
 * Draw a square for a correct or unlabelled point, a cross for a wrong one.
 * @param {CanvasRenderingContext2D} pen
 * @param {number} kind
 * @param {number} markX
 * @param {number} markY
 * @param {number} size 1 for a few points, less for many
 */
function mark(pen, kind, markX, markY, size) {
  if (kind === 1) {
    const [long, thick] = [7 * size, 2 * size];
    pen.fillRect(markX - long / 2, markY - thick / 2, long, thick);
    pen.fillRect(markX - thick / 2, markY - long / 2, thick, (long - thick) / 2);
    pen.fillRect(markX - thick / 2, markY + thick / 2, thick, (long - thick) / 2);
  } else {
    const side = 3.5 * size;
    pen.fillRect(markX - side / 2, markY - side / 2, side, side);
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
  pen.fillText(fitText(pen, axisNames(x), width), width / 2, height - 6);
  pen.textAlign = "left";
  pen.fillText(fitText(pen, axisNames(y), width - 2), 2, 11);
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
  const [low, high] = (state.ranges[x.key] ?? [-Infinity, Infinity]).map((end) => clamp(x.scale.place(end)));
  const [bottom, peak] = (state.ranges[y.key] ?? [-Infinity, Infinity]).map((end) => clamp(y.scale.place(end)));
  const [leftEdge, rightEdge] = [across(low, width), across(high, width)];
  pen.strokeStyle = colour("--ink");
  pen.strokeRect(leftEdge, up(peak, height), rightEdge - leftEdge, up(bottom, height) - up(peak, height));
}

/** @param {number} place */
function clamp(place) {
  return Math.min(Math.max(place, 0), 1);
}

/** Draw a ring around the open point, on a separate canvas. */
export function drawRing() {
  const { pen, width, height } = surface(ringCanvas);
  if (state.point < 0) return;
  const { x, y } = axes();
  const ringX = across(x.scale.place(x.values[state.point]), width);
  const ringY = up(y.scale.place(y.values[state.point]), height);
  if (!Number.isFinite(ringX) || !Number.isFinite(ringY)) return;
  pen.strokeStyle = colour("--ink");
  pen.lineWidth = 2;
  pen.beginPath();
  pen.arc(ringX, ringY, 8, 0, 2 * Math.PI);
  pen.stroke();
}

/** Make a drag select a rectangle, and a click open the nearest of the selected points. */
export function watchScatter() {
  const frame = byId("dragged");
  onDrag(
    canvas,
    (start, end, { width, height }) => {
      frame.hidden = true;
      const { x, y } = axes();
      if (Math.hypot(start[0] - end[0], start[1] - end[1]) < 5) return open(start, width, height, x, y);
      const ranges = { ...state.ranges };
      ranges[x.key] = ends(x, [start[0], end[0]].map((pixel) => placeAcross(pixel, width)));
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
 * Return the range of values between two places; an end beyond the axis is infinite.
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
  let nearestPoint = -1;
  let nearestSquare = REACH * REACH;
  for (let point = 0; point < count; point++) {
    if (!isSelectedBut(point, "none")) continue;
    const distanceX = across(x.scale.place(x.values[point]), width) - spot[0];
    const distanceY = up(y.scale.place(y.values[point]), height) - spot[1];
    const square = distanceX * distanceX + distanceY * distanceY;
    if (square < nearestSquare) [nearestSquare, nearestPoint] = [square, point];
  }
  if (nearestPoint >= 0) {
    choose({ point: nearestPoint });
    bring(byId("card"));
    return byId("card").focus({ preventScroll: true });
  }
  const ranges = { ...state.ranges };
  delete ranges[x.key];
  delete ranges[y.key];
  choose({ ranges });
}
