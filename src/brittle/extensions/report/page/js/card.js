// @ts-check
/** The open point: its images, every score in words, its place in each order, tags and notes. */

import { bring, byId, canvas, element } from "./dom.js";
import { classOf, columns, labels, nameOf, nearest, runs, statuses, textOf, troubleOf, votesOf } from "./data.js";
import { featuresOf } from "./features.js";
import { endsAt, fields, textAt, titleOf } from "./fields.js";
import { walk } from "./list.js";
import { LONGEST, keepNote, keeps, noteOf } from "./notes.js";
import { drawDifference, drawNoisy, drawPicture, drawWhole, imageAt, pictured, takesNoise } from "./pictures.js";
import { drawLevels } from "./levels.js";
import { judgeOf, kinds, places, predictions, selected, states } from "./selection.js";
import { KINDS, choose, state } from "./state.js";
import { counted, percentOf, short, shown } from "./text.js";

/** @typedef {import("./fields.js").Field} Field */

const card = byId("card");

/** @type {((limit: number) => string)[]} What is said of a point that holds, is undecided or breaks at a limit. */
const VERDICTS = [
  (limit) => `It holds: kept with probability ${limit} or more`,
  (limit) => `It is undecided whether it is kept with probability ${limit} or more`,
  (limit) => `It breaks: kept with probability below ${limit}`,
];

/** @type {Map<string, Float64Array>} The values of each field, the least safe first. */
const sorted = new Map();

/** Draws the open point, or how to open one. */
export function drawCard() {
  const { point } = state;
  if (point < 0) {
    card.replaceChildren(element("p", { class: "aside" }, "Choose a point in the list or in a plot. The arrow keys walk on."));
    return;
  }
  const parts = [title(point), element("p", {}, sentence(point))];
  if (ofThisRun() && votesOf(point)) parts.push(element("p", {}, shown(votesOf(point))));
  if (pictured || images(point)) parts.push(pictures(point));
  const examples = noisy(point);
  if (examples) parts.push(examples);
  const features = featuresOf(point, ofThisRun());
  if (features) parts.push(features);
  parts.push(scores(point));
  const levels = drawLevels(point);
  if (levels) parts.push(levels);
  if (troubleOf(point)) parts.push(element("p", { class: "aside" }, shown(troubleOf(point))));
  parts.push(remarks(point));
  card.replaceChildren(...parts);
}

/** @param {number} point */
function title(point) {
  const place = places[point];
  const where = place < 0 ? "not in the selection" : `${counted(place + 1)} of ${counted(selected().length)}`;
  return element(
    "header",
    {},
    element("h3", {}, shown(nameOf(point))),
    element(
      "p",
      { class: "walk" },
      element("button", { type: "button", click: () => step(-1), "aria-label": "Previous point", "data-keep": "previous" }, "◀"),
      ` ${where} `,
      element("button", { type: "button", click: () => step(1), "aria-label": "Next point", "data-keep": "next" }, "▶"),
      " ",
      element("button", { type: "button", click: close, "data-keep": "close" }, "Close"),
    ),
  );
}

/** @param {number} by how many points further on in the list */
function step(by) {
  walk(by);
  bring(card);
}

/** Closes the point, and goes back to the list. */
function close() {
  choose({ point: -1 });
  bring(byId("list"));
  byId("rows").focus({ preventScroll: true });
}

/**
 * What the point is, in words.
 * @param {number} point
 */
function sentence(point) {
  const predicted = predictions()[point];
  const label = labels[point] < 0 ? "" : `, labelled ${classOf(labels[point])}${predicted < 0 ? "" : `: ${KINDS[kinds[point]]}`}`;
  const what = `${predicted < 0 ? "No prediction" : `Predicted ${classOf(predicted)}`}${label}.`;
  const { judges, value } = columns[state.by];
  if (states[point] === 4) return shown(`${runs[columns[state.by].run].name} does not hold this point.`);
  if (!judges || Number.isNaN(value[point])) return shown(what);
  const judge = judgeOf(columns[state.by]);
  const by = judge.place === state.by ? "" : `, by ${titleOf(judge)}`;
  return shown(`${what} ${VERDICTS[states[point]](state.limit)}${by}.`);
}

/** Whether the page speaks of this run, whose nearest inputs with another prediction it holds. */
function ofThisRun() {
  return columns[state.by].run === 0;
}

/** @param {number} point */
function images(point) {
  return ofThisRun() ? nearest.get(point)?.find((entry) => entry.own && entry.other) : undefined;
}

/** @param {number} point */
function pictures(point) {
  const holder = element("div", { class: "pictures" });
  const own = canvas({ role: "img", "aria-label": `The image of ${shown(nameOf(point))}` });
  holder.append(element("figure", {}, own, element("figcaption", {}, shown(`predicted ${classOf(predictions()[point])}`))));
  const found = images(point);
  if (!found?.own || !found.other) {
    void drawPicture(own, point);
    return holder;
  }
  const other = canvas({ role: "img", "aria-label": "The nearest input found with another prediction" });
  const apart = canvas({ role: "img", "aria-label": "What was changed" });
  const said = element("figcaption", {}, "what was changed");
  holder.append(
    element("figure", {}, other, element("figcaption", {}, shown(`nearest found that is predicted ${classOf(found.predicted)}`))),
    element("figure", {}, apart, said),
  );
  void Promise.all([imageAt(found.own), imageAt(found.other)]).then(([first, second]) => {
    drawWhole(own, first);
    drawWhole(other, second);
    said.textContent = changeText(drawDifference(apart, first, second));
  });
  return holder;
}

/** Levels of noise that are shown at most. */
const MOST_LEVELS = 4;

/**
 * The image with normal noise of each level of the chosen run, or the least, the largest and some between; null without.
 * @param {number} point
 */
function noisy(point) {
  const { run } = columns[state.by];
  const levels = columns.filter((one) => one.run === run && one.family === "gaussian" && !one.unit).flatMap(({ sigma }) => sigma ?? []);
  const all = [...new Set(levels)].sort((one, other) => one - other);
  if (!takesNoise(point) || !all.length) return null;
  const steps = Math.min(MOST_LEVELS, all.length) - 1;
  const chosen = steps ? Array.from({ length: steps + 1 }, (_, place) => all[Math.round((place * (all.length - 1)) / steps)]) : all;
  const drawn = chosen.map((sigma) => {
    const on = canvas({ role: "img", "aria-label": `The image with noise of sigma ${short(sigma)}` });
    void drawNoisy(on, point, sigma);
    return element("figure", {}, on, element("figcaption", {}, `noise of sigma ${short(sigma)}`));
  });
  return element("div", { class: "pictures examples" }, ...drawn);
}

/**
 * How the difference of two images is drawn, in words.
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
  const { column, label, detail: told } = field;
  const [low, high] = [column.low, column.high].map((all) => (all ? all[point] : NaN));
  const interval = isFound(column) ? foundText(low, high) : Number.isNaN(low) || low === high ? "–" : endsAt(field, point).join(" to ");
  const status = textOf(column.status, point);
  const detail = textOf(column.details, point);
  const meaning = [status === "ok" ? "" : (statuses[status] ?? ""), detail].filter(Boolean).join(" ");
  const met = ofThisRun() ? nearest.get(point)?.find((entry) => entry.score === column.label) : undefined;
  const beside = met ? ` (predicted ${classOf(met.predicted)} there)` : "";
  return element(
    "tr",
    { class: column.place === state.by ? "chosen" : "" },
    element("th", { scope: "row" }, shown(label), ...(told ? [element("small", {}, shown(told))] : [])),
    element("td", {}, shown(textAt(field, point) + beside)),
    element("td", {}, interval),
    element("td", {}, rankText(field, point)),
    element("td", {}, shown(status), ...(meaning ? [element("small", {}, shown(meaning))] : [])),
  );
}

/**
 * Whether a score is the upper end of its own brackets: what a search found, and at most below it what was certified.
 * @param {import("./data.js").Column} column
 */
function isFound({ value, low, high }) {
  return high === value && low !== null && low !== value;
}

/**
 * What a search shows of a distance: at most what was found, and at least what was certified. No interval of a confidence.
 * @param {number} low
 * @param {number} high
 */
function foundText(low, high) {
  const ends = [low > 0 ? `at least ${short(low)} (certified)` : "", Number.isFinite(high) ? `at most ${short(high)} (found)` : ""];
  return ends.filter(Boolean).join(", ") || "–";
}

/**
 * The place of a point among all, the least safe first; of equal points the places that they share.
 * @param {Field} field
 * @param {number} point
 */
function rankText(field, point) {
  const { safer, order } = field;
  if (!safer || Number.isNaN(order[point])) return "–";
  const sign = safer === "higher" ? 1 : -1;
  let all = sorted.get(field.key);
  if (!all) {
    all = Float64Array.from(order, (value) => sign * value).filter((value) => !Number.isNaN(value)).sort();
    sorted.set(field.key, all);
  }
  const own = sign * order[point];
  const first = countWhere(all, (value) => value < own) + 1;
  const last = countWhere(all, (value) => value <= own);
  return `${counted(first)}${last > first ? ` to ${counted(last)}` : ""} of ${counted(all.length)}`;
}

/**
 * How many of sorted numbers, the first of them, are so.
 * @param {Float64Array} all
 * @param {(value: number) => boolean} so
 */
function countWhere(all, so) {
  let [low, high] = [0, all.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (so(all[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** @param {number} point */
function remarks(point) {
  const own = noteOf(point);
  const tags = /** @type {HTMLInputElement} */ (element("input", { type: "text", id: "tags", maxlength: LONGEST }));
  const note = /** @type {HTMLTextAreaElement} */ (element("textarea", { rows: 2, id: "note", maxlength: LONGEST }));
  tags.value = own.tags;
  note.value = own.note;
  const where = element("p", { class: "aside" }, "");
  const say = () => {
    where.textContent = keeps() ? "Kept in this browser, and saved with the selection." : "This browser keeps no notes for this page; save the selection to keep them.";
  };
  const keep = () => {
    keepNote(point, { tags: tags.value, note: note.value });
    say();
  };
  tags.addEventListener("input", keep);
  note.addEventListener("input", keep);
  say();
  return element("div", { class: "remarks" }, element("label", { for: "tags" }, "Tags"), tags, element("label", { for: "note" }, "Note"), note, where);
}

/** Lets Escape go back from the card to the list. */
export function watchCard() {
  card.addEventListener("keydown", (event) => {
    if (event.key === "Escape") byId("rows").focus();
  });
}
