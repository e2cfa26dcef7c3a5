// @ts-check
/** The images of points, from the sheets that the page holds; each sheet is decoded when it is first seen. */

import { nearest, pictures } from "./data.js";

/** @type {Map<number, Promise<HTMLImageElement>>} */
const decodedSheets = new Map();

/** True where the run has images. */
export const hasPictures = pictures !== null;

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
 * Draw the image of a point; leave the canvas empty where it has none.
 * @param {HTMLCanvasElement} canvas
 * @param {number} point
 */
export async function drawPicture(canvas, point) {
  if (!pictures) return;
  const pointImage = nearest.get(point)?.find((entry) => entry.pointImage)?.pointImage;
  const tile = pictures.tiles[point];
  canvas.width = canvas.height = pictures.side;
  if (tile < 0 && !pointImage) return;
  const { side, perSide } = pictures;
  canvas.dataset.point = String(point);
  if (tile < 0 && pointImage) return drawWhole(canvas, await imageAt(pointImage));
  const sheet = Math.floor(tile / perSide ** 2);
  if (!decodedSheets.has(sheet)) decodedSheets.set(sheet, imageAt(pictures.sheets[sheet]));
  const image = await decodedSheets.get(sheet);
  if (!image || canvas.dataset.point !== String(point)) return;
  const tileLeft = (tile % perSide) * side;
  const top = Math.floor((tile % perSide ** 2) / perSide) * side;
  canvas.getContext("2d")?.drawImage(image, tileLeft, top, side, side, 0, 0, side, side);
}

/**
 * Draw an image at its full size.
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLImageElement} image
 */
export function drawWhole(canvas, image) {
  canvas.width = image.naturalWidth;
  canvas.height = image.naturalHeight;
  canvas.getContext("2d")?.drawImage(image, 0, 0);
}

/**
 * Return whether noise can be drawn on the image of a point: its pixels must be those of the input.
 * @param {number} point
 */
export function canDrawNoise(point) {
  return pictures !== null && pictures.steps !== null && pictures.tiles[point] >= 0;
}

/**
 * Draw the image of a point with normal noise, the same at every call: an example, which the network never saw.
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

/** Largest magnification of a difference. */
const MAX_TIMES = 64;

/** The largest change that is seen around mid-grey. */
const FULL = 127;

/**
 * Draw `neighbourImage - pointImage` around mid-grey, magnified by the largest power of two (up to 64) that clips no channel.
 * @param {HTMLCanvasElement} canvas
 * @param {HTMLImageElement} pointImage
 * @param {HTMLImageElement} neighbourImage
 * @returns {{times: number, largest: number}} the magnification, and the largest change in 255 steps
 */
export function drawDifference(canvas, pointImage, neighbourImage) {
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  if (!pen) return { times: 1, largest: 0 };
  drawWhole(canvas, neighbourImage);
  const { width, height } = canvas;
  const neighbour = pen.getImageData(0, 0, width, height);
  pen.drawImage(pointImage, 0, 0, width, height);
  const pointPixels = pen.getImageData(0, 0, width, height).data;
  let largest = 0;
  for (let place = 0; place < pointPixels.length; place++) {
    if (place % 4 !== 3) largest = Math.max(largest, Math.abs(neighbour.data[place] - pointPixels[place]));
  }
  let times = 1;
  while (2 * times * largest <= FULL && times < MAX_TIMES) times *= 2;
  for (let place = 0; place < pointPixels.length; place++) {
    if (place % 4 !== 3) neighbour.data[place] = 128 + times * (neighbour.data[place] - pointPixels[place]);
  }
  pen.putImageData(neighbour, 0, 0);
  return { times, largest };
}
