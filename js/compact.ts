/** Compacting once, and planning it: no session, no store. */

import { readState, withStateOptions } from "./carried.js";
import type { Near } from "./codecs.js";
import { drive, driveSync, run, type Begin } from "./driver.js";
import { checkAborted } from "./effects.js";
import { started } from "./engine.js";
import { loadStage } from "./stages.js";
import { factsFor } from "./models.js";
import { engineOptions, hostOf, toResult, withFacts, type EngineResult, type Item } from "./options.js";
import { quietly } from "./quietly.js";
import { bringTable } from "./table.js";
import { codecOf } from "./translation.js";
import { ASSUMED, warnOnce, type Warning } from "./warnings.js";
import type { CarriedResult, CompactionResult, CompactOptions, CustomFormat, Message, NewMessageAmong, Plan, State, StateOptions } from "./types.js";

/**
 * Compacts a history once, and stores nothing: whatever its size, or with `state` when that is due, going on from the call
 * before. The result's `messages` are what to send; kept messages are the same objects. With `state`, write the result's
 * `state` to where the next call finds it whenever `changed` is true. A failed summary is not thrown: the result has `success: false`, the `error`, and the messages
 * that were passed, as far as steps without a summary did not change them. Rejects with `invalid_option`,
 * `invalid_message`, `unknown_format`, `unknown_model`, with `stage_unavailable` if the engine cannot be loaded, with `aborted`
 * after `signal`, and with `store_corrupt` or `schema_too_new` (field `state`) for a state that is damaged, signed with
 * another key or of a newer release.
 */
export async function compact<M extends Message>(
  messages: readonly M[],
  options: Omit<CompactOptions, "state" | "format"> & { format: CustomFormat<M>; state: State | null | StateOptions },
): Promise<CarriedResult<M>>;
export async function compact<M extends Message>(
  messages: readonly M[],
  options: Omit<CompactOptions, "format"> & { format: CustomFormat<M> },
): Promise<CompactionResult<M>>;
export async function compact<M extends Message>(
  messages: readonly M[],
  options: Omit<CompactOptions, "state"> & { state: State | null | StateOptions },
): Promise<CarriedResult<M | NewMessageAmong<M>>>;
export async function compact<M extends Message>(
  messages: readonly M[],
  options?: CompactOptions,
): Promise<CompactionResult<M | NewMessageAmong<M>>>;
export async function compact<M extends Message>(
  messages: readonly M[],
  given: Omit<CompactOptions, "state"> & { state?: State | null | StateOptions } = {},
): Promise<CompactionResult<M | NewMessageAmong<M>>> {
  const options = withStateOptions(given) as CompactOptions;
  const read = engineOptions(options, "compact");
  const codec = codecOf<M>(read);
  const { bytes, ends } = codec.pack(messages);
  const host = hostOf(read, (whose, at, body) => (whose === "ours" ? codec.decode(body) : (messages[at] as M)));
  const [facts] = await Promise.all([factsFor(options), started()]);
  const values = withFacts(read, facts);
  const carried = options.state === undefined ? undefined : await readState(read.host);
  await bringTable(values);
  checkAborted(options.signal);
  if (run((engine) => engine.assumesWindow(values))) warn(options, ASSUMED);
  const begin: Begin = (engine) => (carried ? engine.compactCarried(bytes, ends, values, carried.text) : engine.compactOnce(bytes, ends, values));
  // The logger has them already.
  host.notify = ({ event, ...data }) => {
    if (event === "warning" && !options.logger) warnOnce(data as unknown as Warning);
  };
  let thrown = new Map<number, unknown>();
  const { items, result, state } = await drive<{ items: Item[]; result: EngineResult; state?: string }>(begin, host, (_, causes) => {
    thrown = causes;
  });
  const near: Near<M> = { from: 0, length: messages.length, at: (index) => messages[index] };
  const kept = items.map(({ seq, body = "null" }) => {
    if (seq === undefined) return codec.decode(body, near);
    near.from = seq + 1;
    return messages[seq] as M;
  });
  const done = toResult(result, kept, thrown);
  if (!carried) return done;
  const next = state === undefined ? null : await carried.seal(state);
  return Object.assign(done, { state: result.changed ? next : carried.value });
}

function warn({ logger }: CompactOptions, warning: Warning): void {
  if (logger) quietly(() => logger("warn", warning.message));
  else warnOnce(warning);
}

/**
 * Previews what a session with these messages would do at its next `prepare`: steps, tokens that they would free, model
 * calls and their cost. Takes the options of `compact` but `state`, calls no model and stores nothing. Rejects as `compact` does.
 */
export async function planCompaction(messages: readonly Message[], options: Omit<CompactOptions, "state"> = {}): Promise<Plan> {
  const read = engineOptions(options, "planCompaction");
  const codec = codecOf(read);
  const { bytes, ends } = codec.pack(messages);
  const [facts] = await Promise.all([factsFor(options), loadStage("compact")]);
  const given = withFacts(read, facts);
  await bringTable(given);
  const host = hostOf(read, (whose, at, body) => (whose === "ours" ? codec.decode(body) : (messages[at] as Message)));
  checkAborted(options.signal);
  return driveSync<Plan>((engine) => engine.planOnce(bytes, ends, given), host);
}
