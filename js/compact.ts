/** Compacting once, and planning it: no session, no store. */

import { decode, pack } from "./codec.js";
import { checkAborted, drive, driveSync, run } from "./driver.js";
import { factsFor } from "./models.js";
import { engineOptions, hostOf, toResult, withFacts, type EngineResult, type Item } from "./options.js";
import { quietly } from "./quietly.js";
import { ASSUMED, warnOnce, type Warning } from "./warnings.js";
import type { CompactionResult, CompactOptions, Message, NewMessageAmong, Plan } from "./types.js";

/**
 * Compacts a history once, whatever its size, and stores nothing. The result's `messages` are what to send; kept messages
 * are the same objects. A failed summary is not thrown: the result has `success: false`, the `error`, and the messages
 * that were passed, as far as steps without a summary did not change them. Rejects with `invalid_option`,
 * `invalid_message`, `unknown_format`, `unknown_model`, and with `aborted` after `signal`.
 */
export async function compact<M extends Message>(
  messages: readonly M[],
  options: CompactOptions = {},
): Promise<CompactionResult<M | NewMessageAmong<M>>> {
  const { bytes, ends } = pack(messages);
  const read = engineOptions(options, "compact");
  const host = hostOf(read, (whose, at, body) => (whose === "ours" ? (decode(body) as Message) : (messages[at] as M)));
  const given = withFacts(read, await factsFor(options));
  checkAborted(options.signal);
  if (run((engine) => engine.assumesWindow(given))) warn(options, ASSUMED);
  const operation = run((engine) => engine.compactOnce(bytes, ends, given));
  // The logger has them already.
  host.notify = ({ event, ...data }) => {
    if (event === "warning" && !options.logger) warnOnce(data as unknown as Warning);
  };
  let thrown = new Map<number, unknown>();
  const { items, result } = await drive<{ items: Item[]; result: EngineResult }>(operation, host, (_, causes) => {
    thrown = causes;
  });
  const kept = items.map((item) =>
    item.seq === undefined ? (decode(item.body ?? "null") as NewMessageAmong<M>) : (messages[item.seq] as M),
  );
  return toResult(result, kept, thrown);
}

function warn({ logger }: CompactOptions, warning: Warning): void {
  if (logger) quietly(() => logger("warn", warning.message));
  else warnOnce(warning);
}

/**
 * Previews what a session with these messages would do at its next `prepare`: steps, tokens that they would free, model
 * calls and their cost. Takes the options of `compact`, calls no model and stores nothing. Rejects as `compact` does.
 */
export async function planCompaction(messages: readonly Message[], options: CompactOptions = {}): Promise<Plan> {
  const { bytes, ends } = pack(messages);
  const read = engineOptions(options, "planCompaction");
  const given = withFacts(read, await factsFor(options));
  const host = hostOf(read, (whose, at, body) =>
    whose === "ours" ? (decode(body) as Message) : (messages[at] as Message),
  );
  checkAborted(options.signal);
  return driveSync<Plan>(
    run((engine) => engine.planOnce(bytes, ends, given)),
    host,
  );
}
