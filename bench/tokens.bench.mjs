/**
 * Counting tokens, exactly and by estimate, beside others. Each is measured in processes of its own, by turns, so that what
 * the machine does besides meets all of them; figures are medians, and ratios those of neighbours.
 */

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompressSync } from "node:zlib";
import { sizes } from "./size.mjs";

export const title = "Counting tokens (o200k_base), in texts of 33 kinds as messages have them";

const ROUNDS = 7;
const pairs = [
  ["exact", "gpt-tokenizer"],
  ["estimate", "tokenx"],
];

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
  for (const [part, { raw, brotli }] of Object.entries(sizes())) {
    if (/tokenizer|base\.js/.test(part)) rows.push({ case: part.split(",")[0], "raw (KB)": raw / 1e3, "brotli (KB)": brotli / 1e3 });
  }
  return [...rows, ...families()];
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
