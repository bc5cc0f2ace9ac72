/**
 * Which earlier results and inputs should stay whole when a prompt is made shorter: a simulation of prompts in a window of
 * 200,000 tokens, on what recorded calls copied. It knows no page and no previews: what left a prompt is gone, so that it
 * loses more than the engine does. It is there to compare choices, and to say what one that knows the future would give.
 */

import { PRICES, stableOf, tokensOf } from "./bill.mjs";
import { LEAST, RUN, words } from "./needs.mjs";
import { isCall } from "./replay.mjs";

/** @typedef {import("context-compactor").Message} Message */
/** A result, an input or a text: its message and its place there, the file that its call names, whether it is a result or an
 *  input that changes that file, its tokens, and how many calls came before it.
 *  @typedef {{ at: number, path?: string, result: boolean, changes: boolean, tokens: number,
 *    call: number, nth: number }} Text */
/** A call: its message, and the runs that it copies of what it was not just given: where each begins, and the texts that have it.
 *  @typedef {{ at: number, runs: [number, number[]][] }} ReplayedCall */
/** @typedef {{ texts: Text[], calls: ReplayedCall[] }} Work */
/** What a choice may know: the work, the number of the next call, and for each text the calls that copied of it so far.
 *  @typedef {{ work: Work, now: number, uses: number[][] }} Known */
/** What a text is worth; nothing where it is not worth a place. @typedef {(known: Known, id: number) => number} Score */
/**
 * What is done with a prompt. `clears`: old results go in batches, where that pays; of them the best stay, up to `spares`
 * tokens of the prompt. At the trigger a cut leaves the newest texts; `keeps`, a share of what it leaves, is for the best of
 * those before.
 * @typedef {{ score?: Score, clears?: boolean, spares?: number, keeps?: number, trigger?: number }} Choice
 */

const WINDOW = 200_000;
const STABLE = stableOf(WINDOW);
/** Where preset `balanced` acts, what a compaction leaves, from where on it clears, and what a page takes. */
const [TRIGGER, LEAVES, CLEARS_FROM, PAGE] = [WINDOW / 2, 0.3 * WINDOW, WINDOW / 4, 5_000];
/** What stands for a result that is cleared, and what is cleared: results of more tokens, all but the newest. */
const [STUB, LARGE, RECENT] = [45, 1_000, 3];
/** Clearing that frees less is no compaction. */
const FREES = 20_000;
/** A text is known by the newest copies of a run, so many. */
const HOLDERS = 6;

/** @param {readonly Message[]} messages @returns {Promise<Work>} */
export async function workOf(messages) {
  /** @type {Work} */
  const work = { texts: [], calls: [] };
  /** @type {Map<string, number[]>} */
  const holders = new Map();
  /** @type {Map<string, { path?: string, changes: boolean }>} */
  const calls = new Map();
  const read = async (/** @type {number} */ at) => {
    const { content } = /** @type {any} */ (messages[at]);
    for (const [nth, part] of partsOf(content).entries()) {
      if (part.type === "tool_use") {
        const path = part.input.file_path ?? part.input.path ?? part.input.notebook_path;
        calls.set(part.id, { path, changes: /edit|write/i.test(part.name) });
      }
      const of = calls.get(part.id ?? part.tool_use_id);
      const all = words({ role: "user", content: [part] });
      const tokens = await tokensOf(/** @type {any} */ ({ role: "user", content: textOf(part) }));
      const result = part.type === "tool_result";
      const id = work.texts.push({ at, path: of?.path, result, changes: !result && of?.changes === true, tokens, call: work.calls.length, nth }) - 1;
      for (let from = 0; from + RUN <= all.length; from++) {
        const run = all.slice(from, from + RUN).join(" ");
        const known = holders.get(run);
        if (!known) holders.set(run, [id]);
        else if (known.at(-1) !== id) known.push(id);
      }
    }
  };
  let from = 0;
  for (const [at, message] of messages.entries()) {
    if (!isCall(message, at)) continue;
    const all = words(message);
    /** @type {ReplayedCall} */
    const call = { at, runs: [] };
    for (let nth = 0; nth + RUN <= all.length; nth++) {
      const known = holders.get(all.slice(nth, nth + RUN).join(" "));
      // What came since the last call was just given.
      if (known && work.texts[known.at(-1)].at < from) call.runs.push([nth, known.slice(-HOLDERS)]);
    }
    while (from < at) await read(from++);
    work.calls.push(call);
  }
  return work;
}

function partsOf(content) {
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

/** The words of a text. @param {readonly Message[]} messages @param {Text} text @returns {string} */
export function wordsOf(messages, { at, nth }) {
  const { content } = /** @type {any} */ (messages[at]);
  return words(/** @type {any} */ ({ role: "user", content: [partsOf(content)[nth]] })).join(" ");
}

function textOf(part) {
  if (part.type === "text") return part.text;
  return JSON.stringify(part.type === "tool_result" ? part.content : (part.input ?? part));
}

/** Calls, those that lack what they copy, their cost in USD without answers, and the tokens of all prompts.
 *  @param {Work} work @param {Choice} choice */
export function simulate(work, choice) {
  const { texts, calls } = work;
  const trigger = choice.trigger ?? TRIGGER;
  /** Texts of the prompt: true for those that stand whole. @type {Map<number, boolean>} */
  const prompt = new Map();
  /** @type {number[][]} */
  const uses = texts.map(() => []);
  const sum = { calls: calls.length, lost: 0, cost: 0, tokens: 0 };
  let [next, page] = [0, 0];
  const tokens = (id) => (prompt.get(id) ? texts[id].tokens : STUB);
  const total = (ids) => ids.reduce((all, id) => all + tokens(id), 0);
  for (const [now, call] of calls.entries()) {
    const before = next;
    while (next < texts.length && texts[next].at < call.at) prompt.set(next++, true);
    let size = STABLE + page + total([...prompt.keys()]);
    let rewritten = total([...prompt.keys()].filter((id) => id >= before));
    const known = { work, now, uses };
    const isDue = size >= trigger;
    let freed = 0;
    if (choice.clears && size >= CLEARS_FROM) {
      const cleared = toClear(known, prompt, size, isDue, choice);
      for (const id of cleared) prompt.set(id, false);
      freed = cleared.reduce((all, id) => all + texts[id].tokens - STUB, 0);
      size -= freed;
      if (cleared.length > 0) rewritten = total([...prompt.keys()].filter((id) => id >= cleared[0]));
    }
    // A cut follows where clearing freed too little.
    if (size >= trigger || (isDue && freed < FREES)) {
      page = PAGE;
      cut(known, prompt, LEAVES - STABLE - PAGE, choice);
      rewritten = PAGE + total([...prompt.keys()]);
      size = STABLE + rewritten;
    }
    sum.cost += ((size - rewritten) * PRICES.cacheRead + rewritten * PRICES.cacheWrite) / 1e6;
    sum.tokens += size;
    if (isLost(call, prompt)) sum.lost++;
    for (const id of new Set(call.runs.flatMap(([, ids]) => ids))) uses[id].push(now);
  }
  return sum;
}

/** @param {ReplayedCall} call @param {Map<number, boolean>} prompt */
function isLost({ runs }, prompt) {
  let [missing, end] = [0, 0];
  for (const [at, ids] of runs) {
    if (at < end || ids.some((id) => prompt.get(id))) continue;
    if (++missing === LEAST) return true;
    end = at + RUN;
  }
  return false;
}

/** Of `ids` the best by `score` in `room` tokens. @param {Known} known @param {number[]} ids @param {number} room @param {Score} score */
export function best(known, ids, room, score) {
  const scored = ids.map((id) => /** @type {const} */ ([id, score(known, id)])).filter(([, worth]) => worth > 0);
  const chosen = new Set();
  for (const [id] of scored.sort(([, one], [, other]) => other - one)) {
    const { tokens } = known.work.texts[id];
    if (tokens > room) continue;
    room -= tokens;
    chosen.add(id);
  }
  return chosen;
}

/** The results that are cleared: all old ones but the best; of those the batch that saves most, and all at the trigger. */
function toClear(known, prompt, size, isDue, { score, spares = 0 }) {
  const { texts } = known.work;
  const results = [...prompt.keys()].filter((id) => texts[id].result);
  let old = results.slice(0, Math.max(0, results.length - RECENT)).filter((id) => prompt.get(id) && texts[id].tokens > LARGE);
  const frees = (id) => texts[id].tokens - STUB;
  const room = spares - (size - old.reduce((all, id) => all + frees(id), 0));
  if (score && room > 0) {
    const stays = best(known, old, room, score);
    old = old.filter((id) => !stays.has(id));
  }
  if (isDue) return old;
  let [behind, freed, read, most, from, end] = [0, 0, 0, 0, old.length, known.work.texts.length];
  for (let nth = old.length - 1; nth >= 0; nth--) {
    const id = old[nth];
    for (let at = id; at < end; at++) if (prompt.has(at)) behind += prompt.get(at) ? texts[at].tokens : STUB;
    end = id;
    freed += frees(id);
    // As many calls are expected to read it as have read it since it was one of the newest.
    read += frees(id) * Math.max(0, known.now - texts[id].call - RECENT);
    const saves = read * PRICES.cacheRead - (behind - freed) * (PRICES.cacheWrite - PRICES.cacheRead);
    if (saves > most) [most, from] = [saves, nth];
  }
  return old.slice(from);
}

/** Leaves the newest texts, and before them the best, in `room` tokens. */
function cut(known, prompt, room, { score, keeps = 0 }) {
  const { texts } = known.work;
  const ids = [...prompt.keys()];
  const chosen = score && keeps > 0 ? best(known, ids, room * keeps, score) : new Set();
  for (const id of chosen) {
    prompt.set(id, true);
    room -= texts[id].tokens;
  }
  let at = ids.length;
  for (; at > 0; at--) {
    const id = ids[at - 1];
    const tokens = chosen.has(id) ? 0 : prompt.get(id) ? texts[id].tokens : STUB;
    if (tokens > room) break;
    room -= tokens;
  }
  for (const id of ids.slice(0, at)) if (!chosen.has(id)) prompt.delete(id);
}

/**
 * The weights of the score of past use, by `fit` on the sessions of the tuning half: a call counts for the texts that it
 * copied a run of, and less the longer ago, by a factor of e in `calls`; a text counts more that was copied more often, and a
 * long one less, by its tokens to the power `size`; `file` is what each change of its file counts, and `fresh` what its
 * arrival does.
 */
export const WEIGHTS = { calls: 60, size: 0, file: 1, fresh: 0 };

/** What is tried for each weight. */
const GRID = { calls: [20, 60, 180], size: [0, 0.5, 1], file: [0, 1], fresh: [0, 0.3] };

/** @param {typeof WEIGHTS} weights @returns {Score} */
export function pastUse({ calls, size, file, fresh }) {
  return ({ work: { texts }, now, uses }, id) => {
    const text = texts[id];
    const late = (/** @type {number} */ call) => Math.exp((call - now) / calls);
    let worth = fresh * late(text.call);
    for (const call of uses[id]) worth += late(call);
    if (file > 0 && text.path) {
      for (const other of texts) {
        if (other.call > now) break;
        if (other.changes && other.path === text.path) worth += file * late(other.call);
      }
    }
    return worth / text.tokens ** size;
  };
}

/** @type {Record<string, Score>} */
export const SCORES = {
  "the newest": ({ work }, id) => 1 + work.texts[id].call,
  "used last": ({ work, uses }, id) => 1 + Math.max(work.texts[id].call, uses[id].at(-1) ?? 0),
  "past use": pastUse(WEIGHTS),
  // Of what is known of the future: how many calls copy of it what a call cannot do without, for its size.
  "the future": ({ work, now }, id) => {
    let needs = 0;
    for (const { runs } of work.calls.slice(now)) if (runs.filter(([, ids]) => ids.includes(id)).length >= LEAST) needs++;
    return needs / work.texts[id].tokens;
  },
};

/** The sums over sessions. @param {Work[]} works @param {Choice} choice */
export function simulateAll(works, choice) {
  const sum = { calls: 0, lost: 0, cost: 0, tokens: 0 };
  for (const work of works) {
    const one = simulate(work, choice);
    for (const key of /** @type {(keyof typeof sum)[]} */ (Object.keys(sum))) sum[key] += one[key];
  }
  return sum;
}

/** The weights of the grid that lose least where a cut keeps 30 % for the best, the first of those that are as good.
 *  @param {Work[]} works */
export function fit(works) {
  let best = { weights: WEIGHTS, lost: Infinity };
  for (const calls of GRID.calls)
    for (const size of GRID.size)
      for (const file of GRID.file)
        for (const fresh of GRID.fresh) {
          const weights = { calls, size, file, fresh };
          const { lost } = simulateAll(works, { clears: true, keeps: 0.3, score: pastUse(weights) });
          if (lost < best.lost) best = { weights, lost };
        }
  return best.weights;
}
