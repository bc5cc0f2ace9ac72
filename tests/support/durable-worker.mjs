/** The Worker of `startDurable`: an object for each check, in which one variant of the store is tried. */

import { CompactionError } from "../../js/errors.ts";
import { storeConformance } from "../../js/store/conformance.ts";
import { encodeKey } from "../../js/store/durable/key.ts";
import { checks as ofBucket } from "./durable-bucket.mjs";
import { checks as ofTables } from "./durable-protocol.mjs";

let variants;

/** Deletes everything in this object and in the bucket. */
async function empty({ ctx, env }) {
  await ctx.storage.deleteAll();
  const { objects } = await env.BIG.list();
  if (objects.length > 0) await env.BIG.delete(objects.map(({ key }) => key));
}

/** Changes the object that holds a row: a bit of it, or all of it by turns. */
function damaged({ ctx, env }) {
  let turn = 0;
  return async (_, key) => {
    const encoded = encodeKey(key);
    const [row] = ctx.storage.sql.exec("SELECT object FROM context_compactor_rows WHERE key = ?", encoded).toArray();
    // What a check replaced with a small value is in SQLite, where a part of it is lost.
    if (row.object === null) {
      ctx.storage.sql.exec("UPDATE context_compactor_rows SET bytes = NULL WHERE key = ?", encoded);
    } else if (turn++ % 2 === 0) {
      const value = new Uint8Array(await (await env.BIG.get(row.object)).arrayBuffer());
      value[value.length >> 1] ^= 1;
      await env.BIG.put(row.object, value);
    } else {
      await env.BIG.delete(row.object);
    }
  };
}

/** The suite that every store passes, each check on emptied storage. */
function conformance(bigObjects) {
  return (here) => {
    const { durableObjectStore } = here.variant;
    const options = bigObjects ? { bigObjects: here.env.BIG } : undefined;
    const cases = storeConformance(async () => durableObjectStore(here.ctx, options), bigObjects && { damage: damaged(here) });
    return Object.fromEntries(
      cases.map(({ name, run }) => [
        name,
        [
          async () => {
            await empty(here);
            await run();
          },
        ],
      ]),
    );
  };
}

const suites = {
  conformance: conformance(false),
  "conformance with a bucket": conformance(true),
  protocol: () => ({ ...ofTables, ...ofBucket }),
};

/** An object whose methods call replacements with the real method in front of their arguments. */
function changed(object, changes) {
  return new Proxy(object, {
    get(_, name) {
      const real = object[name];
      if (typeof real !== "function") return real;
      const bound = real.bind(object);
      return Object.hasOwn(changes, name) ? (...args) => changes[name](bound, ...args) : bound;
    },
  });
}

export class Durable {
  constructor(ctx, env) {
    Object.assign(this, { ctx, env });
  }

  async fetch(request) {
    const { suite, check, step, variant } = await request.json();
    const here = { ctx: this.ctx, env: this.env, variant: variants[variant] };
    const steps = suites[suite](here)[check];
    try {
      if (suite === "protocol" && step === 0) await empty(here);
      await steps[step](this.#tools(here));
    } catch (error) {
      return Response.json({ error: String(error?.stack ?? error) });
    }
    return Response.json({ done: step === steps.length - 1 });
  }

  #tools({ ctx, env, variant }) {
    return {
      ctx,
      bucket: env.BIG,
      atomically: variant.atomically,
      make(changes = {}, options = {}) {
        const sql = changed(ctx.storage.sql, changes);
        const storage = new Proxy(changed(ctx.storage, changes), {
          get: (target, name) => (name === "sql" ? sql : target[name]),
        });
        const bigObjects = changed(env.BIG, changes);
        return variant.durableObjectStore({ id: ctx.id, storage }, { bigObjects, ...options });
      },
    };
  }
}

/** An object of the older kind, and what the store says to it and to things that are no objects. */
export class WithoutSql {
  constructor(ctx) {
    this.ctx = ctx;
  }

  async fetch() {
    const { durableObjectStore } = variants[0];
    const thrown = async (work) => {
      try {
        await work();
        return {};
      } catch (error) {
        return CompactionError.isInstance(error) ? { code: error.code, message: error.message } : { message: String(error) };
      }
    };
    const read = (ctx, options) => durableObjectStore(ctx, options).read([["meta", "a"]]);
    return Response.json({
      "no SQLite": await thrown(() => read(this.ctx)),
      "no context": await thrown(() => read(undefined)),
      "the environment": await thrown(() => read({ BUCKET: {} })),
      "an unknown option": await thrown(() => read(this.ctx, { bucket: {} })),
      "a bucket that is none": await thrown(() => read(this.ctx, { bigObjects: "BIG" })),
    });
  }
}

/** Passes questions on to the object that they name. */
export function worker(modules) {
  variants = modules;
  return {
    async fetch(request, env) {
      const question = await request.json();
      if (question.wrong) return env.OLD.get(env.OLD.idFromName("old")).fetch(request.url);
      if (question.names) return Response.json(Object.keys(suites[question.suite]({ ctx: {}, env, variant: variants[0] })));
      const object = env.DURABLE.get(env.DURABLE.idFromName(question.object));
      try {
        return await object.fetch(request.url, { method: "POST", body: JSON.stringify(question) });
      } catch (error) {
        // The step ended the object: the next one meets a new one.
        if (/a crash/.test(error?.message)) return Response.json({ done: false });
        throw error;
      }
    },
  };
}
