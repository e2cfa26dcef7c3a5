// @ts-check
/** What the reader chooses by hand: score, limit, text to find, numbers to filter by; and what is filtered now. */

import { byId, element, fill } from "./dom.js";
import { classOf, columns, count, runs } from "./data.js";
import { fieldBy, fields, speaking } from "./fields.js";
import { filters, searched, selected } from "./selection.js";
import { choose, clear, state } from "./state.js";
import { counted, short, shown } from "./text.js";

const by = /** @type {HTMLSelectElement} */ (byId("by"));
const inRun = /** @type {HTMLSelectElement} */ (byId("run"));
const limit = /** @type {HTMLInputElement} */ (byId("limit"));
const find = /** @type {HTMLInputElement} */ (byId("find"));
const filterBy = /** @type {HTMLSelectElement} */ (byId("filter-by"));
const from = /** @type {HTMLInputElement} */ (byId("from"));
const to = /** @type {HTMLInputElement} */ (byId("to"));
const across = /** @type {HTMLSelectElement} */ (byId("across"));
const up = /** @type {HTMLSelectElement} */ (byId("up"));

/** Milliseconds after the last key until a text is looked for, and until a number is taken as typed. */
const PAUSE = 120;
const NUMBER_PAUSE = 400;

/** Draws what is chosen. */
export function drawControls() {
  const all = fields.map(({ key, name }) => ({ value: key, text: shown(name) }));
  const { run, judges } = columns[state.by];
  const own = speaking(run).map((field) => ({ value: field.key, text: shown(field.short) }));
  fill(by, own, `s${state.by}`);
  fill(inRun, runs.map(({ name }, place) => ({ value: String(place), text: shown(name) })), String(run));
  fill(across, all, state.across);
  fill(up, all, state.up);
  fill(filterBy, all, filterBy.value || `s${state.by}`);
  for (const list of [by, inRun, across, up, filterBy]) list.title = list.selectedOptions[0]?.text ?? "";
  if (document.activeElement !== limit) limit.value = String(state.limit);
  byId("judging").hidden = !judges;
  if (document.activeElement !== find) find.value = state.find;
  drawEnds();
  byId("searched").textContent = searched();
  byId("filters").replaceChildren(...chosen());
  byId("clear").hidden = filters() === 0;
}

/** The ends that the chosen score is filtered by, and how many points these and all other filters leave. */
function drawEnds() {
  const field = fieldBy(filterBy.value);
  const [low, high] = (field && state.ranges[field.key]) ?? [NaN, NaN];
  if (document.activeElement !== from) from.value = Number.isFinite(low) ? String(Number(low.toPrecision(12))) : "";
  if (document.activeElement !== to) to.value = Number.isFinite(high) ? String(Number(high.toPrecision(12))) : "";
  const range = field && state.ranges[field.key];
  byId("left").textContent = range ? `${range[0] > range[1] ? "“from” is larger than “to”: " : ""}${counted(selected().length)} of ${counted(count)} points left` : "";
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
    const ends = [low, high].map((end) => (Number.isFinite(end) ? short(end) : ""));
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
  return element("li", {}, element("button", { type: "button", click, "data-keep": `filter ${shown(text)}`, "aria-label": shown(`Take away the filter ${text}`) }, `${shown(text)} ×`));
}

/** Lets the reader choose. */
export function watchControls() {
  const label = /** @type {HTMLElement} */ (inRun.parentElement);
  label.hidden = runs.length < 2;
  by.addEventListener("change", () => speakBy(fieldBy(by.value)));
  inRun.addEventListener("change", () => {
    const others = speaking(Number(inRun.value));
    speakBy(others.find(({ column }) => column.label === columns[state.by].label) ?? others[0]);
  });
  limit.addEventListener("input", takeLimit);
  const refuse = later(refuseLimit, NUMBER_PAUSE);
  limit.addEventListener("input", refuse);
  limit.addEventListener("change", () => {
    refuseLimit();
    limit.value = String(state.limit);
  });
  across.addEventListener("change", () => choose({ across: across.value }));
  up.addEventListener("change", () => choose({ up: up.value }));
  filterBy.addEventListener("change", drawEnds);
  for (const end of [from, to]) {
    end.addEventListener("input", later(filter, NUMBER_PAUSE));
    end.addEventListener("change", filter);
  }
  find.addEventListener("input", later(() => choose({ find: find.value.slice(0, 200) }), PAUSE));
  byId("clear").addEventListener("click", clear);
}

/**
 * What calls `act` once the reader has paused.
 * @param {() => void} act
 * @param {number} pause in milliseconds
 */
function later(act, pause) {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let waiting;
  return () => {
    clearTimeout(waiting);
    waiting = setTimeout(act, pause);
  };
}

/** Whether the field of the limit holds one. */
function isLimit() {
  return limit.value !== "" && Number(limit.value) > 0 && Number(limit.value) < 1;
}

/** Takes what is typed as the limit, where it is one. */
function takeLimit() {
  if (!isLimit()) return;
  sayLimit("");
  if (Number(limit.value) !== state.limit) choose({ limit: Number(limit.value) });
}

/** Says what a limit may be, where what is typed is none; the last one stays. */
function refuseLimit() {
  if (isLimit()) return;
  const found = limit.value && `; ${limit.value} is none`;
  sayLimit(`A limit lies between 0 and 1, such as 0.9${found}. The page keeps to ${state.limit}.`);
}

/** @param {string} text */
function sayLimit(text) {
  byId("limit-told").textContent = text;
  limit.setAttribute("aria-invalid", String(text !== ""));
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
  if (!field || from.validity.badInput || to.validity.badInput) return;
  const low = from.value === "" ? -Infinity : Number(from.value);
  const high = to.value === "" ? Infinity : Number(to.value);
  if (Number.isNaN(low) || Number.isNaN(high)) return;
  const ranges = without(field.key);
  if (Number.isFinite(low) || Number.isFinite(high)) ranges[field.key] = [low, high];
  const before = state.ranges[field.key];
  if (before?.[0] !== ranges[field.key]?.[0] || before?.[1] !== ranges[field.key]?.[1]) choose({ ranges });
}
