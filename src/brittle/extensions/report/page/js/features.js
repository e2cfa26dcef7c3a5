// @ts-check
/** The features of one point that is no image, and what its nearest input with another prediction changes. */

import { element } from "./dom.js";
import { inputs } from "./data.js";
import { short, shown } from "./text.js";

const MOST = 20;

/**
 * The features of a point: those that the nearest other input changes most first, else in their order; null without any.
 * @param {number} point
 * @param {boolean} beside whether that input is shown, as the page speaks of the run that found it
 */
export function featuresOf(point, beside) {
  if (!inputs) return null;
  const { names, levels, values, others } = inputs;
  const start = point * names.length;
  const order = names.map((_, place) => place);
  /** @param {number} place */
  const change = (place) => (others && !Number.isNaN(values[start + place]) ? others[start + place] - values[start + place] : 0);
  const found = beside && others !== null && order.some((place) => !Number.isNaN(others[start + place]));
  if (found) order.sort((one, other) => Math.abs(change(other)) - Math.abs(change(one)) || one - other);
  const heads = found ? ["feature", "value", "nearest other", "change"] : ["feature", "value"];
  const rows = order.slice(0, MOST).map((place) => {
    const own = Object.hasOwn(levels, names[place]) ? levels[names[place]] : [];
    /** @param {number} value */
    const said = (value) => (Number.isNaN(value) ? "missing" : shown(own[value] ?? (Number.isInteger(value) ? String(value) : short(value))));
    const cells = [said(values[start + place]), ...(found && others ? [said(others[start + place]), short(change(place))] : [])];
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, shown(names[place])),
      ...cells.map((text) => element("td", { class: "number" }, text)),
    );
  });
  const more = names.length > MOST ? `, the ${MOST} ${found ? "that change most" : "first"} of ${names.length}` : "";
  return element(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": "Features of this point" },
    element(
      "table",
      {},
      element("caption", {}, `Features${more}${found ? "; the nearest input found with another prediction beside them" : ""}`),
      element("thead", {}, element("tr", {}, ...heads.map((text, place) => element("th", { scope: "col", class: place ? "number" : "" }, text)))),
      element("tbody", {}, ...rows),
    ),
  );
}
