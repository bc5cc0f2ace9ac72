/**
 * The storage of one Durable Object in memory, as `ctx`, and its bucket. There is no SQLite in the oldest Node that the
 * tests run on: the tables do what the statements of `js/store/durable/tables.ts` ask, one by one, and refuse any other.
 * A transaction counts at once and is on the disk later, in order; what ends the object takes back those that are not.
 */

const text = (statement) => statement.replace(/\s+/g, " ").trim();
const hexOf = (bytes) => Buffer.from(bytes).toString("hex");
const copyOf = (bytes) => (bytes === null ? null : Uint8Array.from(bytes).buffer);

const ROWS = "context_compactor_rows";
const PARTS = "context_compactor_parts";
const OBJECTS = "context_compactor_objects";

/** Rows of a table, by a text that sorts as they do; what changes them can be taken back. */
class Table {
  rows = new Map();

  set(undo, name, row) {
    const before = this.rows.get(name);
    undo.push(() => (before ? this.rows.set(name, before) : this.rows.delete(name)));
    if (row) this.rows.set(name, row);
    else this.rows.delete(name);
  }

  get sorted() {
    return [...this.rows].sort(([a], [b]) => (a < b ? -1 : 1));
  }
}

export class Sqlite {
  #world;
  #tables = { meta: new Table(), [ROWS]: new Table(), [PARTS]: new Table(), [OBJECTS]: new Table() };
  /** Of the transaction that is running. */
  #undo;
  /** What takes back each transaction that is not on the disk yet. */
  #unconfirmed = [];
  bucket = new Map();
  full = false;
  /** One in so many statements, answers of `sync` or of the bucket fails; 0 for none. */
  fails = 0;
  failsToSync = 0;

  constructor(world) {
    this.#world = world;
  }

  /** What the constructor of the object gets, and its bucket. */
  of(owner) {
    const sql = { exec: (query, ...bindings) => ({ toArray: () => this.#exec(owner, text(query), bindings) }) };
    const storage = {
      sql,
      transactionSync: (work) => this.#transaction(work),
      sync: () => {
        const until = this.#unconfirmed.at(-1);
        return this.#world.later(owner, () => {
          const isLost = this.failsToSync && this.#world.one(this.failsToSync);
          if (isLost && this.#world.one(2)) throw new Error("internal error");
          if (until && this.#unconfirmed.includes(until)) this.#unconfirmed.splice(0, this.#unconfirmed.indexOf(until) + 1);
          if (isLost) throw new Error("internal error");
        });
      },
    };
    return { ctx: { id: { toString: () => "object" }, storage }, bucket: this.#bucketOf(owner) };
  }

  #transaction(work) {
    const undo = (this.#undo = []);
    try {
      const result = work();
      if (undo.length > 0) this.#unconfirmed.push(undo);
      return result;
    } catch (error) {
      undo.reverse().forEach((back) => back());
      throw error;
    } finally {
      this.#undo = undefined;
    }
  }

  #exec(owner, query, bindings) {
    if (owner.dead) throw new Error("the object is gone");
    if (this.fails && this.#world.one(8 * this.fails)) throw new Error("disk I/O error: SQLITE_IOERR");
    if (this.full && /^INSERT INTO/.test(query)) throw new Error("database or disk is full: SQLITE_FULL");
    const statement = STATEMENTS.find(({ matches }) => matches.test(query));
    if (!statement) throw new Error(`the simulator has no such statement: ${query}`);
    // Outside of a transaction a statement is one.
    const run = () => statement.run(this.#tables, this.#undo, bindings, query);
    return this.#undo ? run() : this.#transaction(run);
  }

  /** Takes back some of what was not confirmed, the newest first. */
  end() {
    for (let left = this.#world.random(this.#unconfirmed.length + 1); left > 0; left--) {
      this.#unconfirmed.pop().reverse().forEach((back) => back());
    }
    this.#unconfirmed = [];
    this.#undo = undefined;
  }

  /** Flips a bit of a value, wherever it lies. */
  flip() {
    const rows = this.#tables[ROWS].sorted;
    const values = [
      ...rows.map(([key, { bytes }]) => ({ key, bytes })),
      ...this.#tables[PARTS].sorted.map(([name, { bytes }]) => ({ key: name.split(" ")[0], bytes })),
      ...[...this.bucket].map(([name, bytes]) => ({ key: rows.find(([, { object }]) => object === name)?.[0], bytes })),
    ].filter(({ bytes }) => bytes?.length > 0);
    if (values.length === 0) return undefined;
    const { key = "", bytes } = this.#world.pick(values);
    bytes[this.#world.random(bytes.length)] ^= 1 << this.#world.random(8);
    // A key begins with its table, between a tag and a zero.
    return `a value of ${Buffer.from(key, "hex").toString("latin1").slice(1).split("\0")[0]}`;
  }

  /** A value is at the place of another one, or an object is gone. */
  misdirect() {
    const rows = this.#tables[ROWS].sorted.map(([, row]) => row).filter(({ bytes }) => bytes?.length > 0);
    if (this.bucket.size > 0 && this.#world.one(3)) {
      this.bucket.delete(this.#world.pick([...this.bucket.keys()].sort()));
      return "an object is gone";
    }
    if (rows.length < 2) return undefined;
    const [from, to] = [this.#world.pick(rows), this.#world.pick(rows)];
    if (from === to) return undefined;
    Object.assign(to, { bytes: Uint8Array.from(from.bytes), size: from.size });
    return "a value at the place of another one";
  }

  #bucketOf(owner) {
    const objects = this.bucket;
    const use = (work) => (...args) =>
      this.#world.later(owner, () => {
        const isBusy = this.fails && this.#world.one(this.fails);
        // The answer may be lost, and the request not.
        if (isBusy && this.#world.one(2)) throw new Error("busy (10001)");
        const result = work(...args);
        if (isBusy) throw new Error("no answer (10001)");
        return result;
      }, undefined, () => this.#world.one(2) && work(...args));
    return {
      put: use((name, value) => {
        if (objects.has(name)) return null;
        objects.set(name, Uint8Array.from(value));
        return { size: value.byteLength };
      }),
      get: use((name) => (objects.has(name) ? { arrayBuffer: async () => Uint8Array.from(objects.get(name)).buffer } : null)),
      head: use((name) => (objects.has(name) ? { size: objects.get(name).byteLength } : null)),
      delete: use((names) => names.forEach((name) => objects.delete(name))),
    };
  }
}

/** Each statement of the store, in the words of its beginning and end. */
const STATEMENTS = [
  [/^CREATE TABLE IF NOT EXISTS /, () => []],
  [/^INSERT OR IGNORE INTO context_compactor_meta /, ({ meta }, undo, [schema]) => {
    if (!meta.rows.has("schema")) meta.set(undo, "schema", { value: schema });
    return [];
  }],
  [/^SELECT value FROM context_compactor_meta WHERE name = 'schema'$/, ({ meta }) => [...meta.rows.values()]],
  [/^SELECT key, size, object, bytes FROM context_compactor_rows WHERE key = \?$/, (tables, _, [key]) => {
    const row = tables[ROWS].rows.get(hexOf(key));
    return row ? [answered(row)] : [];
  }],
  [/^SELECT .* FROM context_compactor_rows WHERE key >= \? AND key < \? ORDER BY key (ASC|DESC) LIMIT \?$/, (tables, _, [low, high, limit], query) => {
    const [from, to] = [hexOf(low), hexOf(high)];
    const found = tables[ROWS].sorted.filter(([name]) => name >= from && name < to).map(([, row]) => row);
    if (/ORDER BY key DESC/.test(query)) found.reverse();
    const keysOnly = query.includes("0 AS size");
    return found.slice(0, limit).map((row) => (keysOnly ? { ...answered(row), size: 0, object: null, bytes: new ArrayBuffer(0) } : answered(row)));
  }],
  [/^SELECT version FROM context_compactor_rows WHERE key = \?$/, (tables, _, [key]) => {
    const row = tables[ROWS].rows.get(hexOf(key));
    return row ? [{ version: row.version }] : [];
  }],
  [/^SELECT object, bytes IS NULL AS apart FROM context_compactor_rows WHERE key = \?$/, (tables, _, [key]) => {
    const row = tables[ROWS].rows.get(hexOf(key));
    return row ? [{ object: row.object, apart: Number(row.bytes === null) }] : [];
  }],
  [/^INSERT INTO context_compactor_rows \(key, version, size, object, bytes\) VALUES \(\?, 1, .* DO UPDATE SET version = version \+ 1,/, (tables, undo, [key, size, object, bytes]) => {
    const version = (tables[ROWS].rows.get(hexOf(key))?.version ?? 0) + 1;
    tables[ROWS].set(undo, hexOf(key), { key: Uint8Array.from(key), version, size, object, bytes: bytes && Uint8Array.from(bytes) });
    return [];
  }],
  [/^DELETE FROM context_compactor_rows WHERE key = \?$/, (tables, undo, [key]) => {
    tables[ROWS].set(undo, hexOf(key), undefined);
    return [];
  }],
  [/^SELECT bytes FROM context_compactor_parts WHERE key = \? AND part = \?$/, (tables, _, [key, part]) => {
    const row = tables[PARTS].rows.get(`${hexOf(key)} ${part}`);
    return row ? [{ bytes: copyOf(row.bytes) }] : [];
  }],
  [/^INSERT INTO context_compactor_parts /, (tables, undo, [key, part, bytes]) => {
    if (tables[PARTS].rows.has(`${hexOf(key)} ${part}`)) throw new Error("UNIQUE constraint failed: SQLITE_CONSTRAINT");
    tables[PARTS].set(undo, `${hexOf(key)} ${part}`, { bytes: Uint8Array.from(bytes) });
    return [];
  }],
  [/^DELETE FROM context_compactor_parts WHERE key = \?$/, (tables, undo, [key]) => {
    for (const name of [...tables[PARTS].rows.keys()]) if (name.startsWith(`${hexOf(key)} `)) tables[PARTS].set(undo, name, undefined);
    return [];
  }],
  [/^INSERT OR REPLACE INTO context_compactor_objects /, (tables, undo, [name, state, since]) => {
    tables[OBJECTS].set(undo, name, { name, state, since });
    return [];
  }],
  [/^UPDATE context_compactor_objects SET state = 'dropped' WHERE state = 'staged' AND since < \?$/, (tables, undo, [time]) => {
    for (const [name, row] of tables[OBJECTS].sorted) {
      if (row.state === "staged" && row.since < time) tables[OBJECTS].set(undo, name, { ...row, state: "dropped" });
    }
    return [];
  }],
  [/^SELECT name FROM context_compactor_objects WHERE state = 'dropped' LIMIT \?$/, (tables, _, [limit]) =>
    tables[OBJECTS].sorted.map(([, row]) => row).filter(({ state }) => state === "dropped").slice(0, limit)],
  [/^DELETE FROM context_compactor_objects WHERE name = \? AND state = 'staged' RETURNING name$/, (tables, undo, [name]) => {
    if (tables[OBJECTS].rows.get(name)?.state !== "staged") return [];
    tables[OBJECTS].set(undo, name, undefined);
    return [{ name }];
  }],
  [/^DELETE FROM context_compactor_objects WHERE name = \?$/, (tables, undo, [name]) => {
    tables[OBJECTS].set(undo, name, undefined);
    return [];
  }],
].map(([matches, run]) => ({ matches, run }));

function answered({ key, size, object, bytes }) {
  return { key: copyOf(key), size, object, bytes: copyOf(bytes) };
}
