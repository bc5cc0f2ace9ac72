/** The estimate of a text: a sum of weights over the bytes of its UTF-8, as `crates/estimator` has it. */

/** A family's weights. */
export interface Weights {
  /** Of each pair of bytes, the first of which is the higher. */
  pairs: Uint8Array;
  /** Of the classes of the last four bytes, three bits each, the last one lowest. */
  contexts: Uint8Array;
}

/** Units of a weight in one token. */
const SCALE = 64;
/** The classes of what is before the first byte. */
const BEFORE = 0o1111;

/** Space, line ends and other control characters, digits, small letters, capitals, other ASCII. */
const KINDS = [/ /, /[\0-\x1f]/, /\d/, /[a-z]/, /[A-Z]/, /[^]/];
/** The class of each byte: those, then bytes that go on with a character, and those that begin one. */
const classes = Uint8Array.from({ length: 256 }, (_, byte) => {
  if (byte > 0x7f) return byte < 0xc0 ? 6 : 7;
  return KINDS.findIndex((kind) => kind.test(String.fromCharCode(byte)));
});

/** Estimated tokens of a text: 0 of the empty one, at least 1 of any other. */
export function tokensOf(text: string, { pairs, contexts }: Weights): number {
  const { length } = text;
  let [pair, context, units, at] = [0, BEFORE, 0, 0];
  while (at < length) {
    let code = text.charCodeAt(at++);
    // The character's bytes beyond the first, the next one lowest; none of them is zero.
    let rest = 0;
    if (code > 0x7f) {
      if (code < 0x800) {
        rest = 0x80 | (code & 0x3f);
        code = 0xc0 | (code >> 6);
      } else {
        if (code >= 0xd800 && code < 0xe000) {
          const next = at < length ? text.charCodeAt(at) : 0;
          // A lone surrogate has no UTF-8.
          code = code < 0xdc00 && next >= 0xdc00 && next < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (next - 0xdc00) : 0xfffd;
          if (code > 0xffff) at++;
        }
        rest = 0x80 | ((code >> 6) & 0x3f) | ((0x80 | (code & 0x3f)) << 8);
        if (code > 0xffff) rest = 0x80 | ((code >> 12) & 0x3f) | (rest << 8);
        code = code > 0xffff ? 0xf0 | (code >> 18) : 0xe0 | (code >> 12);
      }
    }
    for (;;) {
      pair = ((pair << 8) | code) & 0xffff;
      context = ((context << 3) | (classes[code] as number)) & 0xfff;
      units += (pairs[pair] as number) + (contexts[context] as number);
      if (rest === 0) break;
      code = rest & 0xff;
      rest >>>= 8;
    }
  }
  return length && Math.max(1, Math.floor(units / SCALE + 0.5));
}

/** Characters of a text, of which a lone surrogate is one. */
export function charsOf(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
