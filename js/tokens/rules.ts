/** What is counted by rule, by family: frames around texts, and media (`crates/core/src/tokens/overhead.rs`); and how far an
 *  estimate may be off (`bounds.rs`). */

import type { Family } from "./families.js";
import type { Media } from "./read.js";

interface Rules {
  message: number;
  call: number;
  /** For each argument of a call. */
  argument: number;
  result: number;
  picture: (width: number, height: number) => number;
  /** Of a picture whose size is not known. */
  largePicture: number;
  /** Of a page of a document. */
  page: number;
}

const OPENAI: Rules = { message: 4, call: 8, argument: 0, result: 6, picture: tilesOf512, largePicture: 1_600, page: 1_500 };
const CLAUDE: Rules = { ...OPENAI, call: 36, argument: 10, picture: byPixels(1_568, 1_600) };

const OWN: Partial<Record<Family, Rules>> = {
  claude3: CLAUDE,
  claude47: { ...CLAUDE, picture: byPixels(2_576, 4_784), largePicture: 4_784 },
  gemini: { ...OPENAI, message: 0, call: 0, result: 0, picture: tilesOf768, largePicture: 1_548, page: 258 },
};

export function rulesOf(family: Family): Rules {
  return OWN[family] ?? OPENAI;
}

/** Tokens of a call beside its name and its input. */
export function tokensOfCall({ call, argument }: Rules, input: string): number {
  return argument === 0 ? call : call + argument * namesIn(input);
}

/** Names of an object, JSON text: colons at its own level. */
function namesIn(json: string): number {
  let [depth, found, isQuoted] = [0, 0, false];
  for (let at = 0; at < json.length; at++) {
    const sign = json[at];
    if (sign === '"') isQuoted = !isQuoted;
    else if (isQuoted) at += Number(sign === "\\");
    else if (sign === "{" || sign === "[") depth++;
    else if (sign === "}" || sign === "]") depth = Math.max(0, depth - 1);
    else if (sign === ":" && depth === 1) found++;
  }
  return found;
}

/** Tokens of media. */
export function tokensOfMedia({ picture, largePicture, page }: Rules, { kind, bytes, pixels }: Media): number {
  if (kind === "image") return pixels ? picture(Math.max(1, pixels[0]), Math.max(1, pixels[1])) : largePicture;
  // A page is taken as 50 KB, a second of speech as 16 KB with 32 tokens, one of video as 250 KB with 300.
  if (kind === "document") return (Math.floor(bytes / 50_000) + 1) * page;
  return kind === "audio" ? Math.max(32, Math.floor(bytes / 500)) : Math.max(300, Math.floor(bytes / 833));
}

/** Anthropic's rule: made smaller until the longer side has so many pixels, then 750 of them a token, up to a most. */
function byPixels(longest: number, most: number): Rules["picture"] {
  return (...size) => {
    const [width, height] = within(size, longest);
    return Math.min(most, Math.max(1, Math.floor((width * height) / 750)));
  };
}

/** OpenAI's rule: within 2,048 × 2,048, the shorter side made at most 768, then tiles of 512 × 512. */
function tilesOf512(...size: [number, number]): number {
  const inside = within(size, 2_048);
  const shorter = Math.min(...inside);
  const [across, down] = inside.map((side) => Math.ceil(Math.max(1, shorter > 768 ? Math.floor((side * 768) / shorter) : side) / 512));
  return 85 + 170 * (across as number) * (down as number);
}

/** Google's rule: tiles of 768 × 768, and a small picture is one. */
function tilesOf768(width: number, height: number): number {
  return 258 * (width <= 384 && height <= 384 ? 1 : Math.ceil(width / 768) * Math.ceil(height / 768));
}

/** The size of a picture whose longer side is made at most `longest`. */
function within(size: [number, number], longest: number): [number, number] {
  const longer = Math.max(...size);
  if (longer <= longest) return size;
  const [width, height] = size.map((side) => Math.max(1, Math.floor((side * longest) / longer)));
  return [width as number, height as number];
}

/** What a family leans by in all texts, at most. */
const FLOOR = 0.018;
/** A family's spread, in thousandths of a token: of each token of ASCII text, of each of other text, of the root of the tokens. */
const SPREADS: Record<Family, [plain: number, other: number, root: number]> = {
  o200k: [21, 75, 1_850],
  cl100k: [18, 15, 2_400],
  claude3: [66, 155, 1_200],
  claude47: [51, 85, 1_400],
  gemini: [33, 45, 1_750],
  llama3: [42, 35, 1_800],
  qwen3: [36, 90, 1_550],
};

/** Tokens of texts, the squares of each text's, their bytes, and those of characters beyond ASCII. */
interface Counted {
  texts: number;
  squares: number;
  bytes: number;
  beyond: number;
}

/** How far `tokens` may be off, of which those texts are a part: by half of what is counted by rule, and by what bounds.rs says. */
export function offBy(family: Family, tokens: number, { texts, squares, bytes, beyond }: Counted): number {
  const [plain, other, root] = SPREADS[family];
  const share = Math.min(1, beyond / Math.max(1, bytes));
  const lean = (plain * (1 - share) + other * share) / 1_000;
  const words = root / 1_000;
  const kinds = Math.sqrt(lean * lean * squares + FLOOR * FLOOR * texts * texts);
  return Math.floor(kinds + words * Math.sqrt(texts)) + 1 + Math.floor(Math.max(0, tokens - texts) / 2);
}
