// @ts-check
/** The probability of a prediction as the noise grows, for each score that was computed at several levels. */

import { canvas, element } from "./dom.js";
import { columns } from "./data.js";
import { titleOf } from "./fields.js";
import { MARGIN, across, colour, surface, up, writeBelow } from "./paint.js";
import { towardsOne } from "./scales.js";
import { state } from "./state.js";
import { keptText, short, show } from "./text.js";

const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3], [1, 2], [12, 4]];

/** @typedef {import("./data.js").Column} Column */

/**
 * The figure of one point; null where no score has two levels of noise.
 * @param {number} point
 */
export function drawLevels(point) {
  const drawn = [...byVariant().values()].filter((line) => line.filter(({ value }) => !Number.isNaN(value[point])).length > 1);
  if (!drawn.length) return null;
  const axis = axisOf((drawn.find(([column]) => axisOf(column) === axisOf(columns[state.by])) ?? drawn[0])[0]);
  const series = drawn.filter(([column]) => axisOf(column) === axis);
  const { family, unit } = series[0][0];
  const by = unit ? `level of the noise ${family} (${unit})` : "sigma of the noise";
  const sigmas = [...new Set(series.flat().map(({ sigma }) => Number(sigma)))].sort((a, b) => a - b);
  const spoken = series.map((line) => `${line[0].variant}: ${line.map(({ level, value }) => `${keptText(value[point])} at ${level} ${unit}`.trim()).join(", ")}`);
  const on = canvas({ class: "levels", role: "img", "aria-label": show(`p_robust by ${by}. ${spoken.join("; ")}.`) });
  requestAnimationFrame(() => draw(on, series, sigmas, point));
  const families = new Set(series.map(([column]) => column.family)).size;
  const keys = series.map((line, place) => `${["solid", "dashed", "dotted", "dash and dot", "fine dots", "long dashes"][place % DASHES.length]}: ${titleOf(line[0])}${families > 1 ? `, ${line[0].family}` : ""}`);
  return element("figure", {}, element("figcaption", {}, show(`p_robust (higher is safer) by ${by}, with intervals. ${keys.join("; ")}.`)), on);
}

/**
 * Return the key of the noise axis: levels in units of the input share an axis, other units only within their family.
 * @param {Column} column
 */
function axisOf({ family, unit }) {
  return unit && `${family}\n${unit}`;
}

/** The columns of the chosen run, by what they are but for the noise level. */
function byVariant() {
  /** @type {Map<string, Column[]>} */
  const columnsByVariant = new Map();
  for (const column of columns) {
    if (!column.probability || column.sigma === null || column.run !== columns[state.by].run) continue;
    const key = [column.variant, column.family, column.unit].join("\n");
    columnsByVariant.set(key, [...(columnsByVariant.get(key) ?? []), column].sort((a, b) => Number(a.sigma) - Number(b.sigma)));
  }
  return columnsByVariant;
}

/**
 * @param {HTMLCanvasElement} canvas
 * @param {Column[][]} series
 * @param {number[]} sigmas
 * @param {number} point
 */
function draw(canvas, series, sigmas, point) {
  const on = surface(canvas);
  const { pen, width, height } = on;
  const scale = towardsOne();
  /** @param {number} flip */
  const top = (flip) => up(scale.place(1 - flip), height);
  const written = new Map(series.flat().filter(({ unit }) => unit).map(({ sigma, level }) => [Number(sigma), level]));
  /** @param {Column} column */
  const xOf = ({ sigma }) => across((sigmas.indexOf(Number(sigma)) + 0.5) / sigmas.length, width);
  pen.fillStyle = colour("--muted");
  pen.strokeStyle = colour("--rule");
  pen.textAlign = "right";
  for (const { value, text } of scale.ticks.filter((_, place) => place % 2 === 1)) {
    const at = up(scale.place(value), height);
    pen.beginPath();
    pen.moveTo(MARGIN.left, at);
    pen.lineTo(width - MARGIN.right, at);
    pen.stroke();
    pen.fillText(text, MARGIN.left - 6, at + 4);
  }
  writeBelow(on, sigmas.map((sigma, place) => ({ at: across((place + 0.5) / sigmas.length, width), text: written.get(sigma) ?? short(sigma) })));
  series.forEach((line, place) => {
    const measured = line.filter(({ value }) => !Number.isNaN(value[point]));
    pen.strokeStyle = colour(line.some((column) => column.place === state.by) ? "--accent" : "--ink");
    pen.setLineDash(DASHES[place % DASHES.length]);
    pen.beginPath();
    measured.forEach((column) => pen.lineTo(xOf(column), top(column.value[point])));
    pen.stroke();
    pen.setLineDash([]);
    for (const column of measured) {
      if (!column.low || !column.high || Number.isNaN(column.low[point])) continue;
      pen.beginPath();
      pen.moveTo(xOf(column), top(column.low[point]));
      pen.lineTo(xOf(column), top(column.high[point]));
      pen.stroke();
    }
  });
}
