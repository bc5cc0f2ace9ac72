/** The size of a picture by its first bytes (`crates/wire/src/picture.rs`): of base64 only those that are looked at are decoded. */

import { given, isObject, isWhole } from "./values.js";

export type Pixels = readonly [width: number, height: number];

/** Bytes of a file by their places; what is not there is NaN, and so is every number made of it. */
type ByteAt = (at: number) => number;

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/** Segments of a JPEG before its size: metadata, thumbnails. */
const MOST_SEGMENTS = 200;

/** Width and height of a PNG, GIF, WebP or JPEG, in a payload or in the fields that hold one; undefined for anything else. */
export function pixelsOf(payload: unknown): Pixels | undefined {
  if (isObject(payload)) return pixelsOf(given(payload, "data")) ?? pixelsOf(given(payload, "url"));
  if (payload instanceof Uint8Array) return sizeOf((at) => payload[at] ?? NaN);
  if (!isWhole(payload)) return undefined;
  const start = payload.startsWith("data:") ? payload.indexOf(";base64,") + 8 : 0;
  if (start === 7) return undefined;
  const digit = (at: number): number => {
    const found = DIGITS.indexOf(payload.charAt(start + at).replace("-", "+").replace("_", "/") || " ");
    return found < 0 ? NaN : found;
  };
  return sizeOf((at) => {
    const [place, nth] = [Math.floor(at / 3) * 4, at % 3];
    return ((digit(place + nth) * 4 ** (nth + 1)) % 256) + Math.floor(digit(place + nth + 1) / 4 ** (2 - nth));
  });
}

function sizeOf(byte: ByteAt): Pixels | undefined {
  const big = (at: number, length: number): number => (length === 0 ? 0 : big(at, length - 1) * 256 + byte(at + length - 1));
  const little = (at: number, length: number): number => (length === 0 ? 0 : little(at + 1, length - 1) * 256 + byte(at));
  const found = (): Pixels | undefined => {
    const start = big(0, 4);
    // PNG: the first chunk.
    if (start === 0x89504e47) return [big(16, 4), big(20, 4)];
    // GIF8.
    if (start === 0x47494638) return [little(6, 2), little(8, 2)];
    // RIFF.
    if (start === 0x52494646) return webp();
    return big(0, 3) === 0xffd8ff ? jpeg() : undefined;
  };
  const webp = (): Pixels | undefined => {
    const kind = big(12, 4);
    const bits = little(21, 4);
    if (kind === 0x56503820) return [little(26, 2) % 0x4000, little(28, 2) % 0x4000];
    if (kind === 0x5650384c) return [(bits % 0x4000) + 1, (Math.floor(bits / 0x4000) % 0x4000) + 1];
    return kind === 0x56503858 ? [little(24, 3) + 1, little(27, 3) + 1] : undefined;
  };
  const jpeg = (): Pixels | undefined => {
    let at = 2;
    for (let nth = 0; nth < MOST_SEGMENTS; nth++) {
      const marker = big(at, 2);
      // A frame, of whatever coding; C4, C8 and CC are none.
      if (marker >= 0xffc0 && marker <= 0xffcf && ![0xffc4, 0xffc8, 0xffcc].includes(marker)) return [big(at + 7, 2), big(at + 5, 2)];
      if (!(marker > 0xff00)) break;
      // 0xffff is padding.
      at += marker === 0xffff ? 1 : 2 + Math.max(big(at + 2, 2), 2);
    }
    return undefined;
  };
  const size = found();
  return size?.some(Number.isNaN) ? undefined : size;
}
