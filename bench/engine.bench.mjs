/**
 * What the engine itself takes, beside libraries that keep a context small and beside the least that a log takes. Each
 * measurement is a process of its own, by turns; figures are medians of processor time, which is the process's own, and
 * ratios those of neighbors. `exponent` is the growth since the size before: 0 for a cost that does not depend on the size,
 * 1 for one that is proportional to it.
 *
 * What is compared is what each library does by itself before a model is called; the model's answer is at hand in all of
 * them. `engine` appends (reading, checking and counting the messages, hashing the rows of the log and writing them to a
 * store in memory) and prepares (the ladder, the provider's rules). The others do less: none keeps a log, checks a
 * provider's rules or keeps what it removes. They count four characters as a token, the engine by its calibrated tables.
 * `langchain` is the hook of `summarizationMiddleware`, without its agent; `deepagents` the hook of its own, its backend in
 * memory; `ai-sdk` is `pruneMessages`, which drops tool calls and summarizes nothing, and a count of what is left.
 *
 * Libraries that compact less often pay for it with longer prompts, so that sums at different counts say nothing: the others'
 * triggers are lowered until they compact as often as the engine. `total` is turns × per turn + compactions × per compaction.
 * `floor` writes each message as JSON into a buffer, counts, hashes and keeps it, and looks once for names in it.
 *
 * The others are installed on demand, from `engine/peers`. `CC_BROWSERS=` leaves the browser out; recorded sessions are
 * left out where they are not there. A run takes under 10 minutes.
 */

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { transcripts } from "../tests/support/transcripts.mjs";
import { RECORDED } from "./engine/sessions.mjs";

export const title = "The engine without model, its store in memory, beside LangChain.js, the AI SDK and deepagents";

const ROUNDS = Number(process.env.CC_ROUNDS ?? 3);
const here = (path) => fileURLToPath(new URL(`engine/${path}`, import.meta.url));
const exec = promisify(execFile);

export async function run() {
  await peers();
  const rows = [...(await sessions(1_000)), ...(await growth())];
  if (transcripts(RECORDED)) rows.push(...(await sessions(3_000, "recorded")));
  rows.push(...(await start()), ...(await turns()), ...(await openings()), ...(await compactions()), ...(await memory()));
  return rows;
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

/** Sessions of so many turns, by the engine and by the others at as many compactions; the AI SDK has none. */
async function sessions(turns, source) {
  const { compactions } = await measure("session", "engine", turns, JSON.stringify({ source }));
  const triggers = { langchain: undefined, deepagents: undefined };
  for (const name of Object.keys(triggers)) triggers[name] = await triggerFor(name, turns, source, compactions);
  const ways = ["engine", "langchain", "deepagents", "ai-sdk"];
  const given = (way) => ["session", way, turns, JSON.stringify({ source, trigger: triggers[way] })];
  const least = ["floor", "floor", turns, JSON.stringify({ source })];
  const taken = await rounds({ ...Object.fromEntries(ways.map((way) => [way, given(way)])), floor: least });
  const of = (way, key) => median(taken.map((round) => round[way][key]));
  const times = (way, other) => median(taken.map((round) => round[way].took / round[other].took));
  const rows = ways.map((way) => ({
    case: `${turns} ${source ?? "made up"} turns: ${way}`,
    compactions: taken[0][way].compactions,
    "per turn (ms)": of(way, "perTurn"),
    "per compaction (ms)": way === "ai-sdk" ? undefined : of(way, "perCompaction"),
    "total (ms)": of(way, "took"),
    "times the floor": times(way, "floor"),
    ...(way === "engine" ? { bars: "turn 0.2 ms, compaction 2.5 ms, floor × 3" } : { "engine: times this": times("engine", way) }),
    load: load(),
  }));
  return [...rows, { case: `${turns} ${source ?? "made up"} turns: floor`, "total (ms)": of("floor", "took"), load: load() }];
}

/** At how many tokens a library has to compact to do it as often as the engine, by a tenth. */
async function triggerFor(name, turns, source, wanted) {
  let [low, high] = [2_000, 128_000];
  for (let tries = 0; tries < 12; tries++) {
    const trigger = Math.round((low + high) / 2);
    const { compactions } = await measure("session", name, turns, JSON.stringify({ source, trigger }));
    if (Math.abs(compactions - wanted) <= wanted / 10) return trigger;
    if (compactions > wanted) low = trigger;
    else high = trigger;
  }
  throw new Error(`${name} does not compact ${wanted} times in ${turns} turns at any trigger`);
}

/** Longer and longer sessions, each opened again at its end. */
async function growth() {
  const [rows, openings] = [[], []];
  let [before, first] = [];
  for (const turns of [625, 1_250, 2_500, 5_000, 10_000]) {
    const { took, compactions, perTurn, perCompaction, again } = await measure("session", "engine", turns);
    const [opened, prepared, compacted] = again;
    const grown = before === undefined ? {} : { exponent: exponent(before, took, 2), "bar (exponent)": 1.05 };
    const times = { "per turn (ms)": perTurn, "per compaction (ms)": perCompaction, "total (ms)": took };
    rows.push({ case: `${turns} turns in one session`, compactions, ...times, ...grown, load: load() });
    const flat = first === undefined ? {} : { exponent: exponent(first.took, opened + prepared, turns / first.turns), "bar (exponent)": 0 };
    const laps = { "open (ms)": opened, "first prompt (ms)": prepared, "first compaction (ms)": compacted };
    openings.push({ case: `${turns} turns, compacted on the way: opened again`, ...laps, ...flat, load: load() });
    before = took;
    first ??= { took: opened + prepared, turns };
  }
  return [...rows, ...openings];
}

/** A session that is opened again, and its first prompt. */
async function openings() {
  const rows = [];
  let before;
  for (const size of [1_000, 10_000, 100_000]) {
    const { opened, prepared } = await measure("opening", "engine", size);
    const took = opened + prepared;
    const grown = before === undefined ? {} : { exponent: exponent(before, took, 10), "bar (exponent)": 1 };
    const bar = size === 100_000 ? { "bar (ms)": 1_000 } : {};
    const times = { "open (ms)": opened, "first prompt (ms)": prepared };
    rows.push({ case: `open + prepare, ${size} messages`, ...times, ...bar, ...grown, load: load() });
    before = took;
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
