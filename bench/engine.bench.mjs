/**
 * What the engine itself takes, beside libraries that keep a context small. Each measurement is a process of its own, by
 * turns; figures are medians of processor time, which is the process's own, and ratios those of neighbours.
 * Every one is taken again at ten times the size: `exponent` is the growth, 0 for a cost that does not depend on the size
 * and 1 for one that is proportional to it.
 *
 * What is compared is what each library does by itself before a model is called. `engine` appends (reading, checking and
 * counting the messages, hashing the rows of the log and writing them to a store in memory) and prepares (the ladder, the
 * provider's rules). The others do less: none keeps a log, checks a provider's rules or keeps what it
 * removes. They count four characters as a token, the engine by its calibrated tables. In a session `langchain` is the hook of
 * `summarizationMiddleware`, without its agent; `deepagents` the hook of its own, its backend in memory; `ai-sdk` is
 * `pruneMessages`, which drops tool calls and summarises nothing, and a count of what is left. The model's answer is at
 * hand in all of them.
 *
 * The others are installed on demand, from `engine/peers`. `CC_BROWSERS=` leaves the browser out.
 */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const title = "The engine without model, its store in memory, beside LangChain.js, the AI SDK and deepagents";

const ROUNDS = Number(process.env.CC_ROUNDS ?? 5);
const here = (path) => fileURLToPath(new URL(`engine/${path}`, import.meta.url));
const exec = promisify(execFile);

export async function run() {
  await peers();
  return [...(await start()), ...(await turns()), ...(await sessions()), ...(await compactions()), ...(await memory())];
}

async function peers() {
  if (existsSync(here("peers/node_modules/.package-lock.json"))) return;
  await exec("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"], { cwd: here("peers") });
}

async function measure(...given) {
  const { stdout } = await exec(process.execPath, ["--expose-gc", here("measure.mjs"), ...given.map(String)]);
  return JSON.parse(stdout);
}

/** Rounds in which every case has its turn. */
async function rounds(cases, count = ROUNDS) {
  const taken = [];
  for (let round = 0; round < count; round++) {
    const one = {};
    for (const [name, given] of Object.entries(cases)) one[name] = await measure(...given);
    taken.push(one);
  }
  return taken;
}

async function start() {
  const taken = await rounds({ node: ["start", "engine", 0] });
  const row = (name, values) => ({
    case: `import to a first result, ${name}`,
    "time (ms)": median(values.map(({ first }) => first)),
    "processor (ms)": median(values.map(({ cpu }) => cpu)),
    "with a session (ms)": median(values.map(({ prepared }) => prepared)),
    "bar (ms)": 30,
    load: load(),
  });
  const rows = [row("Node", taken.map(({ node }) => node))];
  const names = process.env.CC_BROWSERS === undefined ? ["chrome"] : process.env.CC_BROWSERS.split(",").filter(Boolean);
  for (const name of names) rows.push(row(name, await inBrowser(name)));
  return rows;
}

/** The same in a page: the module from a server on this machine, and nothing of it in a cache. */
async function inBrowser(name) {
  const { bundle } = await import("../tests/support/bundle.mjs");
  const { launch, serve } = await import("../tests/support/session.mjs");
  const folder = await mkdtemp(join(tmpdir(), "context-compactor-bench-"));
  await bundle(`export * from "context-compactor"; export * from "context-compactor/tokens";`, join(folder, "engine.js"));
  const page = `<!doctype html><title>bench</title><link rel="icon" href="data:,">`;
  const server = await serve({ "/": page, "/js/": folder });
  const session = await launch(name);
  const taken = [];
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const { page } = await session.openPage(`${server.origin}/`);
      const once = async (round) => {
        const from = performance.now();
        const { estimateTokens, memoryStore, openSession } = await import(`/js/engine.js?${round}`);
        estimateTokens([{ role: "user", content: "How are you?" }]);
        const first = performance.now() - from;
        const session = await openSession({ store: memoryStore() });
        await session.append({ role: "user", content: "How are you?" });
        await session.prepare();
        return { first, prepared: performance.now() - from };
      };
      taken.push(await page.evaluate(once, round));
      await page.close();
    }
  } finally {
    await session.close();
    await server.close();
    await rm(folder, { recursive: true });
  }
  return taken;
}

const LENGTHS = [100, 1_000, 2_000, 10_000, 20_000, 100_000];

async function turns() {
  const cases = (lengths, theirs) => ({
    ...Object.fromEntries(lengths.map((length) => [length, ["turn", "engine", length]])),
    [`langchain ${theirs}`]: ["turn", "langchain", theirs],
  });
  // Long histories take their time to fill.
  const taken = await rounds(cases(LENGTHS.slice(0, 3), 2_000));
  const long = await rounds(cases(LENGTHS.slice(3), 20_000), 1);
  const having = (name) => [...taken, ...long].filter((round) => round[name]);
  const of = (name) => median(having(name).map((round) => round[name].took));
  const rows = LENGTHS.map((length) => ({
    case: `append + prepare, ${length} messages: engine`,
    "processor (ms)": of(length),
    ...(length === 100_000 ? { exponent: exponent(of(100), of(100_000), 1_000), "bar (exponent)": 0 } : {}),
  }));
  for (const length of [2_000, 20_000]) {
    const name = `langchain ${length}`;
    rows.push({
      case: `append + trimMessages + count, ${length} messages: LangChain.js`,
      "processor (ms)": of(name),
      "times the engine's": median(having(name).map((round) => round[name].took / round[length].took)),
      ...(length === 2_000 ? { "bar (times)": 20 } : { exponent: exponent(of("langchain 2000"), of(name), 10) }),
    });
  }
  return rows.map((row) => ({ ...row, load: load() }));
}

async function sessions() {
  const rows = [];
  const before = {};
  for (const size of [100, 1_000]) {
    const ways = ["engine", "langchain", "deepagents", "ai-sdk"];
    const taken = await rounds(Object.fromEntries(ways.map((way) => [way, ["session", way, size]])), size > 500 ? 1 : 3);
    for (const way of ways) {
      const took = median(taken.map((round) => round[way].took));
      rows.push({
        case: `session of ${size} turns, ${size / 1_000}M tokens: ${way}`,
        "processor (ms)": took,
        compactions: taken[0][way].compactions,
        ...(way === "engine" ? {} : { "times the engine's": median(taken.map((round) => round[way].took / round.engine.took)) }),
        ...(way === "engine" ? {} : { "bar (times)": 20 }),
        ...(before[way] ? { exponent: exponent(before[way], took, 10) } : {}),
        load: load(),
      });
      before[way] = took;
    }
  }
  return rows;
}

async function compactions() {
  const sizes = [100_000, 1_000_000, 10_000_000];
  const rows = [];
  for (const size of sizes) {
    const taken = await rounds({ engine: ["compaction", "engine", size] }, size > 5_000_000 ? 1 : 3);
    const took = median(taken.map(({ engine }) => engine.took));
    rows.push({
      case: `compaction of ${size / 1e6}M tokens`,
      "processor (ms)": took,
      "longest block (ms)": median(taken.map(({ engine }) => engine.longest)),
      ...(size === 1_000_000 ? { "bar (ms)": 300, "bar (longest, ms)": 50 } : {}),
      ...(rows.length > 0 ? { exponent: exponent(rows.at(-1)["processor (ms)"], took, 10) } : {}),
      load: load(),
    });
  }
  return rows;
}

async function memory() {
  const { bytes, peak, tenth, last } = await measure("memory", "engine", 1_000);
  return [
    {
      case: "memory of the module",
      "context (MB)": bytes / 1e6,
      "with it (MB)": peak / 1e6,
      "bar (MB)": (2 * bytes) / 1e6 + 8,
      "after 100 compactions (MB)": tenth / 1e6,
      "after 1,000 (MB)": last / 1e6,
    },
  ];
}

function exponent(small, large, times) {
  return Number((Math.log(large / small) / Math.log(times)).toFixed(2));
}

function load() {
  return Number(loadavg()[0].toPrecision(2));
}

function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  return Number(sorted[values.length >> 1]?.toPrecision(3));
}
