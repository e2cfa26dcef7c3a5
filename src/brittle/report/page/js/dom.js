// @ts-check
/** Elements of the page, made and found. Text becomes text: nothing here reads markup. */

/** Pixels of an element that are enough to notice it by. */
const SEEN = 120;

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
 * Scrolls to an element whose beginning is not seen.
 * @param {HTMLElement} target
 */
export function bring(target) {
  const { top } = target.getBoundingClientRect();
  if (top < 0 || top > innerHeight - SEEN) target.scrollIntoView();
}

/**
 * Scrolls to the element of this id, and opens every part that it is folded in.
 * @param {string} id
 */
export function unfoldTo(id) {
  const found = document.getElementById(id);
  for (let part = found; part; part = part.parentElement) if (part instanceof HTMLDetailsElement) part.open = true;
  found?.scrollIntoView();
}
