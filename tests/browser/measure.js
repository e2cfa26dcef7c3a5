// @ts-check
// Measures of the look of a page.

/** @typedef {{width: number, room: number, wide: string[], small: string[], faint: string[], ground: number}} Measures */
/** @typedef {[number, number, number, number]} Colour  red, green, blue from 0 to 255, and how opaque, 0 to 1 */

const SMALLEST = 10; // pixels of text on a screen
const SMALLEST_PRINTED = 28 / 3; // 7 points on paper
const LEAST_CONTRAST = 3; // of graphics against what they stand on, WCAG 1.4.11
const SAME = 1.05; // a contrast below it: a halo or a gap in the colour of the ground

/** Marks that only help to read a figure: lines of axes, and bands of intervals behind their lines. */
const HELPERS =
  ".role-axis-grid, .role-axis-domain, .role-axis-tick, .background, .foreground, .mark-area, .grid, .axis, .band, defs";

/**
 * @param {Element} element
 * @returns {string} short path of the element
 */
function place(element) {
  const names = [];
  for (let ancestor = /** @type {Element | null} */ (element); ancestor && names.length < 4; ancestor = ancestor.parentElement) {
    const kinds = ancestor.getAttribute("class")?.trim().split(/\s+/).join(".");
    names.unshift(ancestor.tagName.toLowerCase() + (ancestor.id ? `#${ancestor.id}` : kinds ? `.${kinds}` : ""));
  }
  return names.join(" > ");
}

/**
 * @param {Element} element
 * @returns {boolean} true where the element is visible
 */
function shown(element) {
  const box = element.getBoundingClientRect();
  return box.width > 0 && box.height > 0 && element.checkVisibility({ visibilityProperty: true, opacityProperty: true });
}

/** @returns {string[]} elements beyond the right edge of the document that no scrolling box clips */
function wide() {
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= room) return [];
  const beyond = [...document.body.querySelectorAll("*")].filter((node) => node.getBoundingClientRect().right > room + 0.5);
  return beyond.filter((node) => !beyond.some((outer) => outer !== node && node.contains(outer))).map(place);
}

/** @returns {string[]} texts that are drawn smaller than they may be */
function small() {
  const problems = [];
  const smallest = matchMedia("print").matches ? SMALLEST_PRINTED : SMALLEST;
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const parent = texts.currentNode.parentElement;
    const words = texts.currentNode.textContent?.trim() ?? "";
    if (!parent || !words || !shown(parent) || hidden(parent)) continue;
    const size = parseFloat(getComputedStyle(parent).fontSize) * scale(parent);
    if (size < smallest - 0.01) problems.push(`${size.toFixed(1)} px: ${words.slice(0, 40)} (${place(parent)})`);
  }
  return problems;
}

/**
 * @param {Element} element
 * @returns {boolean} true for an element for screen readers alone: clipped to a pixel
 */
function hidden(element) {
  for (let ancestor = /** @type {Element | null} */ (element); ancestor; ancestor = ancestor.parentElement) {
    const box = ancestor.getBoundingClientRect();
    if (ancestor instanceof HTMLElement && box.width <= 1 && box.height <= 1) return true;
  }
  return false;
}

/**
 * @param {Element} element
 * @returns {number} pixels of the screen per unit of its drawing; 1 outside of drawings
 */
function scale(element) {
  const matrix = element instanceof SVGGraphicsElement ? element.getScreenCTM() : null;
  return matrix ? Math.min(Math.hypot(matrix.a, matrix.b), Math.hypot(matrix.c, matrix.d)) : 1;
}

const painter = /** @type {OffscreenCanvasRenderingContext2D} */ (
  new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true })
);

/**
 * @param {string} text of a computed style, in any colour space
 * @returns {Colour | null} null where nothing is painted, or a pattern
 */
function colour(text) {
  if (text === "none" || text.startsWith("url(")) return null;
  painter.clearRect(0, 0, 1, 1);
  painter.fillStyle = text;
  painter.fillRect(0, 0, 1, 1);
  const [red, green, blue, alpha] = painter.getImageData(0, 0, 1, 1).data;
  return [red, green, blue, alpha / 255];
}

/**
 * @param {Colour} top
 * @param {Colour} under opaque
 * @param {number} opacity of what is on top, beside that of its colour
 * @returns {Colour}
 */
function over(top, under, opacity) {
  const share = top[3] * opacity;
  const [red, green, blue] = [0, 1, 2].map((part) => share * top[part] + (1 - share) * under[part]);
  return [red, green, blue, 1];
}

/**
 * @param {Element | null} element
 * @returns {Colour} background of the element
 */
function ground(element) {
  if (!element) return over(colour("Canvas") ?? [255, 255, 255, 1], [255, 255, 255, 1], 1);
  const background = colour(getComputedStyle(element).backgroundColor);
  return background?.[3] === 1 ? background : over(background ?? [0, 0, 0, 0], ground(element.parentElement), 1);
}

/**
 * @param {Colour} of
 * @returns {number} relative luminance, WCAG 2.2
 */
function luminance(of) {
  const [red, green, blue] = of.slice(0, 3).map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/**
 * @param {Colour} colourA
 * @param {Colour} colourB
 * @returns {number} contrast, 1 to 21
 */
function contrast(colourA, colourB) {
  const [low, high] = [luminance(colourA), luminance(colourB)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

/**
 * @param {Element} mark
 * @returns {number} the opacity that it inherits from what holds it
 */
function opacity(mark) {
  let share = 1;
  for (let ancestor = /** @type {Element | null} */ (mark); ancestor; ancestor = ancestor.parentElement) {
    share *= parseFloat(getComputedStyle(ancestor).opacity);
  }
  return share;
}

/** @returns {string[]} marks of drawings of which neither inside nor edge stands out from the ground */
function faint() {
  const marks = new Set();
  for (const mark of document.querySelectorAll("svg :is(path, rect, circle, line, ellipse, polygon, polyline)")) {
    if (mark.closest(HELPERS) || !shown(mark)) continue;
    const under = ground(mark.closest("svg"));
    const style = getComputedStyle(mark);
    const paints = [
      { text: style.fill, share: parseFloat(style.fillOpacity) },
      { text: style.stroke, share: parseFloat(style.strokeOpacity) * Number(parseFloat(style.strokeWidth) > 0) },
    ];
    const reached = paints.map(({ text, share }) => {
      const paint = colour(text);
      return paint ? contrast(over(paint, under, share * opacity(mark)), under) : 1;
    });
    const best = Math.max(...reached);
    if (best >= SAME && best < LEAST_CONTRAST - 0.005) {
      marks.add(`${best.toFixed(1)}: ${place(mark)} fill ${style.fill} stroke ${style.stroke}`);
    }
  }
  return [...marks];
}

/** @returns {Measures} */
export function measure() {
  return {
    width: document.documentElement.scrollWidth,
    room: document.documentElement.clientWidth,
    wide: wide(),
    small: small(),
    faint: faint(),
    ground: luminance(ground(document.body)),
  };
}
