// @ts-check
// Uses every control on the page, and passes over missing ones.

const TYPED = ['"><img src=x onerror=alert(1)>', "(\\", "__proto__", "0"];
const MAX_ELEMENTS = 300; // elements of a kind that are used
const MAX_OPTIONS = 4; // of a choice, spread over it
const MAX_POINTS = 3; // of a list, one after the other
const KEYS = ["ArrowDown", "ArrowUp", "ArrowRight", "ArrowLeft", "Home", "End", "PageDown", "PageUp", "Enter", " ", "Escape"];

/** A list of points, one of its points, and what a person presses. */
const LISTS = '[role="listbox"], [role="grid"], [role="table"][tabindex], [data-points]';
const POINTS = '[data-point], [role="option"], [role="row"][tabindex], tbody tr[tabindex]';
const BUTTONS = 'button, summary, [role="button"], [role="tab"], [role="menuitem"], [role="checkbox"], a[href^="#"]';

/**
 * @template {Element} E
 * @param {string} selector
 * @returns {E[]} the first matching elements
 */
function all(selector) {
  return /** @type {E[]} */ ([...document.querySelectorAll(selector)].slice(0, MAX_ELEMENTS));
}

/** @returns {Promise<void>} when the page has drawn what was asked of it */
function drawn() {
  return new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
}

/**
 * @param {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} field
 * @param {string} value
 */
function enter(field, value) {
  field.value = value;
  if (!(field instanceof HTMLSelectElement)) field.dispatchEvent(new Event("input", { bubbles: true }));
  field.dispatchEvent(new Event("change", { bubbles: true }));
}

/** @param {Element} element */
function drag(element) {
  const box = element.getBoundingClientRect();
  /** @type {[string, number][]} */
  const moves = [["pointermove", 0.2], ["pointerdown", 0.2], ["pointermove", 0.6], ["pointerup", 0.6]];
  for (const [kind, share] of moves) {
    const clientX = box.left + share * box.width;
    const clientY = box.top + share * box.height;
    const eventFields = { bubbles: true, cancelable: true, clientX, clientY, button: 0, isPrimary: true, pointerId: 1 };
    element.dispatchEvent(new PointerEvent(kind, { ...eventFields, buttons: kind === "pointerup" ? 0 : 1 }));
    element.dispatchEvent(new MouseEvent(kind.replace("pointer", "mouse"), eventFields));
  }
}

/** @param {Element} element */
function press(element) {
  if (element instanceof HTMLElement) element.focus();
  for (const key of KEYS) element.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
}

/** @param {Element | undefined} element */
function click(element) {
  if (element?.isConnected) element.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true }));
}

function unfold() {
  for (const details of /** @type {HTMLDetailsElement[]} */ (all("details"))) details.open = true;
}

async function type() {
  for (const field of /** @type {HTMLSelectElement[]} */ (all("select"))) {
    const before = field.value;
    const step = Math.ceil(field.options.length / MAX_OPTIONS);
    for (let place = 0; place < field.options.length; place += step) enter(field, field.options[place].value);
    enter(field, before);
    await drawn();
  }
  for (const field of /** @type {HTMLInputElement[]} */ (all("input, textarea"))) {
    const before = field.value;
    if (field.type === "checkbox" || field.type === "radio") continue;
    const values = field.type === "range" || field.type === "number" ? [field.min, field.max] : TYPED;
    for (const value of values) {
      enter(field, value);
      await drawn();
    }
    enter(field, before);
  }
  await drawn();
}

async function walk() {
  for (const list of all(LISTS)) press(list);
  for (let number = 0; number < MAX_POINTS; number += 1) {
    const point = all(POINTS)[number];
    if (!point) return;
    click(point);
    press(point);
    await drawn();
  }
}

export async function exercise() {
  unfold();
  await walk();
  await type();
  for (const drawing of all("canvas, svg")) drag(drawing);
  await drawn();
  for (const button of all(BUTTONS)) {
    click(button);
    await drawn();
  }
  for (const box of /** @type {HTMLInputElement[]} */ (all('input[type="checkbox"], input[type="radio"]'))) box.click();
  for (const button of all('input[type="reset"], button[type="reset"], [data-clear], #clear')) click(button);
  unfold();
  click(all(POINTS)[0]);
  await drawn();
}
