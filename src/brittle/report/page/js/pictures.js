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
  const own = nearest.entries.find((entry) => entry.point === point && entry.own)?.own;
  if (!pictures) return;
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

/** The level of grey that stands for no change, and the largest change to either side that can be drawn. */
export const MIDDLE = 127;

/**
 * Draws `other - own` around mid-grey, every channel `times` as large; what passes black or white is cut.
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLImageElement} own
 * @param {HTMLImageElement} other
 * @param {number} times
 * @returns {number} the largest change of a channel, in levels of 255
 */
export function drawDifference(canvas, own, other, times) {
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  if (!pen) return 0;
  drawWhole(canvas, other);
  const { width, height } = canvas;
  const second = pen.getImageData(0, 0, width, height);
  pen.drawImage(own, 0, 0, width, height);
  const first = pen.getImageData(0, 0, width, height).data;
  let largest = 0;
  for (let place = 0; place < first.length; place++) {
    if (place % 4 === 3) continue;
    const change = second.data[place] - first[place];
    largest = Math.max(largest, Math.abs(change));
    second.data[place] = 128 + times * change;
  }
  pen.putImageData(second, 0, 0);
  return largest;
}
