// @ts-check
/** Elements of the page, made and found. Text becomes text: nothing here reads markup. */

/**
 * The element of this id.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const match = document.getElementById(id);
  if (!match) throw new Error(`the page has no element ${id}`);
  return match;
}

/**
 * A new element.
 * @param {string} tag
 * @param {Record<string, string | number | boolean | ((event: any) => void) | null>} [attributes] functions become
 *   listeners, `true` an attribute without a value; `false` and `null` are left out
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") node.addEventListener(name, value);
    else if (value !== false && value !== null) node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children);
  return node;
}

/**
 * A new drawing surface.
 * @param {Record<string, string | number | boolean | ((event: any) => void) | null>} [attributes]
 * @returns {HTMLCanvasElement}
 */
export function canvas(attributes = {}) {
  return /** @type {HTMLCanvasElement} */ (element("canvas", attributes));
}

/**
 * Options of a list to choose from, the chosen one marked.
 * @param {HTMLSelectElement} list
 * @param {{value: string, text: string}[]} options
 * @param {string} chosen
 */
export function fill(list, options, chosen) {
  list.replaceChildren(...options.map(({ value, text }) => element("option", { value }, text)));
  list.value = chosen;
}

/**
 * Scroll to the element of this id, and open every part that it is folded in.
 * @param {string} id
 */
export function unfoldTo(id) {
  const target = document.getElementById(id);
  for (let part = target; part; part = part.parentElement) if (part instanceof HTMLDetailsElement) part.open = true;
  target?.scrollIntoView({ behavior: motion() });
}

/** Pixels that must be seen below the start of a part before it counts as seen. */
const SEEN = 320;

/**
 * Scroll to the start of a part where that is out of sight.
 * @param {HTMLElement} part
 * @returns {boolean} whether it scrolled
 */
export function bring(part) {
  const { top } = part.getBoundingClientRect();
  const margin = parseFloat(getComputedStyle(part).scrollMarginTop);
  if (top >= margin - 1 && top + SEEN <= innerHeight) return false;
  part.scrollIntoView({ behavior: motion() });
  return true;
}

/** Return the scroll behaviour: immediate where the reader prefers reduced motion. */
function motion() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
}

/**
 * Redraw parts of the page and keep the focus: the redrawn element with the same attribute `data-keep` receives it.
 * Without such an element, the list does.
 * @param {() => void} draw
 */
export function keepFocus(draw) {
  const held = document.activeElement;
  const keep = held instanceof HTMLElement ? held.dataset.keep : undefined;
  draw();
  if (!keep || held?.isConnected) return;
  const anew = /** @type {HTMLElement | null} */ (document.querySelector(`[data-keep="${CSS.escape(keep)}"]`));
  (anew ?? byId("rows")).focus({ preventScroll: true });
}
