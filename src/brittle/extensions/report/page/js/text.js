// @ts-check
/** Numbers and names as the page writes them. */

/**
 * Return a text of visible characters: control and bidirectional characters become escapes.
 * @param {string} text
 */
export function show(text) {
  return text.replace(/\p{C}|[^\P{Z} ]/gu, (character) => {
    const code = /** @type {number} */ (character.codePointAt(0));
    const [mark, width] = code > 0xffff ? ["\\U", 8] : code > 0xff ? ["\\u", 4] : ["\\x", 2];
    return mark + code.toString(16).padStart(width, "0");
  });
}

/**
 * A count with commas.
 * @param {number} number
 */
export function counted(number) {
  return number.toLocaleString("en");
}

/**
 * A number with three digits that count.
 * @param {number} number
 */
export function short(number) {
  if (Number.isNaN(number)) return "–";
  if (!Number.isFinite(number)) return number > 0 ? "∞" : "−∞";
  if (number === 0) return "0";
  const size = Math.abs(number);
  const text = size >= 1e-3 && size < 1e5 ? rounded(size) : size.toExponential(1);
  return (number < 0 ? "−" : "") + text;
}

/**
 * Three digits that count, and more where these would round a number near 1 to 1.
 * @param {number} size
 */
function rounded(size) {
  let digits = 3;
  while (size !== 1 && Number(size.toPrecision(digits)) === 1) digits++;
  return String(Number(size.toPrecision(digits)));
}

/**
 * A probability in per cent, never rounded to none or to all.
 * @param {number} share
 */
export function percent(share) {
  if (Number.isNaN(share)) return "–";
  if (share === 0 || share === 1) return `${100 * share}%`;
  if (share < 1e-6) return "under 0.0001%";
  if (share > 1 - 1e-6) return "over 99.9999%";
  if (share > 0.999) return `${Number((100 * share).toFixed(4))}%`;
  if (share < 0.001) return `${(100 * share).toPrecision(1)}%`;
  if (share < 0.0995) return `${(100 * share).toFixed(1)}%`;
  return share >= 0.995 ? `${Math.min(100 * share, 99.9).toFixed(1)}%` : percent0(share);
}

/**
 * Return the word for a number of things: `singular` for 1, `plural` for 0, for 2 and for more.
 * @param {number} number
 * @param {string} singular
 * @param {string} plural
 */
export function byNumber(number, singular, plural) {
  return number === 1 ? singular : plural;
}

/**
 * Return the verb after `share`: `singular` for 1, or for a part of 1.
 * @param {number} part
 * @param {number} all
 * @param {string} singular
 * @param {string} plural
 */
export function verbOf(part, all, singular, plural) {
  return part === 1 || all === 1 ? singular : plural;
}

/**
 * Format a part of a number of things, as in `646 of 2,000 points (32%)`.
 * @param {number} part
 * @param {number} all
 * @param {string} noun
 */
export function share(part, all, noun) {
  const ratio = part / all;
  const rounded = ratio > 0 && ratio < 0.01 ? "under 1%" : ratio > 0.99 && ratio < 1 ? "over 99%" : percent0(ratio);
  return `${counted(part)} of ${counted(all)} ${all === 1 ? noun : `${noun}s`} (${rounded})`;
}

/**
 * Whole per cents; a half goes to the even one, as in the text that the page begins with.
 * @param {number} ratio
 */
function percent0(ratio) {
  const below = Math.floor(100 * ratio);
  return `${100 * ratio - below === 0.5 ? below + (below % 2) : Math.round(100 * ratio)}%`;
}

/**
 * The probability that a flip probability leaves, never rounded to 0 or to 1.
 * @param {number} flip
 */
export function keptText(flip) {
  if (flip > 0 && flip < 1e-6) return "over 0.999999";
  return flip < 1 && flip > 0.999 ? "under 0.001" : short(1 - flip);
}

/**
 * The confidence of intervals in per cent, with all its digits.
 * @param {number} confidence
 */
export function percentOf(confidence) {
  return `${Number((100 * confidence).toPrecision(12))}%`;
}
