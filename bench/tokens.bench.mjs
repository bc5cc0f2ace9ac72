/**
 * Counting tokens, exactly and by estimate, beside others. Each is measured in processes of its own, by turns, so that what
 * the machine does besides meets all of them; figures are medians, and ratios those of neighbours.
 */

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompressSync } from "node:zlib";
import { estimateTokens, loadTokenizer } from "context-compactor/tokens";
import { estimateTokenCount } from "tokenx";
import { samples } from "../tests/support/corpus.mjs";
import { sizes } from "./size.mjs";

export { plot } from "./tokens/plot.mjs";

export const title = "Counting tokens (o200k_base), in texts of 33 kinds as messages have them";

const ROUNDS = 7;
const pairs = [
  ["exact", "gpt-tokenizer"],
  ["estimate", "tokenx"],
];
/** Others, of which one round is enough: they are many times slower. */
const alone = ["tiktoken", "js-tiktoken"];
/** Texts whose estimates are judged. */
const JUDGED = 3_300;

export async function run() {
  const rows = [];
  for (const names of pairs) {
    const rounds = [];
    for (let round = 0; round < ROUNDS; round++) rounds.push([await measure(names[0]), await measure(names[1])]);
    for (const [nth, name] of names.entries()) rows.push(row(name, rounds.map((round) => round[nth])));
    const ratio = (time) => median(rounds.map(([ours, theirs]) => time(theirs) / time(ours)));
    rows.push({
      case: `${names[0]}, times ${names[1]}`,
      "first (MB/s)": ratio(({ first }) => first),
      "again (MB/s)": ratio(({ warm }) => warm),
      "up to 32 characters (ns)": ratio(({ short }) => short),
      "loading, processor (ms)": ratio(({ init }) => init.cpu),
    });
  }
  for (const name of alone) rows.push(row(name, [await measure(name)]));
  for (const [part, { raw, brotli }] of Object.entries(await sizes())) {
    if (/tokenizer|base\.js/.test(part)) rows.push({ case: part.split(",")[0], "raw (KB)": raw / 1e3, "brotli (KB)": brotli / 1e3 });
  }
  return [...rows, ...(await errors()), ...families()];
}

/** Errors of estimates against the exact count, for each kind of text. */
async function errors() {
  const exact = await loadTokenizer(import("context-compactor-vocabularies/o200k_base"));
  const estimates = { estimate: (text) => estimateTokens(text), tokenx: estimateTokenCount, "characters / 4": (text) => text.length / 4 };
  const kinds = new Map();
  for (const { name, text } of samples(JUDGED)) {
    if (text === "") continue;
    if (!kinds.has(name)) kinds.set(name, []);
    kinds.get(name).push({ text, tokens: exact.count(text) });
  }
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  return Object.entries(estimates).map(([name, estimate]) => {
    const off = [...kinds].map(([kind, texts]) => {
      const of = texts.map(({ text, tokens }) => (Math.abs(estimate(text) - tokens) / tokens) * 100).sort((a, b) => a - b);
      return { kind, mean: mean(of), p95: of[Math.floor(of.length * 0.95)] };
    });
    const worst = off.reduce((one, other) => (other.mean > one.mean ? other : one));
    return {
      case: `error of ${name}`,
      "content, mean (%)": mean(off.map(({ mean }) => mean)),
      "content, p95 (%)": mean(off.map(({ p95 }) => p95)),
      "worst content (%)": worst.mean,
      worst: worst.kind,
    };
  });
}

/** The calibrated estimator's families: errors on held-out files, as `bench/fit` reported them, and sizes of their tables. */
function families() {
  const read = (path) => readFileSync(new URL(path, import.meta.url));
  const { families } = JSON.parse(read("reports/fit.json"));
  return Object.entries(families).map(([family, { content, script, conversation }]) => ({
    case: `estimate: ${family}`,
    "content, mean (%)": content.mean,
    "content, p95 (%)": content.p95,
    "worst content (%)": content.worst.mean,
    "scripts, mean (%)": script.mean,
    "worst script (%)": script.worst.mean,
    "50 messages (%)": conversation.mean,
    "brotli (KB)": brotliCompressSync(read(`../crates/estimator/tables/${family}.bin`)).length / 1e3,
  }));
}

function row(name, measured) {
  const of = (value) => median(measured.map(value));
  const append = of(({ append }) => append);
  return {
    case: name,
    "first (MB/s)": of(({ bytes, first }) => bytes / first / 1e3),
    "again (MB/s)": of(({ bytes, warm }) => bytes / warm / 1e3),
    "up to 32 characters (ns)": of(({ short }) => short),
    growth: of(({ growth }) => growth),
    "loading, processor (ms)": of(({ init }) => init.cpu),
    "loading (ms)": of(({ init }) => init.wall),
    "memory (MB)": of(({ init }) => init.memory),
    ...(append === undefined ? {} : { "appending to 100,000 characters (µs)": append }),
    tokens: of(({ tokens }) => tokens),
  };
}

async function measure(name) {
  const script = fileURLToPath(new URL("tokens/measure.mjs", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", script, name]);
  return JSON.parse(stdout);
}

function median(values) {
  return values.sort((a, b) => a - b)[values.length >> 1];
}
