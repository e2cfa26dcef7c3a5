// @ts-check
/** The list of the selected points: as long as the run, but only visible rows have elements. */

import { bring, byId, canvas, element } from "./dom.js";
import { classOf, count, labels, nameOf } from "./data.js";
import { fieldBy, fields, textAt } from "./fields.js";
import { drawPicture, hasPictures } from "./pictures.js";
import { kinds, places, predictions, selected, states } from "./selection.js";
import { STATES, choose, state } from "./state.js";
import { counted, show } from "./text.js";

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
  const chosenField = fields[state.by];
  const more = [across, fieldBy(state.sort)].filter((field) => field && field.key !== chosenField.key);
  const extraFields = [...new Set(more)].slice(0, 2).map((field) => /** @type {import("./fields.js").Field} */ (field));
  return [
    { key: "row", text: "point" },
    { key: "label", text: "label" },
    { key: "predicted", text: "predicted" },
    ...extraFields.map((field) => ({ key: field.key, text: field.label, detail: detailIn(field), extra: true })),
    { key: chosenField.key, text: chosenField.label, detail: chosenField.detail },
  ];
}

/**
 * Return the detail of a field, with its run where the page shows another run.
 * @param {import("./fields.js").Field} field
 */
function detailIn({ column, name, label, detail }) {
  return column.run === fields[state.by].column.run ? detail : name.slice(label.length);
}

/** Draw the heads and the visible rows. */
export function drawList() {
  const shownColumns = columns();
  box.dataset.columns = String(shownColumns.length);
  head.dataset.columns = String(shownColumns.length);
  head.replaceChildren(
    ...(hasPictures ? [element("span")] : []),
    ...shownColumns.map(({ key, text, detail, extra }) => {
      const sorted = state.sort === key;
      const direction = sorted ? (state.down ? " ▼" : " ▲") : "";
      const click = () => choose({ sort: key, down: sorted ? !state.down : fieldBy(key)?.safer !== "higher" && key.startsWith("s") });
      const name = show(`Sort by ${[text, detail].filter(Boolean).join(" ")}`);
      const small = detail ? [" ", element("small", {}, show(detail))] : [];
      const kind = extra ? "extra" : "";
      return element("button", { type: "button", class: kind, click, "aria-label": name, "data-keep": `sort ${key}`, "aria-pressed": String(sorted) }, show(text) + direction, ...small);
    }),
  );
  space.style.height = `${selected().length * HEIGHT}px`;
  byId("count").textContent = `${counted(selected().length)} of ${counted(count)} points`;
  drawRows();
}

/** Draw the visible rows. */
function drawRows() {
  const start = Math.max(0, Math.floor(box.scrollTop / HEIGHT) - BEYOND);
  const last = Math.min(selected().length, start + Math.ceil(box.clientHeight / HEIGHT) + 2 * BEYOND);
  const rowElements = [];
  for (let place = start; place < last; place++) rowElements.push(row(place));
  space.replaceChildren(...rowElements);
  const open = state.point >= 0 && places[state.point] >= start && places[state.point] < last;
  if (open) box.setAttribute("aria-activedescendant", `row${state.point}`);
  else box.removeAttribute("aria-activedescendant");
}

/** @param {number} place */
function row(place) {
  const point = selected()[place];
  const cells = columns().map(({ key, extra }) => cell(point, key, extra ? "figure extra" : "figure"));
  const image = hasPictures ? [canvas({ "aria-hidden": "true" })] : [];
  if (image.length) void drawPicture(image[0], point);
  const rowElement = element(
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
  rowElement.style.top = `${place * HEIGHT}px`;
  return rowElement;
}

/**
 * @param {number} point
 * @param {string} key
 * @param {string} kind the class of a number's cell
 */
function cell(point, key, kind) {
  if (key === "row") return element("span", { class: "name" }, show(nameOf(point)));
  if (key === "label") return element("span", {}, show(classOf(labels[point])));
  if (key === "predicted") {
    const wrong = kinds[point] === 1;
    const text = show(classOf(predictions()[point]));
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
 * Open the point that lies `step` places further on in the list.
 * @param {number} step
 */
export function walk(step) {
  if (!selected().length) return;
  const from = state.point >= 0 ? places[state.point] : -1;
  const to = from < 0 ? (step > 0 ? 0 : selected().length - 1) : Math.min(Math.max(from + step, 0), selected().length - 1);
  choose({ point: selected()[to] });
}

/**
 * Open a point of the list. A card out of sight scrolls into view, and takes the focus on a narrow page.
 * @param {number} point
 */
function open(point) {
  choose({ point });
  if (bring(byId("card")) && STACKED.matches) byId("card").focus({ preventScroll: true });
}

/** Scroll to the selection where it is out of sight; on a narrow page, to the list itself. */
export function bringSelection() {
  if (bring(byId(STACKED.matches ? "list" : "selected"))) box.focus({ preventScroll: true });
}

/** Scroll to the open point. */
export function reveal() {
  const place = state.point >= 0 ? places[state.point] : -1;
  if (place < 0) return;
  const top = place * HEIGHT;
  if (top < box.scrollTop || top + HEIGHT > box.scrollTop + box.clientHeight) {
    box.scrollTop = Math.max(0, top - box.clientHeight / 2 + HEIGHT / 2);
  }
}

/** Scroll to the first point. */
export function scrollToStart() {
  box.scrollTop = 0;
}

/** Make the list scroll and follow the keys. */
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
