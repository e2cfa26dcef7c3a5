// @ts-check
/** The first screen, alive: its groups and classes select, and follow the score and the limit that the reader chooses. */

import { bring, byId, element, keepFocus } from "./dom.js";
import { chosen, classOf, classes, columns, count, ownLimit, rests, rightWords, runs, spokesman } from "./data.js";
import { fields } from "./fields.js";
import { bringSelection } from "./list.js";
import { classFor, filters, kinds, selectedBut, states } from "./selection.js";
import { KINDS, STATES, choose, state } from "./state.js";
import { byNumber, counted, percent, percentOf, share, shown, verbOf } from "./text.js";

const DECIDED = STATES.slice(0, 3);
const FEW = 12;

const overview = document.getElementById("overview");
const lead = overview?.querySelector(".lead") ?? null;
const groups = overview?.querySelector(".groups") ?? null;
const bars = overview?.querySelector(".bars tbody") ?? null;
const where = overview?.querySelector(".where") ?? null;
const sure = overview?.querySelector(".sure") ?? null;
const ofThisRun = /** @type {HTMLElement[]} */ ([...(overview?.querySelectorAll(".near, .gallery") ?? [])]);
const pairs = /** @type {HTMLElement[]} */ ([...(overview?.querySelectorAll(".pairs li") ?? [])]);
const place = overview?.querySelector(".steps + p") ?? null;
const steps = [...(overview?.querySelectorAll(".steps li[data-state]") ?? [])];
const written = { lead: lead?.textContent ?? "", where: where?.textContent ?? "", sure: sure?.textContent ?? "", place: place?.textContent ?? "" };

/** @type {Map<HTMLElement, string>} The commands as they were written. */
const commands = new Map();

let allClasses = false;

/** Draws what follows the reader. */
export function drawOverview() {
  if (!overview) return;
  const own = state.by === spokesman;
  if (lead) lead.textContent = own && state.limit === ownLimit ? written.lead : sentence();
  if (where) where.textContent = own ? written.where : `Whether classes differ was tested by ${shown(fields[spokesman].name)} alone.`;
  if (sure) sure.textContent = own && state.limit === ownLimit ? written.sure : evidenceText();
  for (const part of ofThisRun) part.hidden = columns[state.by].run !== 0;
  drawGroups();
  drawBars();
  for (const step of steps) drawStep(/** @type {HTMLElement} */ (step));
  if (place) place.textContent = steps.some((step) => step.querySelector("code:not([hidden])")) ? (next()?.where ?? written.place) : "";
}

/** Lets a click on a picture of the first screen open its point. */
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

/** How many predictions hold and break by the chosen score and limit, and how many are right. */
function sentence() {
  const { probability, judges, setting, title } = columns[state.by];
  const tally = STATES.map(() => 0);
  const known = [0, 0, 0];
  for (let point = 0; point < count; point++) {
    tally[states[point]]++;
    known[kinds[point]]++;
  }
  const rated = tally[0] + tally[1] + tally[2];
  const [right, all] = [known[0], known[0] + known[1]];
  const accuracy = all ? `${share(right, all, rightWords.counted)} ${verbOf(right, all, ...rightWords.verbs)} ${rightWords.correct}.` : rightWords.unlabelled;
  if (probability && !judges) return shown(`${chosen}${title} is no measurement under noise: it has no interval, so no point is held or broken by it. ${accuracy}`);
  if (!judges || !rated) return chosen + accuracy;
  const noise = setting ? `Under noise of ${setting}, ` : "By this score, ";
  const held = `${share(tally[0], rated, "prediction")} ${verbOf(tally[0], rated, "holds", "hold")}: kept with probability ${state.limit} or more.`;
  const rest = `${counted(tally[2])} ${byNumber(tally[2], "breaks", "break")} and ${counted(tally[1])} ${byNumber(tally[1], "is", "are")} undecided.`;
  return shown(`${chosen}${noise}${held} ${rest} ${accuracy}`);
}

/** What the intervals of the chosen score rest on. */
function evidenceText() {
  const { judges, evidence, value, run } = columns[state.by];
  if (!judges || !evidence) return "";
  const tallies = evidence.names.map(() => 0);
  let rated = 0;
  for (let point = 0; point < count; point++) {
    if (Number.isNaN(value[point])) continue;
    rated++;
    if (evidence.of[point] >= 0) tallies[evidence.of[point]]++;
  }
  const parts = evidence.names.flatMap((name, place) =>
    rests[name] && tallies[place] ? [`${share0(tallies[place], rated)} ${verbOf(tallies[place], rated, "rests", "rest")} on ${rests[name]}.`] : [],
  );
  if (!rated) return "";
  const every = byNumber(rated, "The interval counts noisy copies and holds for every network.", "All intervals count noisy copies and hold for every network.");
  const said = parts.length ? parts.join(" ") : every;
  const missing = count - rated;
  const lost = missing ? ` ${share(missing, count, "point")} ${verbOf(missing, count, "has", "have")} no number.` : "";
  const { confidence } = runs[run];
  return `A point is called only where its whole ${percentOf(confidence)} interval lies on one side. ${said}${lost}`;
}

/**
 * Some of all intervals, such as `3 of 10 intervals`.
 * @param {number} some
 * @param {number} all
 */
function share0(some, all) {
  return `${counted(some)} of ${counted(all)} ${byNumber(all, "interval", "intervals")}`;
}

function drawGroups() {
  if (!groups) return;
  const tallies = KINDS.map(() => STATES.map(() => 0));
  let all = 0;
  for (let point = 0; point < count; point++) {
    if (!selectedBut(point, "group")) continue;
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

/** Draws the classes, in the order that all their points give them, and of each how much of it is selected. */
function drawBars() {
  if (!bars) return;
  const found = tallied();
  const few = allClasses || found.length <= FEW ? found : [...found.slice(0, FEW / 2), ...found.slice(found.length - FEW / 2)];
  const shownRows = few.map(bar);
  if (found.length > FEW) {
    const text = allClasses ? "Show fewer classes" : `Show all ${counted(found.length)} classes; ${counted(found.length - FEW)} lie between these`;
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
 * Of each class with a number: how many points have which state, of all its points and of those that all other filters
 * select, and how many there are in all; that of which the largest share breaks comes first.
 * @returns {Tallied[]}
 */
function tallied() {
  const tallies = new Map(classes.map((number) => [number, { all: STATES.map(() => 0), tally: STATES.map(() => 0) }]));
  for (let point = 0; point < count; point++) {
    const own = tallies.get(classFor(point));
    if (own) own.all[states[point]]++;
    if (own && selectedBut(point, "class")) own.tally[states[point]]++;
  }
  const found = [...tallies].map(([number, { all, tally }]) => ({ number, all, tally, sum: all[0] + all[1] + all[2] })).filter(({ sum }) => sum);
  return found.sort((one, other) => other.all[2] / other.sum - one.all[2] / one.sum || one.all[0] / one.sum - other.all[0] / other.sum || one.number - other.number);
}

/**
 * One class: a bar as long as the share of its points that is selected, by their states.
 * @param {Tallied} tallied
 */
function bar({ number, tally, sum }) {
  const on = state.inClass === number;
  const points = tally[0] + tally[1] + tally[2];
  const some = filters() > Number(state.inClass >= 0);
  const drawn = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const parts = DECIDED.map((name, place) => `${name} ${tally[place]}`).join(", ");
  const spoken = some ? `${points} of ${sum} points selected: ${parts}` : parts;
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
  const text = some ? `${counted(points)} of ${counted(sum)} (${percent(points / sum)})` : DECIDED.map((_, place) => counted(tally[place])).join(" · ");
  return element(
    "tr",
    { class: on ? "chosen" : "" },
    element("th", { scope: "row" }, element("button", { type: "button", click, "aria-pressed": String(on), "data-keep": `class ${number}` }, shown(classOf(number)))),
    element("td", { class: "drawn", click }, drawn),
    element("td", { class: "number" }, text),
  );
}

/**
 * One of the next steps: how many points it is about now, at which limit, and a button that selects them.
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

/** What to do next with the run on show, where that is not this one. */
function next() {
  return runs[columns[state.by].run].next;
}

/**
 * The command of a step for the run on show; empty where it would read another score than the one that is spoken of.
 * @param {HTMLElement} step
 * @param {string} kind
 * @param {string} name
 */
function commandOf(step, kind, name) {
  const other = next();
  if (!other) return state.by === spokesman ? (commands.get(step) ?? "") : "";
  if (other.by !== columns[state.by].label) return "";
  return other.steps.find((one) => one.kind === kind && one.state === name)?.command ?? "";
}

/**
 * A command for the limit that is chosen; empty where it draws for the limit of the run.
 * @param {string} command
 */
function atLimit(command) {
  if (state.limit === ownLimit) return command;
  if (command.startsWith("brittle more ") || command.includes(", draws=")) return "";
  return command.replace(/ --limit \S+$/, ` --limit ${state.limit}`).replace(/ limit=\S+\)$/, ` limit=${state.limit})`);
}
