/** What the tables of every database have in common. */

/** Versions 100 to 199 can be read and written by every release that knows one of them. */
export const SCHEMA = 100;
export const SCHEMA_END = 200;

/** Longer values are in parts of so many bytes: SQLite of Cloudflare takes values of 2 MB. */
export const PART_BYTES = 1024 * 1024;

/** Largest value. An isolate has 128 MB for everything: a value, the copies on its way, and the engine. */
export const MAX_VALUE_BYTES = 16 * 1024 * 1024;
