/**
 * The figures of docs/comparison.md, docs/torture.md and docs/figures.md are those of the committed reports, and what it says of SDKs is what their sources do. `BLESS=1`
 * writes those of the former anew.
 */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";

const root = new URL("../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");
const PAGE = "docs/comparison.md";
const report = (name) => new Map(JSON.parse(read(`bench/reports/${name}.json`)).rows.map((row) => [row.case, row]));

/** The lines of the table below a heading, without its head. */
function lines(heading, page = PAGE) {
  const lines = read(page).split(`\n## ${heading}\n`)[1].split("\n## ")[0].split("\n").filter((line) => line.startsWith("|"));
  return lines.slice(2);
}

function same(heading, expected, page = PAGE) {
  const made = expected.map((cells) => `| ${cells.join(" | ")} |`);
  if (process.env.BLESS === "1") writeFileSync(new URL(page, root), read(page).replace(lines(heading, page).join("\n"), () => made.join("\n")));
  assert.deepEqual(lines(heading, page), made, "run with BLESS=1 and read the change");
}
const percent = (part) => `${Math.round(100 * part)} %`;

test("E28: cost and what calls lack are those of bench/reports/front.json", () => {
  const cases = [
    ["no compaction", "none, endless window"],
    ["keep the newest 30 %, at half of the window", "newest 30 % at half of the window"],
    ["keep the newest 40 %, at 60 % of the window", "newest 40 % at 60 % of the window"],
    ["keep the newest 10,000 tokens, at 60,000", "newest 10,000 at 60,000"],
    ["`balanced`", "balanced"],
    ["`balanced`, with the recall tools to bring it back", "balanced, recall"],
    ["`balanced` with `economy`", "balanced, economy"],
  ];
  const measured = report("front");
  const expected = cases.map(([name, row]) => {
    const { cost, "needs lost": lost, "facts in 200K": facts } = measured.get(row);
    return [name, percent(cost), lost === 0 ? "0" : lost.toFixed(1), percent(facts)];
  });
  same("Cost, and what calls then lack", expected);
});

test("E28: tasks are those of bench/reports/tasks.json", () => {
  const cases = [
    ["no compaction, endless window", "16K: no compaction, endless window"],
    ["newest messages", "16K: newest messages"],
    ["old results masked, newest messages", "16K: old results masked, newest messages"],
    ["`balanced`", "16K: balanced"],
    ["`balanced`, with the recall tools", "16K: balanced, recall"],
  ];
  const measured = report("tasks");
  const expected = cases.map(([name, row]) => {
    const { "solved (%)": solved, "steps right (%)": right } = measured.get(row);
    return [name, percent(solved / 100), percent(right / 100)];
  });
  same("Tasks that need earlier values", expected);
});

/** Each of these stands in docs/figures.md, wherever its lines end. */
function told(...sentences) {
  const page = read("docs/figures.md").replace(/\s+/g, " ");
  for (const sentence of sentences) assert.ok(page.includes(sentence), sentence);
}

test("W17: what a bill is made of is what bench/reports/bill.json says", () => {
  const measured = report("bill");
  const share = (...rows) => percent(rows.reduce((sum, row) => sum + measured.get(row).share, 0));
  const fixed = share("answers", "each text, written to the cache once", "system prompt and tools, read again");
  told(
    `${fixed} is what no compaction changes`,
    `Another ${share("history below 60,000 tokens of the prompt, read again")} is reading the history below 60,000 tokens`,
    `To act at 100,000 tokens and leave 60,000 costs ${share("at 100,000 tokens, to 60,000")} even`,
    `and \`balanced\` pays ${percent(report("front").get("balanced").cost)}`,
    `To leave 20,000 there costs ${share("at 100,000 tokens, to 20,000")}`,
    `to act at 80,000 and leave 40,000, ${share("at 80,000 tokens, to 40,000")}`,
    `to act at 60,000 and leave 25,000, ${share("at 60,000 tokens, to 25,000")}`,
  );
});

test("W17: costs over the optimum are those of bench/reports/cost.json", () => {
  const measured = report("cost");
  const mean = (row) => measured.get(row).mean.toFixed(2);
  const worst = (row) => measured.get(row).worst.toFixed(2);
  const economy = measured.get("balanced, economy");
  told(
    `*Cost over the optimum.* ${economy.sessions} recorded sessions`,
    `no compaction pays ${mean("none (endless window)")}`,
    `The rule of prices alone pays ${mean("rent or buy")}, at worst ${worst("rent or buy")}`,
    `\`economy\` pays ${mean("balanced, economy")}, at worst ${worst("balanced, economy")}`,
    `In ${economy["above none"]} of ${economy.sessions * 6} cases it costs more than no compaction, at worst ${economy["worst of none"].toFixed(2)} times`,
    `\`balanced\` does not look at the bill, and pays ${mean("balanced")}`,
  );
});

test("E28: what is said of SDKs is of the versions that are installed, and of what their sources do", () => {
  const version = (name) => JSON.parse(read(`node_modules/${name}/package.json`)).version;
  const named = lines("What each does").slice(0, -1).map((line) => /^\|[^|]*`([^`]+)` ([\d.]+) \|/.exec(line));
  for (const [, name, said] of named) assert.ok(`${version(name)}.`.startsWith(`${said}.`), `${name} ${version(name)}`);
  assert.deepEqual(named.map(([, name]) => name), ["@langchain/core", "langchain", "ai", "@openai/agents"]);
  const summarization = read("node_modules/langchain/dist/agents/middleware/summarization.js");
  assert.match(summarization, /DEFAULT_TRIM_TOKEN_LIMIT = 4e3/);
  assert.match(summarization, /return `Error generating summary: /);
  assert.match(summarization, /REMOVE_ALL_MESSAGES/);
});

const TORTURE = "docs/torture.md";

test("X17: the tables of docs/torture.md are those of bench/reports/torture.json", () => {
  const rows = [...report("torture").values()];
  const cost = (number) => `${Math.round(100 * number)} %`;
  const sessions = rows.filter(({ by }) => by !== "rule");
  same(
    "What happened",
    sessions.map((row) => [row.case, row.by || "–", row.stuck, row.invalid, row["invalid, strict"], row["constraint lost"], cost(row.cost), String(row.asked), row.where || "–"]),
    TORTURE,
  );
  const rules = rows.filter(({ by }) => by === "rule");
  same("Published thresholds", rules.map((row) => [row.case, row.stuck, cost(row.cost), cost(row["over the optimum"])]), TORTURE);
});

test("X17: the histories of docs/torture.md are those that were played, and so is what is said of them", () => {
  const { notes, rows } = JSON.parse(read("bench/reports/torture.json"));
  const histories = notes.flatMap((note) => /^history (\d+): (.*) \(\d+ messages\)$/.exec(note)?.slice(1, 3).join(". ") ?? []);
  const section = read(TORTURE).split("\n## The histories\n")[1].split("\n## ")[0];
  assert.deepEqual(section.match(/^\d+\. [^:\n]+/gm), histories);
  // Each failure that is named, in the history that has it.
  const where = (name, key) => (rows.find((row) => row.case === name).where.split("; ").find((part) => part.startsWith(`${key} `)) ?? "").split(" ").slice(1).map(Number);
  const named = read(TORTURE).split("\n## Failures that were reported elsewhere\n")[1].split("\n## ")[0];
  const shown = [...named.matchAll(/\| `([^`]+)`: (stuck|invalid|strict|lost) in (\d+) \|/g)];
  assert.ok(shown.length > 3);
  for (const [, name, key, nth] of shown) assert.ok(where(name, key).includes(Number(nth)), `${name}: ${key} in ${nth}`);
});
