// @ts-check
/** The controls: score, limit, text to find, numbers to filter by; and the filters that are set. */

import { byId, element, fill } from "./dom.js";
import { classOf, columns, count, runs } from "./data.js";
import { fieldBy, fields, mainFieldsOf } from "./fields.js";
import { filters, searchText, selected } from "./selection.js";
import { choose, clear, state } from "./state.js";
import { counted, short, show } from "./text.js";

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

/** Draw the chosen settings. */
export function drawControls() {
  const all = fields.map(({ key, name }) => ({ value: key, text: show(name) }));
  const { run, isDecisive } = columns[state.by];
  const scoreOptions = mainFieldsOf(run).map((field) => ({ value: field.key, text: show(field.short) }));
  fill(by, scoreOptions, `s${state.by}`);
  fill(inRun, runs.map(({ name }, place) => ({ value: String(place), text: show(name) })), String(run));
  fill(across, all, state.across);
  fill(up, all, state.up);
  fill(filterBy, all, filterBy.value || `s${state.by}`);
  for (const list of [by, inRun, across, up, filterBy]) list.title = list.selectedOptions[0]?.text ?? "";
  if (document.activeElement !== limit) limit.value = String(state.limit);
  byId("judging").hidden = !isDecisive;
  if (document.activeElement !== find) find.value = state.find;
  drawEnds();
  byId("searched").textContent = searchText();
  byId("filters").replaceChildren(...filterChips());
  byId("clear").hidden = filters() === 0;
}

/** Draw the range of the filtered score, and the number of points that all filters leave. */
function drawEnds() {
  const field = fieldBy(filterBy.value);
  const [low, high] = (field && state.ranges[field.key]) ?? [NaN, NaN];
  if (document.activeElement !== from) from.value = Number.isFinite(low) ? String(Number(low.toPrecision(12))) : "";
  if (document.activeElement !== to) to.value = Number.isFinite(high) ? String(Number(high.toPrecision(12))) : "";
  const range = field && state.ranges[field.key];
  byId("left").textContent = range ? `${range[0] > range[1] ? "“from” is larger than “to”: " : ""}${counted(selected().length)} of ${counted(count)} points left` : "";
}

/** The filters that are set, each with a button that takes it away. */
function filterChips() {
  const chips = [];
  const group = [state.kind, state.state].filter(Boolean).join(", ");
  if (group) chips.push(chip(group, () => choose({ kind: "", state: "" })));
  if (state.changed) chips.push(chip(state.changed, () => choose({ changed: "" })));
  if (state.inClass >= 0) chips.push(chip(classOf(state.inClass), () => choose({ inClass: -1 })));
  if (state.find) chips.push(chip(`“${state.find}”`, () => choose({ find: "" })));
  for (const [key, [low, high]] of Object.entries(state.ranges)) {
    const field = fieldBy(key);
    if (!field) continue;
    const ends = [low, high].map((end) => (Number.isFinite(end) ? short(end) : ""));
    const text = ends[0] && ends[1] ? `${ends[0]} to ${ends[1]}` : ends[0] ? `from ${ends[0]}` : `up to ${ends[1]}`;
    chips.push(chip(`${field.name}: ${ends[0] || ends[1] ? text : "any number"}`, () => choose({ ranges: rangesWithout(key) })));
  }
  return chips;
}

/**
 * All ranges but that of one field.
 * @param {string} key
 */
function rangesWithout(key) {
  return Object.fromEntries(Object.entries(state.ranges).filter(([rangeKey]) => rangeKey !== key));
}

/**
 * @param {string} text
 * @param {() => void} click
 */
function chip(text, click) {
  return element("li", {}, element("button", { type: "button", click, "data-keep": `filter ${show(text)}`, "aria-label": show(`Take away the filter ${text}`) }, `${show(text)} ×`));
}

/** Listen to the controls. */
export function watchControls() {
  const label = /** @type {HTMLElement} */ (inRun.parentElement);
  label.hidden = runs.length < 2;
  by.addEventListener("change", () => chooseScore(fieldBy(by.value)));
  inRun.addEventListener("change", () => {
    const runFields = mainFieldsOf(Number(inRun.value));
    chooseScore(runFields.find(({ column }) => column.label === columns[state.by].label) ?? runFields[0]);
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
 * Return a function that calls `act` once the reader has paused.
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

/** Return whether the input holds a valid limit. */
function isLimit() {
  return limit.value !== "" && Number(limit.value) > 0 && Number(limit.value) < 1;
}

/** Use the typed limit where it is valid. */
function takeLimit() {
  if (!isLimit()) return;
  showLimitText("");
  if (Number(limit.value) !== state.limit) choose({ limit: Number(limit.value) });
}

/** Explain the valid limits where the typed text is none; the last limit stays. */
function refuseLimit() {
  if (isLimit()) return;
  const refusal = limit.value && `; ${limit.value} is none`;
  showLimitText(`A limit lies between 0 and 1, such as 0.9${refusal}. The page keeps to ${state.limit}.`);
}

/** @param {string} text */
function showLimitText(text) {
  byId("limit-told").textContent = text;
  limit.setAttribute("aria-invalid", String(text !== ""));
}

/**
 * Show the page by another score; the axes and the order that showed the last score follow.
 * @param {import("./fields.js").Field | undefined} field
 */
function chooseScore(field) {
  if (!field) return drawControls();
  const oldKey = `s${state.by}`;
  /** @param {string} key */
  const following = (key) => (key === oldKey ? field.key : (inRunOf(field, key)?.key ?? key));
  choose({
    by: field.column.place,
    across: following(state.across),
    up: following(state.up),
    ...(state.sort === oldKey ? { sort: field.key, down: field.safer !== "higher" } : { sort: following(state.sort) }),
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
  const ranges = rangesWithout(field.key);
  if (Number.isFinite(low) || Number.isFinite(high)) ranges[field.key] = [low, high];
  const before = state.ranges[field.key];
  if (before?.[0] !== ranges[field.key]?.[0] || before?.[1] !== ranges[field.key]?.[1]) choose({ ranges });
}
