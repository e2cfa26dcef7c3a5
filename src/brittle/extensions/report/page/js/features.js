// @ts-check
/** The features of one point that is no image, and what its nearest input with another prediction changes. */

import { element } from "./dom.js";
import { inputs } from "./data.js";
import { short, show } from "./text.js";

const MAX_FEATURES = 20;

/**
 * Draw the features of a point, sorted by the change to its nearest input with another prediction; null without features.
 * @param {number} point
 * @param {boolean} beside true where the page shows the run that found that input
 */
export function featuresOf(point, beside) {
  if (!inputs) return null;
  const { names, levels, values, neighbours } = inputs;
  const start = point * names.length;
  const order = names.map((_, place) => place);
  /** @param {number} place */
  const change = (place) => (neighbours && !Number.isNaN(values[start + place]) ? neighbours[start + place] - values[start + place] : 0);
  const isCompared = beside && neighbours !== null && order.some((place) => !Number.isNaN(neighbours[start + place]));
  if (isCompared) order.sort((a, b) => Math.abs(change(b)) - Math.abs(change(a)) || a - b);
  const heads = isCompared ? ["feature", "value", "nearest other", "change"] : ["feature", "value"];
  const rows = order.slice(0, MAX_FEATURES).map((place) => {
    const levelTexts = Object.hasOwn(levels, names[place]) ? levels[names[place]] : [];
    /** @param {number} value */
    const cellText = (value) => (Number.isNaN(value) ? "missing" : show(levelTexts[value] ?? (Number.isInteger(value) ? String(value) : short(value))));
    const cells = [cellText(values[start + place]), ...(isCompared && neighbours ? [cellText(neighbours[start + place]), short(change(place))] : [])];
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, show(names[place])),
      ...cells.map((text) => element("td", { class: "number" }, text)),
    );
  });
  const more = names.length > MAX_FEATURES ? `, the ${MAX_FEATURES} ${isCompared ? "that change most" : "first"} of ${names.length}` : "";
  return element(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": "Features of this point" },
    element(
      "table",
      {},
      element("caption", {}, `Features${more}${isCompared ? "; the nearest input found with another prediction beside them" : ""}`),
      element("thead", {}, element("tr", {}, ...heads.map((text, place) => element("th", { scope: "col", class: place ? "number" : "" }, text)))),
      element("tbody", {}, ...rows),
    ),
  );
}
