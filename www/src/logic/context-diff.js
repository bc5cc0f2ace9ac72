// @ts-check
/** What a compaction did to the messages that the model sees. */
import { diffArrays, diffLines } from "diff";
import { answersOf, fullTextOf } from "./messages.js";

/**
 * @typedef {{ kind: "same", messages: object[], from: number }
 *   | { kind: "added", message: object } | { kind: "removed", messages: object[] }
 *   | { kind: "changed", before: object, after: object }} Hunk
 * @typedef {{ kind: "same" | "removed" | "added", text: string }} Line
 */

/** Message by message. A tool result that was replaced by a reference is `changed`, found by the call that it answers.
 *  @param {readonly object[]} before @param {readonly object[]} after @returns {Hunk[]} */
export function diffContexts(before, after) {
  const keysBefore = before.map((message) => JSON.stringify(message));
  const keysAfter = after.map((message) => JSON.stringify(message));
  /** @type {Hunk[]} */
  const hunks = [];
  let b = 0;
  let a = 0;
  for (const part of diffArrays(keysBefore, keysAfter)) {
    const count = part.value.length;
    if (part.added) for (const message of after.slice(a, a + count)) hunks.push({ kind: "added", message });
    else if (part.removed)
      hunks.push(
        ...before
          .slice(b, b + count)
          .map((message) => /** @type {Hunk} */ ({ kind: "removed", messages: [message] })),
      );
    else hunks.push({ kind: "same", messages: [...after.slice(a, a + count)], from: a });
    if (!part.added) b += count;
    if (!part.removed) a += count;
  }
  return pairReplaced(hunks);
}

/** @param {Hunk[]} hunks @returns {Hunk[]} */
function pairReplaced(hunks) {
  /** @type {Map<string, object>} */
  const added = new Map();
  for (const hunk of hunks) {
    if (hunk.kind !== "added") continue;
    const key = answersOf(hunk.message).join();
    if (key !== "") added.set(key, hunk.message);
  }
  /** @type {Set<object>} */
  const used = new Set();
  const paired = hunks.map((hunk) => {
    const before = hunk.kind === "removed" ? hunk.messages[0] : undefined;
    const after = before && added.get(answersOf(before).join());
    if (!after) return hunk;
    used.add(after);
    return /** @type {Hunk} */ ({ kind: "changed", before, after });
  });
  return grouped(paired.filter((hunk) => hunk.kind !== "added" || !used.has(hunk.message)));
}

/** A run of removed messages is one hunk, and what stands in its place comes before it.
 *  @param {Hunk[]} hunks @returns {Hunk[]} */
function grouped(hunks) {
  /** @type {Hunk[]} */
  const result = [];
  for (const hunk of hunks) {
    const last = result.at(-1);
    if (hunk.kind === "removed" && last?.kind === "removed") last.messages.push(...hunk.messages);
    else if (hunk.kind === "added" && last?.kind === "removed") result.splice(-1, 0, hunk);
    else result.push(hunk);
  }
  return result;
}

/** Line by line within one message. @param {object} before @param {object} after @returns {Line[]} */
export function diffText(before, after) {
  return diffLines(fullTextOf(before), fullTextOf(after)).flatMap(({ value, added, removed }) =>
    value
      .replace(/\n$/, "")
      .split("\n")
      .map((text) => ({ kind: added ? "added" : removed ? "removed" : "same", text })),
  );
}
