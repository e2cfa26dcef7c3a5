// @ts-check
/** The open point: its images, every score in words, its place in each order, tags and notes. */

import { bring, byId, canvas, element } from "./dom.js";
import { classOf, columns, labels, nameOf, nearest, runs, statuses, textOf, troubleOf, votesOf } from "./data.js";
import { featuresOf } from "./features.js";
import { endsAt, fields, textAt, titleOf } from "./fields.js";
import { walk } from "./list.js";
import { MAX_NOTE_LENGTH, keepNote, canStore, noteOf } from "./notes.js";
import { drawDifference, drawNoisy, drawPicture, drawWhole, imageAt, hasPictures, canDrawNoise } from "./pictures.js";
import { drawLevels } from "./levels.js";
import { decidingColumn, kinds, places, predictions, selected, states } from "./selection.js";
import { KINDS, choose, state } from "./state.js";
import { counted, percentOf, short, show } from "./text.js";

/** @typedef {import("./fields.js").Field} Field */

const card = byId("card");

/** @type {((limit: number) => string)[]} Verdicts on a point that holds, is undecided or breaks at a limit. */
const VERDICTS = [
  (limit) => `It holds: kept with probability ${limit} or more`,
  (limit) => `It is undecided whether it is kept with probability ${limit} or more`,
  (limit) => `It breaks: kept with probability below ${limit}`,
];

/** @type {Map<string, Float64Array>} The values of each field, the least safe first. */
const sortedValues = new Map();

/** Draw the open point, or how to open one. */
export function drawCard() {
  const { point } = state;
  if (point < 0) {
    card.replaceChildren(element("p", { class: "aside" }, "Choose a point in the list or in a plot. The arrow keys walk on."));
    return;
  }
  const parts = [title(point), element("p", {}, sentence(point))];
  if (ofThisRun() && votesOf(point)) parts.push(element("p", {}, show(votesOf(point))));
  if (hasPictures || images(point)) parts.push(pictures(point));
  const examples = noisy(point);
  if (examples) parts.push(examples);
  const features = featuresOf(point, ofThisRun());
  if (features) parts.push(features);
  parts.push(scores(point));
  const levels = drawLevels(point);
  if (levels) parts.push(levels);
  if (troubleOf(point)) parts.push(element("p", { class: "aside" }, show(troubleOf(point))));
  parts.push(remarks(point));
  card.replaceChildren(...parts);
}

/** @param {number} point */
function title(point) {
  const place = places[point];
  const placeText = place < 0 ? "not in the selection" : `${counted(place + 1)} of ${counted(selected().length)}`;
  return element(
    "header",
    {},
    element("h3", {}, show(nameOf(point))),
    element(
      "p",
      { class: "walk" },
      element("button", { type: "button", click: () => step(-1), "aria-label": "Previous point", "data-keep": "previous" }, "◀"),
      ` ${placeText} `,
      element("button", { type: "button", click: () => step(1), "aria-label": "Next point", "data-keep": "next" }, "▶"),
      " ",
      element("button", { type: "button", click: close, "data-keep": "close" }, "Close"),
    ),
  );
}

/** @param {number} by number of points further on in the list */
function step(by) {
  walk(by);
  bring(card);
}

/** Close the point and go back to the list. */
function close() {
  choose({ point: -1 });
  bring(byId("list"));
  byId("rows").focus({ preventScroll: true });
}

/**
 * Describe the point in words: prediction, label, verdict.
 * @param {number} point
 */
function sentence(point) {
  const predicted = predictions()[point];
  const label = labels[point] < 0 ? "" : `, labelled ${classOf(labels[point])}${predicted < 0 ? "" : `: ${KINDS[kinds[point]]}`}`;
  const prediction = `${predicted < 0 ? "No prediction" : `Predicted ${classOf(predicted)}`}${label}.`;
  const { isDecisive, value } = columns[state.by];
  if (states[point] === 4) return show(`${runs[columns[state.by].run].name} does not hold this point.`);
  if (!isDecisive || Number.isNaN(value[point])) return show(prediction);
  const deciding = decidingColumn(columns[state.by]);
  const by = deciding.place === state.by ? "" : `, by ${titleOf(deciding)}`;
  return show(`${prediction} ${VERDICTS[states[point]](state.limit)}${by}.`);
}

/** Return whether the page shows this run: only its nearest inputs with another prediction are in the page. */
function ofThisRun() {
  return columns[state.by].run === 0;
}

/** @param {number} point */
function images(point) {
  return ofThisRun() ? nearest.get(point)?.find((entry) => entry.pointImage && entry.neighbourImage) : undefined;
}

/** @param {number} point */
function pictures(point) {
  const holder = element("div", { class: "pictures" });
  const pointCanvas = canvas({ role: "img", "aria-label": `The image of ${show(nameOf(point))}` });
  holder.append(element("figure", {}, pointCanvas, element("figcaption", {}, show(`predicted ${classOf(predictions()[point])}`))));
  const pair = images(point);
  if (!pair?.pointImage || !pair.neighbourImage) {
    void drawPicture(pointCanvas, point);
    return holder;
  }
  const neighbourCanvas = canvas({ role: "img", "aria-label": "The nearest input found with another prediction" });
  const changeCanvas = canvas({ role: "img", "aria-label": "What was changed" });
  const caption = element("figcaption", {}, "what was changed");
  holder.append(
    element("figure", {}, neighbourCanvas, element("figcaption", {}, show(`nearest found that is predicted ${classOf(pair.predicted)}`))),
    element("figure", {}, changeCanvas, caption),
  );
  void Promise.all([imageAt(pair.pointImage), imageAt(pair.neighbourImage)]).then(([pointImage, neighbourImage]) => {
    drawWhole(pointCanvas, pointImage);
    drawWhole(neighbourCanvas, neighbourImage);
    caption.textContent = changeText(drawDifference(changeCanvas, pointImage, neighbourImage));
  });
  return holder;
}

/** Largest number of noise levels that are drawn. */
const MAX_LEVELS = 4;

/**
 * Draw the image with normal noise at the levels of the chosen run, at most `MAX_LEVELS` of them; null without levels.
 * @param {number} point
 */
function noisy(point) {
  const { run } = columns[state.by];
  const levels = columns.filter((column) => column.run === run && column.family === "gaussian" && !column.unit).flatMap(({ sigma }) => sigma ?? []);
  const sigmas = [...new Set(levels)].sort((a, b) => a - b);
  if (!canDrawNoise(point) || !sigmas.length) return null;
  const steps = Math.min(MAX_LEVELS, sigmas.length) - 1;
  const chosenSigmas = steps ? Array.from({ length: steps + 1 }, (_, place) => sigmas[Math.round((place * (sigmas.length - 1)) / steps)]) : sigmas;
  const figures = chosenSigmas.map((sigma) => {
    const on = canvas({ role: "img", "aria-label": `The image with noise of sigma ${short(sigma)}` });
    void drawNoisy(on, point, sigma);
    return element("figure", {}, on, element("figcaption", {}, `noise of sigma ${short(sigma)}`));
  });
  return element("div", { class: "pictures examples" }, ...figures);
}

/**
 * Describe in words how the difference of two images is drawn.
 * @param {{times: number, largest: number}} drawn
 */
function changeText({ times, largest }) {
  if (largest === 0) return "what was changed is less than one of the 255 steps of brightness that images on this page have";
  const size = times === 1 ? "as large as it is" : `${times} times as large as it is`;
  return `what was changed, drawn ${size}; grey is no change`;
}

/** @param {number} point */
function scores(point) {
  const run = columns[state.by].run;
  const heads = ["score", "value", `${percentOf(runs[run].confidence)} interval`, "rank", "status"];
  return element(
    "div",
    { class: "wide", tabindex: 0, role: "region", "aria-label": "Every score of this point" },
    element(
      "table",
      {},
      element("thead", {}, element("tr", {}, ...heads.map((text) => element("th", { scope: "col" }, text)))),
      element("tbody", {}, ...fields.filter(({ column }) => column.run === run).map((field) => scoreRow(field, point))),
    ),
    element("p", { class: "aside" }, "Rank 1 is the least safe point by that score."),
  );
}

/**
 * @param {Field} field
 * @param {number} point
 */
function scoreRow(field, point) {
  const { column, label, detail: detailText } = field;
  const [low, high] = [column.low, column.high].map((all) => (all ? all[point] : NaN));
  const interval = isUpperBound(column) ? boundsText(low, high) : Number.isNaN(low) || low === high ? "–" : endsAt(field, point).join(" to ");
  const status = textOf(column.status, point);
  const detail = textOf(column.details, point);
  const meaning = [status === "ok" ? "" : (statuses[status] ?? ""), detail].filter(Boolean).join(" ");
  const met = ofThisRun() ? nearest.get(point)?.find((entry) => entry.score === column.label) : undefined;
  const beside = met ? ` (predicted ${classOf(met.predicted)} there)` : "";
  return element(
    "tr",
    { class: column.place === state.by ? "chosen" : "" },
    element("th", { scope: "row" }, show(label), ...(detailText ? [element("small", {}, show(detailText))] : [])),
    element("td", {}, show(textAt(field, point) + beside)),
    element("td", {}, interval),
    element("td", {}, rankText(field, point)),
    element("td", {}, show(status), ...(meaning ? [element("small", {}, show(meaning))] : [])),
  );
}

/**
 * Return whether a score is the upper end of its interval: the distance that a search found, above a certified lower bound.
 * @param {import("./data.js").Column} column
 */
function isUpperBound({ value, low, high }) {
  return high === value && low !== null && low !== value;
}

/**
 * Describe the bounds of a distance: at least the certified one, at most the distance found. They have no confidence.
 * @param {number} low
 * @param {number} high
 */
function boundsText(low, high) {
  const ends = [low > 0 ? `at least ${short(low)} (certified)` : "", Number.isFinite(high) ? `at most ${short(high)} (found)` : ""];
  return ends.filter(Boolean).join(", ") || "–";
}

/**
 * Rank a point among all, the least safe first; equal points share a range of ranks.
 * @param {Field} field
 * @param {number} point
 */
function rankText(field, point) {
  const { safer, order } = field;
  if (!safer || Number.isNaN(order[point])) return "–";
  const sign = safer === "higher" ? 1 : -1;
  let all = sortedValues.get(field.key);
  if (!all) {
    all = Float64Array.from(order, (value) => sign * value).filter((value) => !Number.isNaN(value)).sort();
    sortedValues.set(field.key, all);
  }
  const pointValue = sign * order[point];
  const start = countLeading(all, (value) => value < pointValue) + 1;
  const last = countLeading(all, (value) => value <= pointValue);
  return `${counted(start)}${last > start ? ` to ${counted(last)}` : ""} of ${counted(all.length)}`;
}

/**
 * Count the leading numbers, of sorted ones, that satisfy a predicate.
 * @param {Float64Array} all
 * @param {(value: number) => boolean} predicate
 */
function countLeading(all, predicate) {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (predicate(all[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** @param {number} point */
function remarks(point) {
  const remark = noteOf(point);
  const tags = /** @type {HTMLInputElement} */ (element("input", { type: "text", id: "tags", maxlength: MAX_NOTE_LENGTH }));
  const note = /** @type {HTMLTextAreaElement} */ (element("textarea", { rows: 2, id: "note", maxlength: MAX_NOTE_LENGTH }));
  tags.value = remark.tags;
  note.value = remark.note;
  const storageText = element("p", { class: "aside" }, "");
  const say = () => {
    storageText.textContent = canStore() ? "Kept in this browser, and saved with the selection." : "This browser keeps no notes for this page; save the selection to keep them.";
  };
  const keep = () => {
    keepNote(point, { tags: tags.value, note: note.value });
    say();
  };
  tags.addEventListener("input", keep);
  note.addEventListener("input", keep);
  say();
  return element("div", { class: "remarks" }, element("label", { for: "tags" }, "Tags"), tags, element("label", { for: "note" }, "Note"), note, storageText);
}

/** Make Escape go back from the card to the list. */
export function watchCard() {
  card.addEventListener("keydown", (event) => {
    if (event.key === "Escape") byId("rows").focus();
  });
}
