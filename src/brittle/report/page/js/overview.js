// @ts-check
/** The first screen, alive: its groups and classes select, and follow the score and the limit that the reader chooses. */

import { bring, byId, element } from "./dom.js";
import { chosen, classOf, classes, columns, count, mostDraws, ownLimit, rests, runs, spokesman } from "./data.js";
import { fields } from "./fields.js";
import { classFor, filters, kinds, selected, selectedBut, states } from "./selection.js";
import { KINDS, STATES, choose, clear, state } from "./state.js";
import { byNumber, counted, percent, percentOf, share, shown, verbOf } from "./text.js";

const DECIDED = STATES.slice(0, 3);
const FEW = 12;

const overview = document.getElementById("overview");
const lead = overview?.querySelector(".lead") ?? null;
const groups = overview?.querySelector(".groups") ?? null;
const bars = overview?.querySelector(".bars tbody") ?? null;
const where = overview?.querySelector(".where") ?? null;
const sure = overview?.querySelector(".sure") ?? null;
const steps = [...(overview?.querySelectorAll(".steps li[data-state]") ?? [])];
const written = { lead: lead?.textContent ?? "", where: where?.textContent ?? "", sure: sure?.textContent ?? "" };

/** @type {Map<HTMLElement, string>} The commands as they were written. */
const commands = new Map();

/** How many points are selected, where a click above them selects. */
const picked = element("p", { class: "picked", role: "status", hidden: true });
groups?.after(picked);

let allClasses = false;

/** Draws what follows the reader. */
export function drawOverview() {
  if (!overview) return;
  const own = state.by === spokesman;
  if (lead) lead.textContent = own && state.limit === ownLimit ? written.lead : sentence();
  if (where) where.textContent = own ? written.where : `Whether classes differ was tested by ${shown(fields[spokesman].name)} alone.`;
  if (sure) sure.textContent = own && state.limit === ownLimit ? written.sure : evidenceText();
  drawGroups();
  drawPicked();
  drawBars();
  for (const step of steps) drawStep(/** @type {HTMLElement} */ (step));
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
  const accuracy = all ? `${share(right, all, "label")} ${verbOf(right, all, "is", "are")} predicted right.` : "No point has a label, so nothing is known of how many are right.";
  if (probability && !judges) return shown(`${chosen}${title} is no measurement under noise: it has no interval, so no point is held or broken by it. ${accuracy}`);
  if (!judges || !rated) return chosen + accuracy;
  const noise = setting ? `Under noise of ${setting}, ` : "By this score, ";
  const held = `${share(tally[0], rated, "prediction")} ${verbOf(tally[0], rated, "holds", "hold")}: kept with probability ${state.limit} or more.`;
  const rest = `${counted(tally[2])} ${byNumber(tally[2], "breaks", "break")} and ${counted(tally[1])} ${byNumber(tally[1], "is", "are")} undecided.`;
  return shown(`${chosen}${noise}${held} ${rest} ${accuracy}`);
}

/** What the intervals of the chosen score rest on, and whether the copies of points were too few for these to hold. */
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
    rests[name] && tallies[place] ? [`${share0(tallies[place], rated)} ${verbOf(tallies[place], rated, ...rests[name])}.`] : [],
  );
  if (!rated) return "";
  const every = byNumber(rated, "The interval counts noisy copies and holds for every network.", "All intervals count noisy copies and hold for every network.");
  const said = parts.length ? parts.join(" ") : every;
  const missing = count - rated;
  const lost = missing ? ` ${share(missing, count, "point")} ${verbOf(missing, count, "has", "have")} no number.` : "";
  const { confidence } = runs[run];
  return `A point is called only where its whole ${percentOf(confidence)} interval lies on one side. ${said}${tooFew()}${lost}`;
}

/**
 * Some of all intervals, such as `3 of 10 intervals`.
 * @param {number} some
 * @param {number} all
 */
function share0(some, all) {
  return `${counted(some)} of ${counted(all)} ${byNumber(all, "interval", "intervals")}`;
}

/** That the noisy copies of undecided points cannot show that these hold, and what can; empty where no point is so. */
function tooFew() {
  const { copies } = columns[state.by];
  if (!copies) return "";
  const tallies = copies.numbers.map(() => [0, 0, 0, 0, 0, 0]);
  let undecided = 0;
  for (let point = 0; point < count; point++) {
    if (states[point] === 1) undecided++;
    const place = copies.of ? copies.of[point] : 0;
    if (place >= 0) tallies[place][states[point]]++;
  }
  const short = copies.best.map((end, place) => end > 1 - state.limit && tallies[place][0] === 0 && tallies[place][1] > 0);
  const last = short.lastIndexOf(true);
  if (last < 0) return "";
  const points = tallies.reduce((sum, tally, place) => sum + (short[place] ? tally[1] : 0), 0);
  const most = copies.numbers[last];
  const several = `${counted(most)} ${byNumber(most, "copy", "copies")}`;
  const some = `${counted(points)} of ${counted(undecided)} undecided ${byNumber(undecided, "point", "points")} ${verbOf(points, undecided, "has", "have")} at most ${several}, which`;
  const who = copies.numbers.length === 1 ? `${several} a point` : some;
  const rule = `--resume --until decided --limit ${state.limit}${moreDraws()}`;
  return ` ${who} cannot show that a prediction holds at ${state.limit}, even where none of them flips. The command of the run with ${rule} draws as many as each point needs.`;
}

/** The option by which a point that no copy flips can be shown to hold at the chosen limit; empty where none is needed. */
function moreDraws() {
  const [byDefault, largest, enough] = mostDraws;
  let most = byDefault;
  while (most * (1 - state.limit) < enough && most < largest) most *= 10;
  return most > byDefault ? ` --most-draws ${most}` : "";
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
        const click = () => choose(on ? { kind: "", state: "" } : { kind, state: name });
        return element(
          "li",
          { class: name },
          element(
            "button",
            { type: "button", click, "aria-pressed": String(on) },
            element("b", {}, percent(all ? points / all : 0)),
            element("span", {}, ` ${kind}, ${name} (${counted(points)})`),
          ),
        );
      }),
    ),
  );
}

function drawPicked() {
  picked.hidden = filters() === 0;
  if (picked.hidden) return picked.replaceChildren();
  const points = selected().length;
  const said = `${counted(points)} of ${counted(count)} points ${byNumber(points, "is", "are")} selected. `;
  const go = () => bring(byId("explore"));
  picked.replaceChildren(said, element("button", { type: "button", click: go }, "See them"), " ", element("button", { type: "button", click: clear }, "Show all"));
}

/** Of each class all points that the other views select, in whichever group: a chosen group would leave bars of one colour. */
function drawBars() {
  if (!bars) return;
  const tallies = new Map(classes.map((number) => [number, STATES.map(() => 0)]));
  for (let point = 0; point < count; point++) {
    const tally = selectedBut(point, "classes") ? tallies.get(classFor(point)) : undefined;
    if (tally) tally[states[point]]++;
  }
  const found = [...tallies].map(([number, tally]) => ({ number, tally, sum: tally[0] + tally[1] + tally[2] })).filter(({ sum }) => sum);
  found.sort((one, other) => other.tally[2] / other.sum - one.tally[2] / one.sum || one.tally[0] / one.sum - other.tally[0] / other.sum || one.number - other.number);
  const few = allClasses || found.length <= FEW ? found : [...found.slice(0, FEW / 2), ...found.slice(found.length - FEW / 2)];
  const shownRows = few.map(({ number, tally, sum }) => bar(number, tally, sum));
  if (found.length > FEW) {
    const text = allClasses ? "Show fewer classes" : `Show all ${counted(found.length)} classes; ${counted(found.length - FEW)} lie between these`;
    const click = () => {
      allClasses = !allClasses;
      drawBars();
    };
    shownRows.push(element("tr", {}, element("td", { colspan: 3 }, element("button", { type: "button", click }, text))));
  }
  bars.replaceChildren(...shownRows);
}

/**
 * @param {number} number
 * @param {number[]} tally
 * @param {number} sum
 */
function bar(number, tally, sum) {
  const on = state.inClass === number;
  const drawn = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const spoken = DECIDED.map((name, place) => `${name} ${tally[place]}`).join(", ");
  for (const [name, value] of Object.entries({ viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": spoken })) drawn.setAttribute(name, value);
  let start = 0;
  DECIDED.forEach((name, place) => {
    const part = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const width = (100 * tally[place]) / sum;
    for (const [key, value] of Object.entries({ class: name, x: start, y: 0, width, height: 10 })) part.setAttribute(key, String(value));
    drawn.append(part);
    start += width;
  });
  const click = () => choose({ inClass: on ? -1 : number });
  return element(
    "tr",
    { class: on ? "chosen" : "" },
    element("th", { scope: "row" }, element("button", { type: "button", click, "aria-pressed": String(on) }, shown(classOf(number)))),
    element("td", {}, drawn),
    element("td", { class: "number" }, DECIDED.map((_, place) => counted(tally[place])).join(" · ")),
  );
}

/**
 * One of the next steps: how many points it is about now, at which limit, and a button that selects them.
 * @param {HTMLElement} step
 */
function drawStep(step) {
  const { kind = "", state: name = "", one = "", many = "" } = step.dataset;
  let points = 0;
  for (let point = 0; point < count; point++) {
    if ((!name || STATES[states[point]] === name) && (!kind || KINDS[kinds[point]] === kind)) points++;
  }
  const heldWrong = !name && states.some((which, point) => which === 0 && kinds[point] === 1);
  step.hidden = points === 0 || heldWrong;
  const text = step.querySelector("p");
  if (text) text.textContent = `${counted(points)} ${byNumber(points, one, many)}.`;
  const command = step.querySelector("code");
  if (command) {
    commands.set(step, commands.get(step) ?? command.textContent ?? "");
    command.hidden = state.by !== spokesman; // it reads the score that the run is spoken of by
    command.textContent = atLimit(commands.get(step) ?? "");
  }
  if (step.querySelector("button")) return;
  const click = () => {
    choose({ kind, state: name, changed: "", inClass: -1, ranges: {}, find: "" });
    byId("explore").scrollIntoView();
  };
  step.append(element("button", { type: "button", click }, "Show them"));
}

/**
 * A command for the limit that is chosen.
 * @param {string} command
 */
function atLimit(command) {
  if (state.limit === ownLimit) return command;
  const more = command.includes(" --until decided ") ? moreDraws() : "";
  return command.replace(/ --most-draws \d+$/, "").replace(/ --limit \S+$/, ` --limit ${state.limit}`) + more;
}
