// @ts-check
/** Elements of the page, made and found. Text becomes text: nothing here reads markup. */

/**
 * The element of this id.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element ${id}`);
  return found;
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
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value !== false && value !== null) made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children);
  return made;
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
 * Scrolls to the element of this id, and opens every part that it is folded in.
 * @param {string} id
 */
export function unfoldTo(id) {
  const found = document.getElementById(id);
  for (let part = found; part; part = part.parentElement) if (part instanceof HTMLDetailsElement) part.open = true;
  found?.scrollIntoView({ behavior: motion() });
}

/** Pixels that must be seen below the start of a part before it counts as seen. */
const SEEN = 320;

/**
 * Scrolls to the start of a part where that is out of sight.
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

/** How the page scrolls: at once where the reader prefers that nothing moves. */
function motion() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
}

/**
 * Draws parts of the page anew, and leaves the focus on what stands for the element that had it; what is drawn anew says
 * by its attribute `data-keep` what it stands for. Where nothing does any more, the list has the focus.
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
