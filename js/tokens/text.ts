/** The estimate of a text: a sum of weights over the bytes of its UTF-8, as `crates/estimator` has it. */

/** A family's weights. */
export interface Weights {
  /** Of each pair of bytes, the first of which is the higher. */
  pairs: Uint8Array;
  /** Of the classes of the last four bytes, three bits each, the last one lowest. */
  contexts: Uint8Array;
  /** Of a character that goes on with a run: one of ASCII, and at its end one of three bytes. */
  runs: Uint16Array;
}

/** Units of a weight in one token, and of a weight of runs. */
const SCALE = 64;
const RUN_SCALE = 1_024;
/** Bytes that go on with a run before it has weights of its own. */
const RUN = 7;
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
export function tokensOf(text: string, { pairs, contexts, runs }: Weights): number {
  const { length } = text;
  // The last four bytes, their classes, and how many bytes go on with a run. No list: hosts are slow to see through one here.
  let last = 0;
  let context = BEFORE;
  let run = 0;
  let units = 0;
  let inRuns = 0;
  for (let at = 0; at < length; at++) {
    let code = text.charCodeAt(at);
    if (code < 0x80) {
      run = code === (last & 0xff) ? run + 1 : 0;
      last = (last << 8) | code;
      context = ((context << 3) | (classes[code] as number)) & 0xfff;
      if (run < RUN) units += (pairs[last & 0xffff] as number) + (contexts[context] as number);
      else inRuns += runs[code] as number;
      continue;
    }
    // The character's bytes beyond the first, the next one lowest; none of them is zero.
    let rest;
    if (code < 0x800) {
      rest = 0x80 | (code & 0x3f);
      code = 0xc0 | (code >> 6);
    } else {
      if (code >= 0xd800 && code < 0xe000) {
        const next = at + 1 < length ? text.charCodeAt(at + 1) : 0;
        // A lone surrogate has no UTF-8.
        code = code < 0xdc00 && next >= 0xdc00 && next < 0xe000 ? 0x10000 + ((code - 0xd800) << 10) + (next - 0xdc00) : 0xfffd;
        if (code > 0xffff) at++;
      }
      rest = 0x80 | ((code >> 6) & 0x3f) | ((0x80 | (code & 0x3f)) << 8);
      if (code > 0xffff) rest = 0x80 | ((code >> 12) & 0x3f) | (rest << 8);
      code = code > 0xffff ? 0xf0 | (code >> 18) : 0xe0 | (code >> 12);
    }
    for (;;) {
      run = code === ((last >> 16) & 0xff) ? run + 1 : 0;
      last = (last << 8) | code;
      context = ((context << 3) | (classes[code] as number)) & 0xfff;
      if (run < RUN) units += (pairs[last & 0xffff] as number) + (contexts[context] as number);
      // The third of three bytes: those that rules and bars are made of have a weight each.
      else if (((last >> 16) & 0xff) >= 0xe0) inRuns += runs[0x80 | ((13 * (last >> 16) + 118 * (last >> 8) + last) & 0x7f)] as number;
      if (rest === 0) break;
      code = rest & 0xff;
      rest >>>= 8;
    }
  }
  return length && Math.max(1, Math.floor((units * (RUN_SCALE / SCALE) + inRuns) / RUN_SCALE + 0.5));
}

/** Characters of a text, of which a lone surrogate is one. */
export function charsOf(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
