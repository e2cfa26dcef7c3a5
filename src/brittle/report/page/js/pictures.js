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
