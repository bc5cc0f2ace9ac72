/** The store of Redis: a sorted set for the order of keys, two hashes, and one script. */

import { checkOptions, invalidOption } from "../../checks.js";
import { CompactionError } from "../../errors.js";
import type { Batch, Key, Store } from "../../types.js";
import { decodeKey, encodeKey, rangeOf } from "../durable/key.js";
import { SCHEMA_END } from "../durable/parts.js";
import { checkKey, checkScan, conflict, MAX_BATCH_OPS, MAX_VALUE_BYTES, ownBatch, randomId } from "../keys.js";
import type { ScanOptions } from "../keys.js";
import { notices } from "../notices.js";
import { pause, sessionOf, TURN_MS, Turns } from "../turns.js";
import { senderOf } from "./client.js";
import type { IoRedisClient, NodeRedisClient, Part } from "./client.js";
import { hasNoScript, redisError } from "./errors.js";
import { SCRIPT } from "./script.js";

/** Options of `redisStore`. */
export interface RedisStoreOptions {
  /** The keys of the store begin with this name in braces, so that a cluster keeps them in one place. Default:
   *  `context-compactor`. */
  prefix?: string;
  /** What an `append` that resolved survives. Set `synced` only if the server has `appendfsync always`, and a replica that
   *  takes over has every write. Default: `process`, because most servers sync once a second and replicate later. */
  durable?: "synced" | "process" | "none";
}

/**
 * Stores sessions in Redis 5 or later, or in Valkey: `redisStore(client)` with a connected client of `redis` or of `ioredis`. The app
 * closes the client, and listens to its `error` events. Any number of processes may use one store; a commit is one run of a
 * script. Everything is in the server's memory.
 *
 * If the server evicts keys when its memory is full (a `maxmemory-policy` other than `noeviction`), sessions emit a
 * `warning` (`not_persisted`).
 *
 * Errors: `invalid_option`, `store_unavailable`, `quota_exceeded` (`maxmemory`), `too_large` (a value over 64 MiB),
 * `store_corrupt`, `schema_too_new`, `conflict`, `closed`; `indeterminate` if the connection broke before a commit was
 * answered.
 */
export function redisStore(client: IoRedisClient | NodeRedisClient, options: RedisStoreOptions = {}): Store {
  checkOptions(options, ["prefix", "durable"]);
  const { prefix = "context-compactor", durable = "process" } = options;
  if (typeof prefix !== "string" || !/^[^{}]+$/.test(prefix)) throw invalidOption("prefix", "must be a text without braces");
  if (!["synced", "process", "none"].includes(durable)) throw invalidOption("durable", 'must be "synced", "process" or "none"');
  const send = senderOf(client);
  const caps = {
    atomic: "batch",
    cas: true,
    durable,
    maxValueBytes: MAX_VALUE_BYTES,
    maxBatchOps: MAX_BATCH_OPS,
  } as const;
  const [rows, values, versions] = ["keys", "values", "versions"].map((part) => `{${prefix}}:${part}`) as [string, string, string];
  const { tell, listen } = notices();
  const turns = new Turns();
  const running = new Set<Promise<unknown>>();
  let closed = false;
  let opening: Promise<void> | undefined;
  let sha: Uint8Array;

  /** Runs an operation once the server is known; `close` waits for it. `isInDoubt`: it may be done though it failed. */
  function run<T>(work: () => Promise<T>, isInDoubt = false): Promise<T> {
    if (closed) return Promise.reject(new CompactionError("closed", "The store was closed: make a new one"));
    const operation = open().then(() =>
      work().catch((error: unknown) => {
        throw redisError(error, isInDoubt);
      }),
    );
    const ended = () => void running.delete(settled);
    const settled: Promise<void> = operation.then(ended, ended);
    running.add(settled);
    return operation;
  }

  function open(): Promise<void> {
    return (opening ??= prepare().catch((error: unknown) => {
      // A later call may find what this one could not.
      opening = undefined;
      throw redisError(error, false);
    }));
  }

  async function prepare(): Promise<void> {
    const schema = await send("HGET", versions, "");
    if (schema && Number(textOf(schema)) >= SCHEMA_END) {
      throw new CompactionError("schema_too_new", `The store has schema ${textOf(schema)}, which a newer release wrote: update the app`);
    }
    sha = (await send("SCRIPT", "LOAD", SCRIPT)) as Uint8Array;
    // Some hosts do not say.
    const memory = textOf(await send("INFO", "memory").catch(() => ""));
    const policy = /^maxmemory_policy:(\S+)/m.exec(memory)?.[1];
    if (policy !== undefined && policy !== "noeviction") {
      const message =
        `Redis may remove conversations when its memory is full (maxmemory-policy ${policy}): set it to noeviction, ` +
        "or use a server of its own for sessions";
      tell({ kind: "warning", code: "not_persisted", message });
    }
  }

  async function script(names: string[], ...parts: Part[]): Promise<unknown> {
    const given: Part[] = [3 + names.length, rows, values, versions, ...names, ...parts];
    try {
      return await send("EVALSHA", sha, ...given);
    } catch (error) {
      if (!hasNoScript(error)) throw error;
      return send("EVAL", SCRIPT, ...given);
    }
  }

  return {
    caps,
    notices: listen,

    async read(keys) {
      keys.forEach(checkKey);
      const wanted = keys.map((key) => encodeKey(key));
      return run(async () => {
        if (wanted.length === 0) return [];
        const found = (await send("HMGET", values, ...wanted)) as (Uint8Array | null)[];
        return found.map((value) => (value ? new Uint8Array(value) : undefined));
      });
    },

    async scan(prefix: Key, options: ScanOptions) {
      checkScan(prefix, options);
      const { limit, maxBytes, reverse = false, keysOnly = false } = options;
      const { low, high } = rangeOf(prefix, options);
      const most = Math.min(Math.ceil(limit), 2 ** 31 - 1);
      const bytes = Math.min(Math.max(maxBytes, 0), Number.MAX_SAFE_INTEGER);
      return run(async () => {
        const parts = ["scan", low, high, reverse ? 1 : 0, keysOnly ? 1 : 0, most, bytes];
        const found = (await script([], ...parts)) as Uint8Array[];
        const page: [Key, Uint8Array][] = [];
        for (let at = 0; at < found.length; at += keysOnly ? 1 : 2) {
          page.push([decodeKey(new Uint8Array(found[at]!)), keysOnly ? new Uint8Array() : new Uint8Array(found[at + 1]!)]);
        }
        return page;
      });
    },

    async commit(batch: Batch) {
      const owned = ownBatch(batch, caps);
      const { expect, puts, deletes } = owned;
      const parts: Part[] = [];
      for (const { key, version } of expect) parts.push(encodeKey(key), version ?? "");
      for (const [key, value] of puts) parts.push(encodeKey(key), value);
      for (const key of deletes) parts.push(encodeKey(key));
      const sid = sessionOf(owned);
      const names = [`{${prefix}}:commit:${randomId(16)}`, `{${prefix}}:turn:${sid ?? ""}`];
      const counts = [expect.length, puts.length, deletes.length];
      const commit = async () => {
        for (const until = Date.now() + TURN_MS; ; ) {
          const turn = sid === undefined ? ["", 0, 0] : [turns.id, turns.lost(sid) + 1, Date.now() < until ? 1 : 0];
          const broken = textOf(await script(names, "commit", ...counts, ...turn, ...parts));
          if (broken === "") {
            if (sid !== undefined) turns.win(sid);
            return;
          }
          if (broken !== "wait") {
            if (sid !== undefined) turns.lose(sid);
            const [nth, found] = broken.split(":");
            const { key, version } = expect[Number(nth) - 1]!;
            throw conflict(key, version, found ? Number(found) : null);
          }
          await pause();
        }
      };
      return run(commit, true);
    },

    async close() {
      closed = true;
      while (running.size > 0) await Promise.all(running);
    },
  };
}

function textOf(answer: unknown): string {
  return typeof answer === "string" ? answer : new TextDecoder().decode(answer as Uint8Array);
}
