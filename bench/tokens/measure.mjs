/**
 * One counter in a process of its own: `node measure.mjs NAME`. Prints what was measured as JSON: loading it until the first
 * count, texts that it never saw after a warm-up of 330 others, the same again (the median of eleven times, by when it is compiled), their first
 * characters alone (up to 32), how time grows with a text, and appending. Times are of the processor, in ms.
 */

import { samples } from "../../tests/support/corpus.mjs";

const WARM_UP = 330;
const TEXTS = 3_300;
const PASSES = 11;
const APPENDS = 20_000;
const SHORT = 32;
const SHORT_PASSES = 400;
const LONG = 1_000_000;

const counters = {
  async exact() {
    const { loadTokenizer } = await import("context-compactor/tokens");
    return measured(() => loadTokenizer(import("context-compactor-vocabularies/o200k_base")), (tokenizer) => (text) => tokenizer.count(text));
  },
  "gpt-tokenizer": () =>
    measured(
      () => import("gpt-tokenizer/encoding/o200k_base"),
      ({ countTokens }) => (text) => countTokens(text, { disallowedSpecial: new Set() }),
    ),
  tiktoken: () =>
    measured(
      async () => (await import("tiktoken")).get_encoding("o200k_base"),
      (encoding) => (text) => encoding.encode(text, [], []).length,
    ),
  "js-tiktoken": () =>
    measured(
      async () => (await import("js-tiktoken")).getEncoding("o200k_base"),
      (encoding) => (text) => encoding.encode(text, [], []).length,
    ),
  async estimate() {
    const { estimateTokens } = await import("context-compactor/tokens");
    return measured(() => estimateTokens, (estimate) => (text) => estimate(text));
  },
  tokenx: () => measured(() => import("tokenx"), ({ estimateTokenCount }) => (text) => estimateTokenCount(text)),
};

async function measured(load, counting) {
  globalThis.gc();
  const [memory, wall, cpu] = [process.memoryUsage.rss(), performance.now(), process.cpuUsage()];
  const loaded = await load();
  const count = counting(loaded);
  count("Hello");
  const init = { wall: performance.now() - wall, cpu: ms(cpu), memory: (process.memoryUsage.rss() - memory) / 1e6 };
  return { loaded, count, init };
}

function ms(since) {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1_000;
}

const { loaded, count, init } = await counters[process.argv[2]]();
const all = [...samples(WARM_UP + TEXTS)].map(({ text }) => text);
const texts = all.slice(WARM_UP);
const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
let tokens = 0;
const pass = () => {
  const since = process.cpuUsage();
  tokens = 0;
  for (const text of texts) tokens += count(text);
  return ms(since);
};
for (const text of all.slice(0, WARM_UP)) count(text);
const first = pass();
const warm = Array.from({ length: PASSES }, pass).sort((a, b) => a - b)[PASSES >> 1];
// As parsing leaves them: a slice of a long text is another thing for the host.
const beginnings = texts.map((text, nth) => JSON.parse(JSON.stringify(text.slice(0, 4 + (nth % (SHORT - 3))))));
for (const text of beginnings) count(text);
const since = process.cpuUsage();
for (let nth = 0; nth < SHORT_PASSES; nth++) for (const text of beginnings) count(text);
const short = (ms(since) / SHORT_PASSES / beginnings.length) * 1e6;
/** How time grows with the length of one text: 1 where twice the text takes twice the time. */
const whole = texts.join("\n").slice(0, LONG);
const timed = (text) => {
  const since = process.cpuUsage();
  count(text);
  return ms(since);
};
timed(whole);
const growth = Math.log10(timed(whole) / (timed(whole.slice(0, LONG / 10)) || 0.001));
let append;
if (loaded.counter) {
  const counter = loaded.counter();
  counter.append(texts.join("").slice(0, 100_000));
  const since = process.cpuUsage();
  for (let nth = 0, length = counter.count; nth < APPENDS; nth++) {
    counter.append([" the", " win", "dow\n", "上下", " 42"][nth % 5]);
    if (counter.count < length) throw new Error("a count fell");
  }
  append = (ms(since) / APPENDS) * 1_000;
}
console.log(JSON.stringify({ init, bytes, tokens, first, warm, short, growth, append }));
