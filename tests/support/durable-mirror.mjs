/** A Worker that keeps a session in a Durable Object and in a second one, which are copies of each other. */

import { DurableObject } from "cloudflare:workers";
import { durableObjectStore } from "context-compactor/cloudflare";
import { Chat } from "./durable-session.mjs";
import { CompactionError, mirrorStore, storeConformance } from "./offload.mjs";

export { default } from "./durable-session.mjs";

const TABLES = ["meta", "sessions", "log", "blobs", "views", "jobs"];
const EVERYTHING = { limit: 10_000, maxBytes: 1 << 30 };
const CALLS = ["read", "scan", "commit"];

/** The second copy: a store that another object calls. An error's code does not come through by itself. */
export class Copy extends DurableObject {
  async call(method, ...given) {
    try {
      this.store ??= durableObjectStore(this.ctx, { bigObjects: this.env.BIG });
      return { value: await this.store[method](...given) };
    } catch (error) {
      if (!CompactionError.isInstance(error)) throw error;
      return { code: error.code, message: error.message };
    }
  }

  async clear() {
    await clear(this.ctx, this.env);
    this.ctx.abort("aborted by the test");
  }
}

/** The store of another object. */
function remote(stub, { caps }) {
  const call = (method) => async (...given) => {
    let answer;
    try {
      answer = await stub.call(method, ...given);
    } catch (cause) {
      // It may have been written.
      throw new CompactionError(method === "commit" ? "indeterminate" : "store_unavailable", String(cause), { cause });
    }
    if (answer.code) throw new CompactionError(answer.code, answer.message);
    return answer.value;
  };
  return { caps, ...Object.fromEntries(CALLS.map((method) => [method, call(method)])) };
}

/** Everything of an object, also what it has in the bucket. */
async function clear(ctx, env) {
  await ctx.storage.deleteAll();
  await removeObjects(ctx, env);
}

async function removeObjects(ctx, env) {
  const { objects } = await env.BIG.list({ prefix: `context-compactor/${ctx.id}/` });
  if (objects.length > 0) await env.BIG.delete(objects.map(({ key }) => key));
  return objects.length;
}

async function rowsOf(store) {
  const rows = {};
  for (const table of TABLES) {
    for (const [key, value] of await store.scan([table], EVERYTHING)) {
      if (key[1] !== "mirror") rows[JSON.stringify(key)] = JSON.stringify(value.damaged ?? Array.from(value));
    }
  }
  return rows;
}

export class Mirrored extends Chat {
  #told = [];

  get #stub() {
    return this.env.COPY.get(this.env.COPY.idFromName(String(this.ctx.id)));
  }

  #copies(stub = this.#stub) {
    const first = durableObjectStore(this.ctx, { bigObjects: this.env.BIG });
    return [first, remote(stub, first)];
  }

  store() {
    const store = mirrorStore(...this.#copies());
    store.notices(({ kind, reason, message }) => this.#told.push([kind, reason ?? message]));
    return store;
  }

  async fetch(request) {
    const own = await request.clone().json();
    if (own.action in this) return Response.json((await this[own.action](own)) ?? null);
    return super.fetch(request);
  }

  /** Names and errors of the checks of every store that fail, each on emptied objects. */
  async conformance() {
    let count = 0;
    const cases = storeConformance(async () => {
      await clear(this.ctx, this.env);
      return mirrorStore(...this.#copies(this.env.COPY.get(this.env.COPY.idFromName(`suite ${count++}`))));
    });
    const failed = [];
    for (const { name, run } of cases) await run().catch((error) => failed.push(`${name}: ${error?.stack ?? error}`));
    return { count: cases.length, failed };
  }

  /** Compares all rows of the copies: the report, what was told since the object began, and rows that differ then. */
  async compare() {
    const store = this.store();
    const { repaired, lost } = await store.check();
    const loss = await store.dataLoss();
    await new Promise((resolve) => setTimeout(resolve, 20));
    const [one, two] = await Promise.all(this.#copies().map(rowsOf));
    const differing = Object.keys({ ...one, ...two }).filter((key) => one[key] !== two[key]);
    return { rows: Object.keys(one).length, repaired, lost, loss, differing, told: this.#told };
  }

  /** Damages every row of a table that is in SQLite; their number. */
  damageRows({ table }) {
    const key = `02${Array.from(table, (unit) => unit.charCodeAt(0).toString(16).toUpperCase()).join("")}00%`;
    const query = "UPDATE context_compactor_rows SET bytes = NULL WHERE object IS NULL AND hex(key) LIKE ?";
    return this.ctx.storage.sql.exec(query, key).rowsWritten;
  }

  /** Removes what this object has in the bucket; their number. */
  damageObjects() {
    return removeObjects(this.ctx, this.env);
  }

  async clearFirst() {
    await clear(this.ctx, this.env);
  }

  async clearSecond() {
    await this.#stub.clear().catch(() => {});
  }

  /** Ends the object, which opens nothing before. */
  abort() {
    this.ctx.abort("aborted by the test");
    return new Promise(() => {});
  }
}
