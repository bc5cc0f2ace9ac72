/**
 * How well a context foretells what the agent really wrote next: the mean negative log-likelihood of its words, by a small
 * open model (`continuation/`), after contexts of equal size. `CC_CUTS` says how many cuts.
 */

import { startModel } from "./continuation/model.mjs";
import { interval } from "./interval.mjs";
import { cuts, masked, page, render } from "./recorded.mjs";

export const title = "Likelihood of what the agent wrote next, by SmolLM2-135M";

/** Tokens of a context, and of what the agent wrote that are scored. */
const [SIZE, NEXT] = [1_000, 150];
/** The window that the page is made for. */
const WINDOW = 6_000;

export const notes = [
  `Contexts of at most ${SIZE.toLocaleString("en")} tokens, the first ${NEXT} tokens of the agent's next message; sessions that no default was chosen by, ` +
    "each cut once, in its second half. Nats a token, less is better, with intervals of 95 % by the bootstrap over cuts.",
  "The page has no model's summary. A small model copies well and reasons little: it tells whether the words are there, not whether they are understood.",
];

const METHODS = {
  nothing: async () => "",
  "newest messages": (messages, cut) => cut(render(messages), { tail: SIZE }),
  "old results masked, newest messages": (messages, cut) => cut(render(masked(messages)), { tail: SIZE }),
  "page of balanced": async (messages, cut) => cut(await page(messages, WINDOW), { head: SIZE }),
  "page of balanced, then newest messages": async (messages, cut) => {
    const first = await cut(await page(messages, WINDOW), { head: SIZE / 2 });
    return `${first}\n\n${await cut(render(messages), { tail: SIZE / 2 })}`;
  },
};

export async function run() {
  const chosen = cuts(Number(process.env.CC_CUTS ?? 12));
  if (chosen.length === 0) return [{ case: "skipped: no recordings (set CC_DATA)" }];
  const model = startModel();
  if (!model) return [{ case: "not run: no model; bench/continuation/setup.sh installs it" }];
  const cut = async (text, size) => (await model.ask({ text, ...size })).text;
  const found = [];
  for (const { id, at, messages } of chosen) {
    const next = await cut(render([messages[at]]), { head: NEXT });
    const nll = {};
    for (const [name, context] of Object.entries(METHODS)) {
      const shown = await context(messages.slice(0, at), cut);
      nll[name] = (await model.ask({ context: shown && `${shown}\n\n`, next })).nll;
    }
    console.log(JSON.stringify({ id, at, ...nll }));
    found.push(nll);
  }
  model.end();
  return Object.keys(METHODS).map((name) => {
    const mean = (of) => of.reduce((sum, one) => sum + one[name], 0) / of.length;
    const gain = (of) => mean(of) - of.reduce((sum, one) => sum + one["newest messages"], 0) / of.length;
    const [low, high] = interval(found, mean).map(round);
    const [least, most] = interval(found, gain).map(round);
    return { case: name, cuts: found.length, nats: round(mean(found)), low, high, "less newest": round(gain(found)), "less newest, low": least, "less newest, high": most };
  });
}

const round = (number) => Math.round(number * 1_000) / 1_000;
