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

/** Units of a text that are counted as they are; of a longer one the host encodes pieces of so many, which is faster. */
const SHORT = 48;
const PIECE = 1 << 14;

const encoder = new TextEncoder();
const bytes = new Uint8Array(3 * PIECE);
/** Called so that hosts need not know how a text is kept: there are more ways than a call by name remembers. */
const { charCodeAt } = String.prototype;

/** Estimated tokens of a text: 0 of the empty one, at least 1 of any other. */
export function tokensOf(text: string, weights: Weights): number {
  return text.length > SHORT ? tokensOfLong(text, weights) : tokensOfShort(text, weights);
}

function tokensOfLong(text: string, { pairs, contexts, runs }: Weights): number {
  const { length } = text;
  let last = 0;
  let context = BEFORE;
  let run = 0;
  let units = 0;
  let inRuns = 0;
  for (let at = 0, end; at < length; at = end) {
    end = endOfPiece(text, at);
    const { written } = encoder.encodeInto(end - at === length ? text : text.slice(at, end), bytes);
    for (let nth = 0; nth < written; nth++) {
      const byte = bytes[nth] as number;
      // Beyond ASCII a run is of characters of three bytes.
      const goesOn = byte === ((last >> ((byte >> 7) << 4)) & 0xff);
      last = (last << 8) | byte;
      context = ((context << 3) | (classes[byte] as number)) & 0xfff;
      run = goesOn ? run + 1 : 0;
      if (run < RUN) units += (pairs[last & 0xffff] as number) + (contexts[context] as number);
      else if (byte < 0x80) inRuns += runs[byte] as number;
      else if (((last >> 16) & 0xff) >= 0xe0) inRuns += runs[ofThree(last)] as number;
    }
  }
  return total(units, inRuns);
}

/** Where the piece of a text ends that begins at `at`: not within a pair of surrogates. */
function endOfPiece(text: string, at: number): number {
  const end = at + PIECE;
  if (end >= text.length) return text.length;
  const unit = charCodeAt.call(text, end - 1);
  return unit >= 0xd800 && unit < 0xdc00 ? end - 1 : end;
}

/** Where the weight of a character of three bytes is, the last of which are these: those that rules and bars are made of have one each. */
function ofThree(last: number): number {
  return 0x80 | ((13 * (last >> 16) + 118 * (last >> 8) + last) & 0x7f);
}

/** Tokens of a text that is not empty. */
function total(units: number, inRuns: number): number {
  return Math.max(1, Math.floor((units * (RUN_SCALE / SCALE) + inRuns) / RUN_SCALE + 0.5));
}

function tokensOfShort(text: string, { pairs, contexts, runs }: Weights): number {
  const { length } = text;
  // The last four bytes, their classes, and how many bytes go on with a run. No list: hosts are slow to see through one here.
  let last = 0;
  let context = BEFORE;
  let run = 0;
  let units = 0;
  let inRuns = 0;
  for (let at = 0; at < length; at++) {
    let code = charCodeAt.call(text, at);
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
        const next = at + 1 < length ? charCodeAt.call(text, at + 1) : 0;
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
      // The third of three bytes.
      else if (((last >> 16) & 0xff) >= 0xe0) inRuns += runs[ofThree(last)] as number;
      if (rest === 0) break;
      code = rest & 0xff;
      rest >>>= 8;
    }
  }
  return length && total(units, inRuns);
}

/** Characters of a text, of which a lone surrogate is one. */
export function charsOf(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
