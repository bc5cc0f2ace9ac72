/**
 * The exact tokenizers against the others on many texts: of every kind (`CC_TOKENIZER_MEGABYTES` for each encoding) and at
 * random (`CC_TOKENIZER_FUZZ`). Prints a line `count {…}` for each check.
 */

import { agree, names, open } from "../support/exact.mjs";
import { generator, samples } from "../support/corpus.mjs";
import { random as randomText } from "../support/unicode.mjs";

const megabytes = Number(process.env.CC_TOKENIZER_MEGABYTES ?? 50);
const fuzzed = Number(process.env.CC_TOKENIZER_FUZZ ?? 500_000);

/** Runs a check over texts; the first mismatches are shown, all are counted. */
function check(of, texts, run) {
  const counts = { check: "tokenizer", of, texts: 0, bytes: 0, failures: 0 };
  for (const text of texts) {
    counts.texts += 1;
    counts.bytes += Buffer.byteLength(text);
    try {
      run(text);
    } catch (error) {
      if (++counts.failures <= 3) console.log(error.message);
    }
  }
  console.log(`count ${JSON.stringify(counts)}`);
  return counts.failures;
}

function* ofEveryKind(bytes) {
  let left = bytes;
  for (const { text } of samples(Infinity, 2026)) {
    if (left <= 0) return;
    left -= Buffer.byteLength(text);
    yield text;
  }
}

function* atRandom(count) {
  const random = generator(2026);
  for (let nth = 0; nth < count; nth++) yield randomText(random);
}

let failures = 0;
for (const name of names) {
  const pair = await open(name);
  // gpt-tokenizer is the fast one of the others: the slow one takes what is at random.
  failures += check(`${name}, every kind`, ofEveryKind(megabytes * 1e6), (text) => agree(pair, text, ["third"]));
  failures += check(`${name}, at random`, atRandom(fuzzed), (text) => agree(pair, text, ["second"]));
  pair.free();
}
if (failures > 0) process.exitCode = 1;
