// @ts-check
/** Shared parts of the drawings: colours of the page, sharp surfaces, dragged rectangles. */

/** @typedef {{pen: CanvasRenderingContext2D, width: number, height: number}} Surface */

/** Room around a drawing for its axes, in pixels. */
export const MARGIN = { left: 56, right: 12, top: 24, bottom: 40 };

/** Colours of the states, in their order. */
export const STATE_COLOURS = ["--accent", "--undecided", "--breaks", "--rule", "--rule", "--accent"];

const FONT = '12px system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, "Liberation Sans", sans-serif';

/**
 * A colour of the page.
 * @param {string} name as `--ink`
 */
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/**
 * The cleared surface of a canvas, as sharp as the screen.
 * @param {HTMLCanvasElement} canvas
 * @returns {Surface}
 */
export function surface(canvas) {
  const { width, height } = canvas.getBoundingClientRect();
  const sharp = devicePixelRatio || 1;
  canvas.width = Math.round(width * sharp);
  canvas.height = Math.round(height * sharp);
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.scale(sharp, sharp);
  pen.font = FONT;
  return { pen, width, height };
}

/**
 * Return the horizontal pixel of a place from 0 to 1.
 * @param {number} place
 * @param {number} width
 */
export function across(place, width) {
  return MARGIN.left + place * (width - MARGIN.left - MARGIN.right);
}

/**
 * Return the vertical pixel of a place from 0 to 1.
 * @param {number} place
 * @param {number} height
 */
export function up(place, height) {
  return height - MARGIN.bottom - place * (height - MARGIN.top - MARGIN.bottom);
}

/**
 * The place from 0 to 1 at a distance from the left.
 * @param {number} x
 * @param {number} width
 */
export function placeAcross(x, width) {
  return (x - MARGIN.left) / (width - MARGIN.left - MARGIN.right);
}

/**
 * The place from 0 to 1 at a distance from the top.
 * @param {number} y
 * @param {number} height
 */
export function placeUp(y, height) {
  return (height - MARGIN.bottom - y) / (height - MARGIN.top - MARGIN.bottom);
}

/**
 * Write as many texts under a horizontal axis as fit beside one another, always including the last.
 * @param {Surface} on
 * @param {{at: number, text: string}[]} texts
 */
export function writeBelow({ pen, width, height }, texts) {
  pen.fillStyle = colour("--muted");
  pen.textAlign = "center";
  let free = width;
  for (const { at, text } of [...texts].reverse()) {
    const half = pen.measureText(text).width / 2;
    const middle = Math.min(Math.max(at, half), width - half);
    if (middle + half > free) continue;
    pen.fillText(text, middle, height - MARGIN.bottom + 16);
    free = middle - half - 8;
  }
}

/**
 * Return the first text that fits in `room` pixels, or else the last one, cut.
 * @param {CanvasRenderingContext2D} pen
 * @param {string[]} texts
 * @param {number} room
 */
export function fitText(pen, texts, room) {
  const fittingText = texts.find((text) => pen.measureText(text).width <= room);
  if (fittingText !== undefined) return fittingText;
  let cut = texts[texts.length - 1];
  while (cut && pen.measureText(`${cut}…`).width > room) cut = cut.slice(0, -1);
  return `${cut}…`;
}

/**
 * Call `done` after a drag over a canvas, with its start and end; both agree for a click.
 * @param {HTMLCanvasElement} canvas
 * @param {(start: [number, number], end: [number, number], size: DOMRect) => void} done
 * @param {(start: [number, number], end: [number, number]) => void} [during]
 */
export function onDrag(canvas, done, during) {
  /** @type {[number, number] | null} */
  let start = null;
  /**
   * @param {PointerEvent} event
   * @returns {[number, number]}
   */
  const spot = (event) => {
    const { left: canvasLeft, top } = canvas.getBoundingClientRect();
    return [event.clientX - canvasLeft, event.clientY - top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    start = spot(event);
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (start && during) during(start, spot(event));
  });
  canvas.addEventListener("pointerup", (event) => {
    if (start) done(start, spot(event), canvas.getBoundingClientRect());
    start = null;
  });
  canvas.addEventListener("pointercancel", () => {
    start = null;
  });
}
