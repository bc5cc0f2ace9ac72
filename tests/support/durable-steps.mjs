/** What the checks of the store of Durable Objects are made of. */

export const MIB = 1024 * 1024;
/** Over the bound for objects, and one piece of SQLite. */
export const BIG = 300 * 1024;

export const key = (n) => ["blobs", "s", "b", n];
const none = { expect: [], puts: [], deletes: [], durability: "strict" };

export function bytes(size, seed = 1) {
  const made = new Uint8Array(size);
  for (let i = 0; i < size; i++) made[i] = i * 31 + seed * 7 + (i >> 8);
  return made;
}

export const commit = (store, batch) => store.commit({ ...none, ...batch });
export const put = (store, n, size, seed) => commit(store, { puts: [[key(n), bytes(size, seed)]] });
export const outcome = (promise) => promise.then(() => undefined, (error) => error);
export const all = (store) => store.scan(["blobs"], { limit: 10_000, maxBytes: 64 * MIB });

/** Sizes and digests of all values by key. */
export async function contents(store) {
  const digest = async (value) => String(new Uint8Array(await crypto.subtle.digest("SHA-256", value)));
  return Promise.all((await all(store)).map(async ([key, value]) => [key, value.length, await digest(value)]));
}

export async function names(bucket) {
  return (await bucket.list()).objects.map(({ key }) => key);
}

export const ledger = (ctx) => ctx.storage.sql.exec("SELECT name, state FROM context_compactor_objects").toArray();
export const makeOld = (ctx) => ctx.storage.sql.exec("UPDATE context_compactor_objects SET since = 0");
/** What a store does for what was left behind, an hour later. */
export async function anHourLater(ctx, make) {
  makeOld(ctx);
  const store = make();
  await store.read([key(0)]);
  await store.close();
}
export const busy = () => Promise.reject(new Error("put: Reduce your rate of requests for the same object. (10058)"));
export const lost = () => Promise.reject(new Error("Network connection lost."));

/** Ends the object with everything that is not on disk. */
export function crash(ctx) {
  ctx.abort("a crash");
  return new Promise(() => {});
}
