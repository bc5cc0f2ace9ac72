/** What tests of encryption at rest share: keys, rows, and what is at rest. */

import * as library from "./offload.mjs";

export const strict = { expect: [], puts: [], deletes: [], durability: "strict" };
export const everything = { limit: 10_000, maxBytes: 1 << 30 };
const TABLES = ["meta", "sessions", "log", "blobs", "views", "jobs"];

export const makeKey = (extractable = false) =>
  crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, extractable, ["encrypt", "decrypt"]);

export const text = (string) => new TextEncoder().encode(string);
export const put = (store, ...rows) => store.commit({ ...strict, puts: rows.map(([key, value]) => [key, text(value)]) });
export const refused = (code, field) => (error) =>
  library.CompactionError.isInstance(error) && error.code === code && (!field || error.field === field);

/** Every row of a store as it is at rest. */
export async function atRest(store) {
  const rows = await Promise.all(TABLES.map((table) => store.scan([table], everything)));
  return rows.flat();
}
export const kinds = (values) => values.map((value) => (value?.damaged ? "damaged" : value && new TextDecoder().decode(value)));
