/** Bytes, and texts in them: where there is no `Buffer`. */

const encoder = new TextEncoder();
const [utf8, ascii] = [new TextDecoder("utf-8", { ignoreBOM: true }), new TextDecoder("latin1")];

export function bytesOf(text: string): Uint8Array {
  return encoder.encode(text);
}

export function textOf(bytes: Uint8Array): string {
  return utf8.decode(bytes);
}

/** A line of a journal: one character for each byte. */
export function asciiOf(bytes: Uint8Array, start = 0, end = bytes.length): string {
  return ascii.decode(bytes.subarray(start, end));
}

/** All of them in one piece. */
export function joined(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Whether `text` (ASCII) is in `bytes` at `at`, and nothing is missing of it. */
export function has(bytes: Uint8Array, text: string, at = 0): boolean {
  if (at + text.length > bytes.length) return false;
  for (let nth = 0; nth < text.length; nth++) if (bytes[at + nth] !== text.charCodeAt(nth)) return false;
  return true;
}

/** Where `text` (ASCII) is first; -1 where it is not. */
export function indexOf(bytes: Uint8Array, text: string): number {
  const first = text.charCodeAt(0);
  let at = bytes.indexOf(first);
  while (at >= 0 && !has(bytes, text, at)) at = bytes.indexOf(first, at + 1);
  return at;
}
