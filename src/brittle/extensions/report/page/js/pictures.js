// @ts-check
/** The images of points, from the sheets that the page holds; each sheet is decoded when it is first seen. */

import { nearest, pictures } from "./data.js";

/** @type {Map<number, Promise<HTMLImageElement>>} */
const decoded = new Map();

/** Whether the run has images. */
export const pictured = pictures !== null;

/**
 * The image at an address inside the page.
 * @param {string} address
 * @returns {Promise<HTMLImageElement>}
 */
export async function imageAt(address) {
  const image = new Image();
  image.src = address;
  await image.decode();
  return image;
}

/**
 * Draws the image of a point; leaves the canvas empty where it has none.
 * @param {HTMLCanvasElement} canvas
 * @param {number} point
 */
export async function drawPicture(canvas, point) {
  if (!pictures) return;
  const own = nearest.get(point)?.find((entry) => entry.own)?.own;
  const tile = pictures.tiles[point];
  canvas.width = canvas.height = pictures.side;
  if (tile < 0 && !own) return;
  const { side, perSide } = pictures;
  canvas.dataset.point = String(point);
  if (tile < 0 && own) return drawWhole(canvas, await imageAt(own));
  const sheet = Math.floor(tile / perSide ** 2);
  if (!decoded.has(sheet)) decoded.set(sheet, imageAt(pictures.sheets[sheet]));
  const image = await decoded.get(sheet);
  if (!image || canvas.dataset.point !== String(point)) return;
  const left = (tile % perSide) * side;
  const top = Math.floor((tile % perSide ** 2) / perSide) * side;
  canvas.getContext("2d")?.drawImage(image, left, top, side, side, 0, 0, side, side);
}

/**
 * Draws an image at its own size.
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLImageElement} image
 */
export function drawWhole(canvas, image) {
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  canvas.getContext("2d")?.drawImage(image, 0, 0);
}

/**
 * Whether noise can be drawn on the image of a point: it has one, whose pixels are those of the input.
 * @param {number} point
 */
export function takesNoise(point) {
  return pictures !== null && pictures.steps !== null && pictures.tiles[point] >= 0;
}

/**
 * Draws the image of a point with normal noise on it, the same each time: an example, and none that the network saw.
 * @param {HTMLCanvasElement} canvas
 * @param {number} point
 * @param {number} sigma in units of the input
 */
export async function drawNoisy(canvas, point, sigma) {
  await drawPicture(canvas, point);
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  if (!pen || !pictures?.steps) return;
  const image = pen.getImageData(0, 0, canvas.width, canvas.height);
  const draw = normal(point);
  for (let place = 0; place < image.data.length; place += 4) {
    const alike = draw();
    for (let channel = 0; channel < 3; channel++) image.data[place + channel] += sigma * pictures.steps * (pictures.grey ? alike : draw());
  }
  pen.putImageData(image, 0, 0);
}

/**
 * Normal numbers, the sums of twelve uniform ones less six, of a linear congruential sequence.
 * @param {number} seed
 */
function normal(seed) {
  let now = seed + 1;
  return () => {
    let sum = -6;
    for (let count = 0; count < 12; count++) {
      now = (Math.imul(now, 1664525) + 1013904223) >>> 0;
      sum += now / 2 ** 32;
    }
    return sum;
  };
}

/** A difference is magnified by this at most. */
const MOST_TIMES = 64;

/** The largest change that is seen around mid-grey. */
const FULL = 127;

/**
 * Draws `other - own` around mid-grey, every channel as large as the largest power of two shows in full, or 64 times.
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLImageElement} own
 * @param {HTMLImageElement} other
 * @returns {{times: number, largest: number}} by how much it is magnified, and the largest change, of 255 steps
 */
export function drawDifference(canvas, own, other) {
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  if (!pen) return { times: 1, largest: 0 };
  drawWhole(canvas, other);
  const { width, height } = canvas;
  const second = pen.getImageData(0, 0, width, height);
  pen.drawImage(own, 0, 0, width, height);
  const first = pen.getImageData(0, 0, width, height).data;
  let largest = 0;
  for (let place = 0; place < first.length; place++) {
    if (place % 4 !== 3) largest = Math.max(largest, Math.abs(second.data[place] - first[place]));
  }
  let times = 1;
  while (2 * times * largest <= FULL && times < MOST_TIMES) times *= 2;
  for (let place = 0; place < first.length; place++) {
    if (place % 4 !== 3) second.data[place] = 128 + times * (second.data[place] - first[place]);
  }
  pen.putImageData(second, 0, 0);
  return { times, largest };
}
