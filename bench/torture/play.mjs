/** Plays a history through a policy, and asks the four questions at each call of the model. */

import { validateHistory } from "context-compactor/history";
import { Bill } from "../front/bill.mjs";
import { isCall } from "../front/replay.mjs";
import { sizeOf, textsOf } from "./count.mjs";
import { modelOf } from "./model.mjs";

/** @typedef {import("./histories.mjs").History} History */
/**
 * Of the calls, how many had a prompt above the limit or none at all (`stuck`), one that the rules of its format do not allow
 * (`invalid`; `strict`: rules that only some servers enforce too), or one without what the user had said must not be done
 * (`lost`). `cost` and `base` are of the calls that the provider takes: with this policy, and without one in an endless window.
 * `why`: the first of each, for people.
 * @typedef {{ calls: number, stuck: number, invalid: number, strict: number, lost: number, asked: number, cost: number,
 *   base: number, why: Record<string, string> }} Played
 */

/** What each call costs without a compaction, in a window without an end. @param {History} history @returns {Promise<number[]>} */
export async function endless({ messages, stable }) {
  const bill = new Bill(stable);
  const costs = [];
  for (const [index, message] of messages.entries()) {
    if (!isCall(message, index)) continue;
    const before = bill.cost;
    await bill.add(messages.slice(0, index), message);
    costs.push(bill.cost - before);
  }
  return costs;
}

/** @param {History} history @param {import("./policies.mjs").Policy} policy @param {number[]} base @returns {Promise<Played>} */
export async function play(history, policy, base) {
  const { messages, contextWindow, stable, answer, constraint } = history;
  const model = modelOf(history);
  const bill = new Bill(stable);
  const opened = await policy.open(history, model.ask);
  const read = (native) => native.flatMap(policy.read);
  const limit = contextWindow - answer - stable;
  const fits = (native) => sizeOf(read(native)) <= limit;
  const played = { calls: 0, stuck: 0, invalid: 0, strict: 0, lost: 0, asked: 0, cost: 0, base: 0, why: {} };
  const count = (key, at, text) => {
    played[key]++;
    played.why[key] ??= `message ${at}: ${text}`;
  };
  let from = 0;
  for (const [index, message] of messages.entries()) {
    if (!isCall(message, index)) continue;
    const added = messages.slice(from, index);
    from = index;
    const nth = played.calls++;
    let native;
    try {
      native = await opened.prompt(added, fits);
    } catch (error) {
      count("stuck", index, `${error.code ?? error.name}: ${error.message}`);
      continue;
    }
    const sent = read(native);
    const strict = await problem(native, policy.format, true);
    const plain = strict && (await problem(native, policy.format, false));
    if (strict) count("strict", index, strict);
    if (plain) count("invalid", index, plain);
    const has = (one) => textsOf(one).some((text) => text.includes(constraint));
    if (constraint && !sent.some(has)) count("lost", index, "it is in no message");
    const size = sizeOf(sent);
    if (size > limit) {
      count("stuck", index, `${size} tokens of messages, ${limit} fit`);
      continue;
    }
    await bill.add(sent, message);
    played.base += base[nth];
  }
  await opened.end?.();
  return { ...played, asked: model.bill.asked, cost: bill.cost + model.bill.cost };
}

/** The first rule that a prompt breaks. */
async function problem(native, format, strict) {
  if (native.length === 0) return "a prompt without messages";
  const { problems } = await validateHistory(native, { format, strict });
  return problems.length > 0 ? `${problems[0].rule} ${problems[0].message}` : undefined;
}
