/**
 * Kills of every engine (`CC_ENGINES`, else all), `CC_KILLS` of each, from `CC_KILLS_SEED`. Prints a line `count {…}` for
 * each engine, and the problems that were found.
 */

import { ENGINES } from "../support/engines.mjs";
import { killBrowser } from "../support/kills.mjs";
import { killProcess } from "../support/kills-node.mjs";
import { killWorkerd } from "../support/kills-workerd.mjs";
import { durable } from "../support/stores.mjs";

const kills = Number(process.env.CC_KILLS ?? 100);
const seed = Number(process.env.CC_KILLS_SEED ?? 1);
const runs = {
  ...Object.fromEntries(Object.keys(ENGINES).map((engine) => [engine, killBrowser])),
  ...Object.fromEntries(Object.keys(durable).map((store) => [store, killProcess])),
  workerd: killWorkerd,
};
const chosen = process.env.CC_ENGINES ? process.env.CC_ENGINES.split(",") : Object.keys(runs);

for (const engine of chosen) {
  const progress = (done, { calls, compactions, races, lost, torn, dangling }) => {
    if (done % 10 > 0) return;
    const found = `${lost} lost, ${torn} torn, ${dangling} dangling`;
    console.log(`${engine}: ${done} kills, ${calls} calls acknowledged, ${compactions} compactions, ${races} races; ${found}`);
  };
  const sum = await runs[engine](engine, { kills, seed, progress }).catch((error) => error);
  if (sum instanceof Error) {
    // The other engines are run all the same.
    console.log(sum.stack);
    console.log(`count ${JSON.stringify({ check: "kills", of: engine, seed, failures: 1 })}`);
    process.exitCode = 1;
    continue;
  }
  for (const problem of sum.problems.slice(0, 20)) console.log(`${engine}: ${problem}`);
  console.log(`count ${JSON.stringify(sum.counts())}`);
  if (sum.problems.length > 0) process.exitCode = 1;
}
