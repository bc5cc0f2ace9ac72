/**
 * What a context is worth, in one table: each row a target and where it stands, from the reports that are committed
 * (`reports/`), or measured here where that is cheap (`worth/`). What needs a model and was not asked says so.
 */

import { existsSync, readFileSync } from "node:fs";
import { cuts } from "./recorded.mjs";
import { cutFirst, rules, shares, waits } from "./worth/measure.mjs";

export const title = "Targets, and where they stand";

export const notes = ["Rows from a report are as old as that report. Nothing is said where a report has no such row."];

const ABSENT = "not in the report";
const MODEL = "not run: needs a model";

/** A report, or an object without rows. */
function read(report) {
  const file = new URL(`reports/${report}.json`, import.meta.url);
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
}

/** A row of a report, or an object without values. */
function row(report, name) {
  return read(report).rows?.find((row) => row.case === name) ?? {};
}

/** A row of the table; `isMet` is asked only when all of its numbers are there. */
function target(name, target, from, numbers, isMet, text = (...all) => all.join(" / ")) {
  const isThere = numbers.every((number) => typeof number === "number");
  const met = isThere ? (isMet(...numbers) ? "yes" : "no") : "–";
  return { case: name, now: isThere ? text(...numbers) : ABSENT, target, met, from };
}

export async function run() {
  return [...front(), cost(), ...exam(), summarizers(), ...tasks(), ...(await measured())];
}

function front() {
  const names = ["none, endless window", "newest 30 % at half of the window", "balanced", "balanced, economy"];
  const [none, tail, balanced, economy] = names.map((name) => row("front", name));
  const [facts, needs] = ["facts in 200K", "needs lost"];
  return [
    target("facts present, sessions that fit a window of 200K", "≥ no compaction - 0.01", "front.json", [balanced[facts], none[facts]], (now, most) => now >= most - 0.01 - 1e-9, (now, most) => `${now} (${most} without)`),
    target("needs that had left, of 100 calls, window 200K", "≤ 2", "front.json", [balanced[needs]], (now) => now <= 2),
    target("the same, over the newest messages at equal size", "≤ 0.5", "front.json", [balanced[needs], tail[needs]], (now, of) => now <= of / 2, (now, of) => (now / of).toFixed(2)),
    target("cost over no compaction, default", "≤ 0.65, at ≤ 2 needs", "front.json", [balanced.cost, balanced[needs]], (cost, lost) => cost <= 0.65 && lost <= 2, (cost, lost) => `${cost} at ${lost}`),
    target("cost over no compaction, economy", "≤ 0.50, at ≤ 8 needs", "front.json", [economy.cost, economy[needs]], (cost, lost) => cost <= 0.5 && lost <= 8, (cost, lost) => `${cost} at ${lost}`),
  ];
}

function cost() {
  const of = row("cost", "balanced, economy");
  const [mean, worst, none] = [of.mean, of.worst, of["worst of none"]];
  const isMet = () => mean <= 1.1 && worst <= 1.2 && none <= 1;
  const text = () => `${mean} (worst ${worst}, of none ${none})`;
  return target("cost over the optimum, economy", "≤ 1.10 (worst ≤ 1.20), never above none", "cost.json", [mean, worst, none], isMet, text);
}

function exam() {
  const right = row("exam", "balanced")["right (%)"];
  const without = target("exam, no model", "≥ 85 at ≤ 8,000 tokens", "exam.json", [right], (now) => now >= 85);
  const needs = (name, target) => ({ case: name, now: MODEL, target, met: "–", from: "" });
  return [
    needs("exam, with a model's summary", "≥ 97 at ≤ 7,600 tokens"),
    right === undefined ? { ...without, now: MODEL } : without,
    needs("recall: questions that the context lost, answered with the tools", "100 % at ≤ 0.6 calls"),
  ];
}

/** What `npm run soak` found with summarizers that write too much, nothing, the prompt itself or claims of their own. */
function summarizers() {
  const checks = read("soak-formats").checks?.filter(({ check, of }) => check === "summarisers" && of.startsWith("balanced"));
  const sum = (key) => checks?.reduce((all, check) => all + check[key], 0);
  const text = (failures, sessions) => `${failures} of ${sessions.toLocaleString("en")}`;
  return target("sessions that lose a message or send an invalid prompt, hostile summarizers", "0", "soak-formats.json", [sum("failures"), sum("sessions")], (failures, sessions) => failures === 0 && sessions > 0, text);
}

function tasks() {
  const of = (name, column) => ["16K", "32K"].map((window) => row("tasks", `${window}: ${name}`)[column]);
  const text = (small, large) => `${small} % in 16K, ${large} % in 32K`;
  const from = "tasks.json";
  return [
    target("generated tasks solved, where a page can hold it", "≥ 98 %", from, of("balanced", "solved, fits a page (%)"), (...all) => Math.min(...all) >= 98, text),
    target("generated tasks solved, with recall", "100 %", from, of("balanced, recall", "solved (%)"), (...all) => Math.min(...all) === 100, text),
  ];
}

async function measured() {
  const from = "measured here";
  const left = await shares();
  const isShare = left.every(([window, tokens], at) => tokens / window >= 0.25 && tokens / window <= 0.35 && (at === 0 || tokens >= left[at - 1][1]));
  const percents = left.map(([window, tokens]) => `${Math.round((100 * tokens) / window)} % of ${window / 1_000}K`);
  const { turns, waited, asked } = await waits();
  const sessions = cuts(15);
  const first = sessions.length > 0 ? [await cutFirst(sessions, 200_000)] : [];
  return [
    target("of 80 pasted rules word for word after a summary without them", "80", from, [await rules()], (now) => now === 80),
    target("context after a compaction", "25–35 % of the window, monotone", from, [1], () => isShare, () => percents.join(", ")),
    target("turns that wait for a summary, below the hard limit", "0", from, [waited], (now) => now === 0 && asked > 0, (now) => `${now} of ${turns}`),
    first.length === 0
      ? { case: "first message cut in the first half of the window", now: "skipped: no recordings (set CC_DATA)", target: "0", met: "–", from: "" }
      : target("first message cut in the first half of the window", "0", from, first, (now) => now === 0, (now) => `${now} of ${sessions.length}`),
  ];
}
