/** Plays a task with the scripted agent under a method, which decides what the agent is shown. */

import { runtime } from "../../tests/support/api.mjs";
import { Bill, stableOf } from "../front/bill.mjs";
import { engine, simple } from "../front/replay.mjs";
import { Step } from "./agent.mjs";

/** Where `balanced` acts and what it leaves, as shares of the window: the others do the same. */
const ACTS = 0.585;
export const LEAVES = 0.3;

/** The first message and the newest that fit, no answer without its question. */
function newest([first, ...rest], sizes, limit) {
  let [at, sum] = [rest.length, sizes[0]];
  while (at > 0 && (sum += sizes[at]) <= limit) at--;
  while (at < rest.length && rest[at].role === "tool") at++;
  // The last call and its answer stay, whatever they take.
  return [first, ...rest.slice(Math.min(at, rest.findLastIndex(({ role }) => role !== "tool")))];
}

const shortened = (shorten) =>
  simple(async (messages, window, tokensOf) => {
    const sizes = await Promise.all(messages.map(tokensOf));
    const all = sizes.reduce((sum, size) => sum + size, 0);
    return all < ACTS * window ? messages : shorten(messages, sizes, LEAVES * window, tokensOf);
  });

const CLEARED = "[Old tool result content cleared]";
/** Results that masking leaves, the newest. */
const UNMASKED = 3;

async function masked(messages, _, limit, tokensOf) {
  const results = messages.filter(({ role }) => role === "tool");
  const old = new Set(results.slice(0, -UNMASKED));
  const left = messages.map((message) => (old.has(message) ? { ...message, content: CLEARED } : message));
  return newest(left, await Promise.all(left.map(tokensOf)), limit);
}

/** A session in which references take as many tokens in every run. */
const session = (options, tools = false) =>
  engine({ format: "openai-chat", ...options }, { tools, more: () => ({ advanced: { runtime: runtime() } }) });
export const METHODS = {
  "no compaction, endless window": simple(async (messages) => messages),
  "newest messages": shortened(newest),
  "old results masked, newest messages": shortened(masked),
  balanced: session({}),
  "balanced, recall": session({}, true),
  economy: session({ economy: true }),
  "economy, recall": session({ economy: true }, true),
};

/**
 * Plays `task`. `wrong` lists the steps that the agent got wrong, each with what it had not found and with what it took for
 * right and was not. The task then goes on with the right values, as the tool records them.
 */
export async function play(task, method, contextWindow, onWrong = () => {}) {
  const stable = stableOf(contextWindow);
  const { prompt: prepare, recall, end } = await method(contextWindow, stable);
  const prompt = async (added) => (await prepare(added)).messages;
  const bill = new Bill(stable);
  const [reader, writer] = task.tools;
  const wrong = [];
  let [recalls, id] = [0, 0];
  let [shown, added] = [[], []];
  const say = (step) => ({ role: "user", content: [step.said, asks(step)].join("\n").trim() });
  const asks = (step) => `Step ${step.number}: ${step.asked}.`;
  const calls = async (name, args, content = null) => {
    const call = { id: `call_${++id}`, type: "function", function: { name, arguments: JSON.stringify(args) } };
    const message = { role: "assistant", content, tool_calls: [call] };
    await bill.add(shown, message);
    added = [message];
    return call;
  };
  const answers = (call, content) => added.push({ role: "tool", tool_call_id: call.id, content });

  const [first] = task.steps;
  added.push({ role: "user", content: `${task.first}\n${asks(first)}` });
  if (task.isTold) added[0].content += `\n${first.said}`;
  for (const [at, step] of task.steps.entries()) {
    shown = await prompt(added);
    answers(await calls(reader, { number: step.number }, `I read number ${step.number} first.`), step.material);
    const agent = new Step(step.number, Boolean(recall));
    let decided;
    for (;;) {
      shown = await prompt(added);
      decided = agent.decide(shown);
      if (!decided.recall) break;
      recalls++;
      const call = await calls(...decided.recall);
      added.push(await recall(call));
    }
    const written = Object.fromEntries(decided.written);
    if (step.right.some(([name, value]) => written[name] !== value)) {
      const failed = { number: step.number, asked: step.asked, missing: decided.missing, right: step.right, written };
      wrong.push(failed);
      onWrong(failed, shown);
    }
    const recorded = step.right.map(([name, value]) => `${name}: ${value}`).join(". ");
    const next = task.steps[at + 1];
    const then = next && !task.isTold ? `\n${asks(next)}` : "";
    answers(await calls(writer, written), `Recorded. ${recorded}.${then}`);
    if (next && task.isTold) {
      shown = await prompt(added);
      await bill.add(shown, { role: "assistant", content: `Field ${step.number} is filled in.` });
      added = [{ role: "assistant", content: `Field ${step.number} is filled in.` }, say(next)];
    }
  }
  await end();
  return { wrong, steps: task.steps.length, recalls, calls: bill.calls, cost: bill.cost, largest: bill.largest };
}
