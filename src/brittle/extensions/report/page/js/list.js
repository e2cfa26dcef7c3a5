// @ts-check
/** The list of the selected points: as long as the run, of which only what is seen is made. */

import { bring, byId, canvas, element } from "./dom.js";
import { classOf, count, labels, nameOf } from "./data.js";
import { fieldBy, fields, textAt } from "./fields.js";
import { drawPicture, pictured } from "./pictures.js";
import { kinds, places, predictions, selected, states } from "./selection.js";
import { STATES, choose, state } from "./state.js";
import { counted, shown } from "./text.js";

const HEIGHT = 44;
const BEYOND = 6;

/** Windows in which the parts of the page stand below one another, as in the style. */
const STACKED = matchMedia("(max-width: 900px)");

const box = byId("rows");
const head = byId("head");
const space = byId("space");

/** @returns {{key: string, text: string, detail?: string, extra?: boolean}[]} */
function columns() {
  const across = fieldBy(state.across);
  const own = fields[state.by];
  const more = [across, fieldBy(state.sort)].filter((field) => field && field.key !== own.key);
  const others = [...new Set(more)].slice(0, 2).map((field) => /** @type {import("./fields.js").Field} */ (field));
  return [
    { key: "row", text: "point" },
    { key: "label", text: "label" },
    { key: "predicted", text: "predicted" },
    ...others.map((field) => ({ key: field.key, text: field.label, detail: detailIn(field), extra: true })),
    { key: own.key, text: own.label, detail: own.detail },
  ];
}

/**
 * What tells a field from others, with its run where that is not the one that the page speaks of.
 * @param {import("./fields.js").Field} field
 */
function detailIn({ column, name, label, detail }) {
  return column.run === fields[state.by].column.run ? detail : name.slice(label.length);
}

/** Draws the heads and the rows that are seen. */
export function drawList() {
  const shownColumns = columns();
  box.dataset.columns = String(shownColumns.length);
  head.dataset.columns = String(shownColumns.length);
  head.replaceChildren(
    ...(pictured ? [element("span")] : []),
    ...shownColumns.map(({ key, text, detail, extra }) => {
      const sorted = state.sort === key;
      const direction = sorted ? (state.down ? " ▼" : " ▲") : "";
      const click = () => choose({ sort: key, down: sorted ? !state.down : fieldBy(key)?.safer !== "higher" && key.startsWith("s") });
      const name = shown(`Sort by ${[text, detail].filter(Boolean).join(" ")}`);
      const small = detail ? [" ", element("small", {}, shown(detail))] : [];
      const kind = extra ? "extra" : "";
      return element("button", { type: "button", class: kind, click, "aria-label": name, "data-keep": `sort ${key}`, "aria-pressed": String(sorted) }, shown(text) + direction, ...small);
    }),
  );
  space.style.height = `${selected().length * HEIGHT}px`;
  byId("count").textContent = `${counted(selected().length)} of ${counted(count)} points`;
  drawRows();
}

/** Draws the rows that are seen. */
function drawRows() {
  const first = Math.max(0, Math.floor(box.scrollTop / HEIGHT) - BEYOND);
  const last = Math.min(selected().length, first + Math.ceil(box.clientHeight / HEIGHT) + 2 * BEYOND);
  const made = [];
  for (let place = first; place < last; place++) made.push(row(place));
  space.replaceChildren(...made);
  const open = state.point >= 0 && places[state.point] >= first && places[state.point] < last;
  if (open) box.setAttribute("aria-activedescendant", `row${state.point}`);
  else box.removeAttribute("aria-activedescendant");
}

/** @param {number} place */
function row(place) {
  const point = selected()[place];
  const cells = columns().map(({ key, extra }) => cell(point, key, extra ? "figure extra" : "figure"));
  const image = pictured ? [canvas({ "aria-hidden": "true" })] : [];
  if (image.length) void drawPicture(image[0], point);
  const made = element(
    "div",
    {
      class: "row",
      role: "option",
      id: `row${point}`,
      "aria-selected": String(state.point === point),
      "aria-setsize": selected().length,
      "aria-posinset": place + 1,
      click: () => open(point),
    },
    ...image,
    ...cells,
  );
  made.style.top = `${place * HEIGHT}px`;
  return made;
}

/**
 * @param {number} point
 * @param {string} key
 * @param {string} kind the class of a number's cell
 */
function cell(point, key, kind) {
  if (key === "row") return element("span", { class: "name" }, shown(nameOf(point)));
  if (key === "label") return element("span", {}, shown(classOf(labels[point])));
  if (key === "predicted") {
    const wrong = kinds[point] === 1;
    const text = shown(classOf(predictions()[point]));
    return element("span", { class: wrong ? "wrong" : "" }, wrong ? `✚ ${text}` : text);
  }
  const field = fieldBy(key);
  if (!field) return element("span");
  const value = textAt(field, point);
  if (field.column.place !== state.by || !field.column.probability) return element("span", { class: kind }, value);
  const name = STATES[states[point]];
  if (name === "absent") return element("span", { class: kind }, name);
  return element("span", { class: kind }, value, element("small", { class: name }, name));
}

/**
 * Opens the point that lies `step` places further on in the list.
 * @param {number} step
 */
export function walk(step) {
  if (!selected().length) return;
  const from = state.point >= 0 ? places[state.point] : -1;
  const to = from < 0 ? (step > 0 ? 0 : selected().length - 1) : Math.min(Math.max(from + step, 0), selected().length - 1);
  choose({ point: selected()[to] });
}

/**
 * Opens a point of the list. Its card is shown where it is out of sight; where the list is so then, the card has the focus.
 * @param {number} point
 */
function open(point) {
  choose({ point });
  if (bring(byId("card")) && STACKED.matches) byId("card").focus({ preventScroll: true });
}

/** Shows the selection where it is out of sight: where parts stand below one another, the list itself. */
export function bringSelection() {
  if (bring(byId(STACKED.matches ? "list" : "selected"))) box.focus({ preventScroll: true });
}

/** Scrolls so that the open point is seen. */
export function reveal() {
  const place = state.point >= 0 ? places[state.point] : -1;
  if (place < 0) return;
  const top = place * HEIGHT;
  if (top < box.scrollTop || top + HEIGHT > box.scrollTop + box.clientHeight) {
    box.scrollTop = Math.max(0, top - box.clientHeight / 2 + HEIGHT / 2);
  }
}

/** Scrolls to the first point. */
export function toStart() {
  box.scrollTop = 0;
}

/** Lets the list be scrolled and walked by keys. */
export function watchList() {
  let waiting = false;
  box.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      drawRows();
    });
  });
  box.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(box.clientHeight / HEIGHT) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -count, End: count };
    const step = steps[/** @type {keyof typeof steps} */ (event.key)];
    if (event.key === "Enter" && state.point >= 0) byId("card").focus();
    else if (step) walk(step);
    else return;
    event.preventDefault();
  });
}
