// @ts-check
/** What the reader chooses by hand: score, limit, text to find, numbers to filter by; and what is filtered now. */

import { byId, element, fill } from "./dom.js";
import { classOf, columns, runs } from "./data.js";
import { fieldBy, fields, speaking } from "./fields.js";
import { filters } from "./selection.js";
import { choose, clear, state } from "./state.js";
import { shown, valueText } from "./text.js";

const by = /** @type {HTMLSelectElement} */ (byId("by"));
const inRun = /** @type {HTMLSelectElement} */ (byId("run"));
const limit = /** @type {HTMLInputElement} */ (byId("limit"));
const find = /** @type {HTMLInputElement} */ (byId("find"));
const filterBy = /** @type {HTMLSelectElement} */ (byId("filter-by"));
const from = /** @type {HTMLInputElement} */ (byId("from"));
const to = /** @type {HTMLInputElement} */ (byId("to"));
const across = /** @type {HTMLSelectElement} */ (byId("across"));
const up = /** @type {HTMLSelectElement} */ (byId("up"));

const PAUSE = 120;

/** Draws what is chosen. */
export function drawControls() {
  const all = fields.map(({ key, name }) => ({ value: key, text: shown(name) }));
  const { run } = columns[state.by];
  const own = speaking(run).map(({ key, name }) => ({ value: key, text: shown(name) }));
  fill(by, own, `s${state.by}`);
  fill(inRun, runs.map(({ name }, place) => ({ value: String(place), text: shown(name) })), String(run));
  fill(across, all, state.across);
  fill(up, all, state.up);
  fill(filterBy, all, filterBy.value || `s${state.by}`);
  if (document.activeElement !== limit) limit.value = String(state.limit);
  if (document.activeElement !== find) find.value = state.find;
  drawEnds();
  byId("filters").replaceChildren(...chosen());
  byId("clear").hidden = filters() === 0;
}

function drawEnds() {
  const field = fieldBy(filterBy.value);
  const [low, high] = (field && state.ranges[field.key]) ?? [NaN, NaN];
  /** @param {number} end */
  const text = (end) => (!Number.isFinite(end) ? "" : String(field?.probability ? Number((100 * end).toPrecision(15)) : end));
  if (document.activeElement !== from) from.value = text(low);
  if (document.activeElement !== to) to.value = text(high);
  byId("unit").textContent = field?.probability ? "%" : "";
}

/** The filters that are set, each with a button that takes it away. */
function chosen() {
  const made = [];
  const group = [state.kind, state.state].filter(Boolean).join(", ");
  if (group) made.push(chip(group, () => choose({ kind: "", state: "" })));
  if (state.changed) made.push(chip(state.changed, () => choose({ changed: "" })));
  if (state.inClass >= 0) made.push(chip(classOf(state.inClass), () => choose({ inClass: -1 })));
  if (state.find) made.push(chip(`“${state.find}”`, () => choose({ find: "" })));
  for (const [key, [low, high]] of Object.entries(state.ranges)) {
    const field = fieldBy(key);
    if (!field) continue;
    const ends = [low, high].map((end) => (Number.isFinite(end) ? valueText(end, field.probability) : ""));
    const text = ends[0] && ends[1] ? `${ends[0]} to ${ends[1]}` : ends[0] ? `from ${ends[0]}` : `up to ${ends[1]}`;
    made.push(chip(`${field.name}: ${ends[0] || ends[1] ? text : "any number"}`, () => choose({ ranges: without(key) })));
  }
  return made;
}

/**
 * All ranges but that of one field.
 * @param {string} key
 */
function without(key) {
  return Object.fromEntries(Object.entries(state.ranges).filter(([other]) => other !== key));
}

/**
 * @param {string} text
 * @param {() => void} click
 */
function chip(text, click) {
  return element("li", {}, element("button", { type: "button", click, "aria-label": shown(`Take away the filter ${text}`) }, `${shown(text)} ×`));
}

/** Lets the reader choose. */
export function watchControls() {
  const label = /** @type {HTMLElement} */ (inRun.parentElement);
  label.hidden = runs.length < 2;
  by.addEventListener("change", () => speakBy(fieldBy(by.value)));
  inRun.addEventListener("change", () => switchTo(Number(inRun.value)));
  limit.addEventListener("input", () => {
    const wanted = Number(limit.value);
    const fits = wanted > 0 && wanted < 1;
    sayLimit(fits);
    if (fits) choose({ limit: wanted });
  });
  limit.addEventListener("blur", () => {
    sayLimit(true);
    drawControls();
  });
  across.addEventListener("change", () => choose({ across: across.value }));
  up.addEventListener("change", () => choose({ up: up.value }));
  filterBy.addEventListener("change", drawEnds);
  for (const end of [from, to]) {
    end.addEventListener("change", filter);
    afterTyping(end, filter);
  }
  afterTyping(find, () => choose({ find: find.value.slice(0, 200) }));
  byId("clear").addEventListener("click", clear);
}

/**
 * Calls `act` once the reader has stopped typing for a moment.
 * @param {HTMLInputElement} input
 * @param {() => void} act
 */
function afterTyping(input, act) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let waiting;
  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(act, PAUSE);
  });
}

/**
 * Says what a limit may be, where the typed one is none; the last good one stays.
 * @param {boolean} fits
 */
function sayLimit(fits) {
  const said = fits ? "" : `between 0 and 1; ${state.limit} stays`;
  limit.setAttribute("aria-invalid", String(!fits));
  byId("limit-note").textContent = said;
}

/**
 * Makes the page speak of another run, by the same score where that has it.
 * @param {number} run
 */
export function switchTo(run) {
  const others = speaking(run);
  speakBy(others.find(({ column }) => column.label === columns[state.by].label) ?? others[0]);
}

/**
 * Makes the page speak by another score, and what followed the last one follow it.
 * @param {import("./fields.js").Field | undefined} field
 */
function speakBy(field) {
  if (!field) return drawControls();
  const own = `s${state.by}`;
  /** @param {string} key */
  const following = (key) => (key === own ? field.key : (inRunOf(field, key)?.key ?? key));
  choose({
    by: field.column.place,
    across: following(state.across),
    up: following(state.up),
    ...(state.sort === own ? { sort: field.key, down: field.safer !== "higher" } : { sort: following(state.sort) }),
  });
}

/**
 * The same score as that of `key`, in the run of `field`.
 * @param {import("./fields.js").Field} field
 * @param {string} key
 */
function inRunOf(field, key) {
  const label = fieldBy(key)?.column.label;
  return fields.find(({ column }) => column.run === field.column.run && column.label === label);
}

function filter() {
  const field = fieldBy(filterBy.value);
  if (!field) return;
  const low = from.value === "" ? -Infinity : typed(from.value, field.probability);
  const high = to.value === "" ? Infinity : typed(to.value, field.probability);
  if (Number.isNaN(low) || Number.isNaN(high)) return;
  const ranges = without(field.key);
  if (Number.isFinite(low) || Number.isFinite(high)) ranges[field.key] = [low, high];
  choose({ ranges });
}

/**
 * A number as it is typed; one in per cent as the nearest to the decimal that is meant, which a division is not.
 * @param {string} text
 * @param {boolean} inPercent
 */
function typed(text, inPercent) {
  if (!inPercent) return Number(text);
  return /e/i.test(text) ? Number(text) / 100 : Number(`${text}e-2`);
}
