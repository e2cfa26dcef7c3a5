// @ts-check
/** The first screen, alive: its groups and classes select, and follow the score and the limit that the reader chooses. */

import { bring, byId, element, keepFocus } from "./dom.js";
import { sampleText, classOf, classes, columns, count, runLimit, evidenceTexts, correctWords, runs, representative } from "./data.js";
import { fields } from "./fields.js";
import { bringSelection } from "./list.js";
import { classFor, filters, kinds, isSelectedBut, states } from "./selection.js";
import { KINDS, STATES, choose, state } from "./state.js";
import { byNumber, counted, percent, percentOf, share, show, verbOf } from "./text.js";

const DECIDED = STATES.slice(0, 3);
const MAX_BARS = 12;

const overview = document.getElementById("overview");
const lead = overview?.querySelector(".lead") ?? null;
const groups = overview?.querySelector(".groups") ?? null;
const bars = overview?.querySelector(".bars tbody") ?? null;
const testText = overview?.querySelector(".where") ?? null;
const sureText = overview?.querySelector(".sure") ?? null;
const ofThisRun = /** @type {HTMLElement[]} */ ([...(overview?.querySelectorAll(".near, .gallery") ?? [])]);
const pairs = /** @type {HTMLElement[]} */ ([...(overview?.querySelectorAll(".pairs li") ?? [])]);
const place = overview?.querySelector(".steps + p") ?? null;
const steps = [...(overview?.querySelectorAll(".steps li[data-state]") ?? [])];
const written = { lead: lead?.textContent ?? "", test: testText?.textContent ?? "", sure: sureText?.textContent ?? "", place: place?.textContent ?? "" };

/** @type {Map<HTMLElement, string>} The commands as they were written. */
const commands = new Map();

let allClasses = false;

/** Draw the parts that depend on the chosen score and limit. */
export function drawOverview() {
  if (!overview) return;
  const isRepresentative = state.by === representative;
  if (lead) lead.textContent = isRepresentative && state.limit === runLimit ? written.lead : sentence();
  if (testText) testText.textContent = isRepresentative ? written.test : `Whether classes differ was tested by ${show(fields[representative].name)} alone.`;
  if (sureText) sureText.textContent = isRepresentative && state.limit === runLimit ? written.sure : evidenceText();
  for (const part of ofThisRun) part.hidden = columns[state.by].run !== 0;
  drawGroups();
  drawBars();
  for (const step of steps) drawStep(/** @type {HTMLElement} */ (step));
  if (place) place.textContent = steps.some((step) => step.querySelector("code:not([hidden])")) ? (next()?.place ?? written.place) : "";
}

/** Make a click on a picture of the first screen open its point. */
export function watchOverview() {
  for (const pair of pairs) {
    const click = () => {
      choose({ point: Number(pair.dataset.place) });
      bring(byId("card"));
      byId("card").focus({ preventScroll: true });
    };
    pair.replaceChildren(element("button", { type: "button", click }, ...pair.childNodes));
  }
}

/** Count the predictions that hold, break and are correct by the chosen score and limit, as a sentence. */
function sentence() {
  const { probability, isDecisive, setting, title } = columns[state.by];
  const tally = STATES.map(() => 0);
  const kindTallies = [0, 0, 0];
  for (let point = 0; point < count; point++) {
    tally[states[point]]++;
    kindTallies[kinds[point]]++;
  }
  const rated = tally[0] + tally[1] + tally[2];
  const [correct, all] = [kindTallies[0], kindTallies[0] + kindTallies[1]];
  const accuracy = all ? `${share(correct, all, correctWords.counted)} ${verbOf(correct, all, ...correctWords.verbs)} ${correctWords.correct}.` : correctWords.unlabelled;
  if (probability && !isDecisive) return show(`${sampleText}${title} is no measurement under noise: it has no interval, so no point is held or broken by it. ${accuracy}`);
  if (!isDecisive || !rated) return sampleText + accuracy;
  const noise = setting ? `Under noise of ${setting}, ` : "By this score, ";
  const held = `${share(tally[0], rated, "prediction")} ${verbOf(tally[0], rated, "holds", "hold")}: kept with probability ${state.limit} or more.`;
  const breaksText = `${counted(tally[2])} ${byNumber(tally[2], "breaks", "break")} and ${counted(tally[1])} ${byNumber(tally[1], "is", "are")} undecided.`;
  return show(`${sampleText}${noise}${held} ${breaksText} ${accuracy}`);
}

/** Describe the evidence of the intervals of the chosen score. */
function evidenceText() {
  const { isDecisive, evidence, value, run } = columns[state.by];
  if (!isDecisive || !evidence) return "";
  const tallies = evidence.names.map(() => 0);
  let rated = 0;
  for (let point = 0; point < count; point++) {
    if (Number.isNaN(value[point])) continue;
    rated++;
    if (evidence.codes[point] >= 0) tallies[evidence.codes[point]]++;
  }
  const parts = evidence.names.flatMap((name, place) =>
    evidenceTexts[name] && tallies[place] ? [`${intervalShare(tallies[place], rated)} ${verbOf(tallies[place], rated, "rests", "rest")} on ${evidenceTexts[name]}.`] : [],
  );
  if (!rated) return "";
  const countingText = byNumber(rated, "The interval counts noisy copies and holds for every network.", "All intervals count noisy copies and hold for every network.");
  const methodText = parts.length ? parts.join(" ") : countingText;
  const missing = count - rated;
  const lost = missing ? ` ${share(missing, count, "point")} ${verbOf(missing, count, "has", "have")} no number.` : "";
  const { confidence } = runs[run];
  return `A point is called only where its whole ${percentOf(confidence)} interval lies on one side. ${methodText}${lost}`;
}

/**
 * Format a share of all intervals, as in `3 of 10 intervals`.
 * @param {number} part
 * @param {number} all
 */
function intervalShare(part, all) {
  return `${counted(part)} of ${counted(all)} ${byNumber(all, "interval", "intervals")}`;
}

function drawGroups() {
  if (!groups) return;
  const tallies = KINDS.map(() => STATES.map(() => 0));
  let all = 0;
  for (let point = 0; point < count; point++) {
    if (!isSelectedBut(point, "group")) continue;
    tallies[kinds[point]][states[point]]++;
    if (states[point] < 3) all++;
  }
  const present = KINDS.filter((kind) => kinds.includes(KINDS.indexOf(kind)));
  groups.replaceChildren(
    ...present.flatMap((kind) =>
      DECIDED.map((name) => {
        const points = tallies[KINDS.indexOf(kind)][STATES.indexOf(name)];
        const on = state.kind === kind && state.state === name;
        const click = () => {
          choose(on ? { kind: "", state: "" } : { kind, state: name });
          if (!on) bringSelection();
        };
        return element(
          "li",
          { class: name },
          element(
            "button",
            { type: "button", click, "aria-pressed": String(on), "data-keep": `group ${kind}, ${name}` },
            element("b", {}, percent(all ? points / all : 0)),
            element("span", {}, ` ${kind}, ${name} (${counted(points)})`),
          ),
        );
      }),
    ),
  );
}

/** Draw the classes in the order of all their points, each with its selected share. */
function drawBars() {
  if (!bars) return;
  const classTallies = tallyClasses();
  const rowTallies = allClasses || classTallies.length <= MAX_BARS ? classTallies : [...classTallies.slice(0, MAX_BARS / 2), ...classTallies.slice(classTallies.length - MAX_BARS / 2)];
  const shownRows = rowTallies.map(bar);
  if (classTallies.length > MAX_BARS) {
    const text = allClasses ? "Show fewer classes" : `Show all ${counted(classTallies.length)} classes; ${counted(classTallies.length - MAX_BARS)} lie between these`;
    const click = () => {
      allClasses = !allClasses;
      keepFocus(drawBars);
    };
    shownRows.push(element("tr", {}, element("td", { colspan: 3 }, element("button", { type: "button", click, "data-keep": "all classes" }, text))));
  }
  bars.replaceChildren(...shownRows);
}

/** @typedef {{number: number, all: number[], tally: number[], sum: number}} Tallied */

/**
 * Count the points of each class by their states: all its points, and those that all other filters
 * select, with the sum of the judged ones; the class with the largest share of broken points comes first.
 * @returns {Tallied[]}
 */
function tallyClasses() {
  const tallies = new Map(classes.map((number) => [number, { all: STATES.map(() => 0), tally: STATES.map(() => 0) }]));
  for (let point = 0; point < count; point++) {
    const classTally = tallies.get(classFor(point));
    if (classTally) classTally.all[states[point]]++;
    if (classTally && isSelectedBut(point, "class")) classTally.tally[states[point]]++;
  }
  const classTallies = [...tallies].map(([number, { all, tally }]) => ({ number, all, tally, sum: all[0] + all[1] + all[2] })).filter(({ sum }) => sum);
  return classTallies.sort((a, b) => b.all[2] / b.sum - a.all[2] / a.sum || a.all[0] / a.sum - b.all[0] / b.sum || a.number - b.number);
}

/**
 * Draw a class: a bar as long as the selected share of its points, by their states.
 * @param {Tallied} tallied
 */
function bar({ number, tally, sum }) {
  const on = state.inClass === number;
  const points = tally[0] + tally[1] + tally[2];
  const isFiltered = filters() > Number(state.inClass >= 0);
  const drawn = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const parts = DECIDED.map((name, place) => `${name} ${tally[place]}`).join(", ");
  const spoken = isFiltered ? `${points} of ${sum} points selected: ${parts}` : parts;
  for (const [name, value] of Object.entries({ viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": spoken })) drawn.setAttribute(name, value);
  let start = 0;
  DECIDED.forEach((name, place) => {
    const part = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const width = (100 * tally[place]) / sum;
    for (const [key, value] of Object.entries({ class: name, x: start, y: 0, width, height: 10 })) part.setAttribute(key, String(value));
    drawn.append(part);
    start += width;
  });
  const click = () => {
    choose({ inClass: on ? -1 : number });
    if (!on) bringSelection();
  };
  const text = isFiltered ? `${counted(points)} of ${counted(sum)} (${percent(points / sum)})` : DECIDED.map((_, place) => counted(tally[place])).join(" · ");
  return element(
    "tr",
    { class: on ? "chosen" : "" },
    element("th", { scope: "row" }, element("button", { type: "button", click, "aria-pressed": String(on), "data-keep": `class ${number}` }, show(classOf(number)))),
    element("td", { class: "drawn", click }, drawn),
    element("td", { class: "number" }, text),
  );
}

/**
 * Draw a next step: its number of points, its command at the chosen limit, and a button that selects the points.
 * @param {HTMLElement} step
 */
function drawStep(step) {
  const { kind = "", state: name = "", words = "" } = step.dataset;
  let points = 0;
  for (let point = 0; point < count; point++) {
    if ((!name || STATES[states[point]] === name) && (!kind || KINDS[kinds[point]] === kind)) points++;
  }
  step.hidden = points === 0;
  const text = step.querySelector("p");
  if (text) text.textContent = `${counted(points)} ${words}${words.endsWith("?") ? "" : "."}`;
  const command = step.querySelector("code");
  if (command) {
    commands.set(step, commands.get(step) ?? command.textContent ?? "");
    const text = atLimit(commandOf(step, kind, name));
    command.hidden = text === "";
    command.textContent = text;
  }
  if (step.querySelector("button")) return;
  const click = () => {
    choose({ kind, state: name, changed: "", inClass: -1, ranges: {}, find: "" });
    bringSelection();
  };
  step.append(element("button", { type: "button", click }, "Show them"));
}

/** Return the next steps of the run on show, where that is another run. */
function next() {
  return runs[columns[state.by].run].next;
}

/**
 * Return the command of a step for the run on show; empty where it would read another score than the chosen one.
 * @param {HTMLElement} step
 * @param {string} kind
 * @param {string} name
 */
function commandOf(step, kind, name) {
  const nextSteps = next();
  if (!nextSteps) return state.by === representative ? (commands.get(step) ?? "") : "";
  if (nextSteps.score !== columns[state.by].label) return "";
  return nextSteps.steps.find((step) => step.kind === kind && step.state === name)?.command ?? "";
}

/**
 * Return a command for the chosen limit; empty where it draws for the limit of the run.
 * @param {string} command
 */
function atLimit(command) {
  if (state.limit === runLimit) return command;
  if (command.startsWith("brittle more ") || command.includes(", draws=")) return "";
  return command.replace(/ --limit \S+$/, ` --limit ${state.limit}`).replace(/ limit=\S+\)$/, ` limit=${state.limit})`);
}
