/**
 * The statements of the store, in the words of both dialects. There is one table. A row of the contract is its part 0, with
 * the version, the whole size, and the first `PART_BYTES` of the value; further parts have a number and bytes alone. So one
 * statement reads a value whole, however long it is, and from one moment.
 */

import { invalidOption } from "../../checks.js";
import type { Range } from "../durable/key.js";
import { PART_BYTES, SCHEMA } from "../durable/parts.js";
import type { SqlValue } from "../durable/platform.js";
import type { SqlDriver, SqlStatement } from "./platform.js";

/** D1 takes 100 values in a statement, and SQLite nests expressions to 1,000. */
const MOST_VALUES = 96;
/** The values of one statement have so many bytes, or are one. */
const MOST_BYTES = PART_BYTES;

/** A key as the table has it. */
export type Encoded = Uint8Array<ArrayBuffer>;

export interface Expected {
  key: Encoded;
  version: number | null;
}

/** The turn of whoever lost a race: a row under `key` with the races that were lost in place of a version. */
export interface Turn {
  key: Encoded;
  /** Whose it is. */
  id: Encoded;
  /** It may be ours, or over. */
  ends: boolean;
  /** That of others is waited for. */
  waits: boolean;
}

/** Throws unless it may be the name of the table. */
export function checkTable(table: unknown): asserts table is string {
  if (typeof table === "string" && /^[A-Za-z_]\w*(\.[A-Za-z_]\w*)?$/.test(table)) return;
  throw invalidOption("table", "must be a name of letters, digits and `_`, with that of a schema before a point if wanted");
}

export class Statements {
  readonly #table: string;
  readonly #isPostgres: boolean;

  constructor(table: string, dialect: SqlDriver["dialect"]) {
    this.#table = table;
    this.#isPostgres = dialect === "postgres";
  }

  /** Makes the table, and says which schema it has in a row that sorts before all others. */
  create(): SqlStatement[] {
    const [bytes, whole, end] = this.#isPostgres ? ["BYTEA", "BIGINT", ""] : ["BLOB", "INTEGER", " WITHOUT ROWID"];
    const columns = `key ${bytes} NOT NULL, part INTEGER NOT NULL, version ${whole} NOT NULL, size ${whole} NOT NULL, value ${bytes} NOT NULL`;
    const none = this.#none;
    return [
      { text: `CREATE TABLE IF NOT EXISTS ${this.#table} (${columns}, PRIMARY KEY (key, part))${end}`, values: [] },
      {
        text: `INSERT INTO ${this.#table} (key, part, version, size, value) VALUES (${none}, 0, ${SCHEMA}, 0, ${none}) ON CONFLICT DO NOTHING`,
        values: [],
      },
    ];
  }

  schema(): SqlStatement {
    return { text: `SELECT version FROM ${this.#table} WHERE key = ${this.#none} AND part = 0`, values: [] };
  }

  /** All parts of the rows of `keys`, in order. */
  read(keys: readonly Encoded[]): SqlStatement[] {
    return pieces(keys, MOST_VALUES).map((some) =>
      this.#make((add) => `SELECT key, part, value FROM ${this.#table} WHERE key IN (${some.map(add).join(", ")}) ORDER BY key, part`),
    );
  }

  versions(keys: readonly Encoded[]): SqlStatement[] {
    return pieces(keys, MOST_VALUES).map((some) =>
      this.#make((add) => `SELECT key, version FROM ${this.#table} WHERE part = 0 AND key IN (${some.map(add).join(", ")})`),
    );
  }

  keys({ low, high }: Range, limit: number, isReverse: boolean): SqlStatement {
    return this.#make(
      (add) => `SELECT key FROM ${this.#table} WHERE part = 0 AND key >= ${add(low)} AND key < ${add(high)}
        ORDER BY key ${isReverse ? "DESC" : "ASC"} LIMIT ${add(limit)}`,
    );
  }

  /** The parts of the first rows of a range, up to a sum of bytes; of one row at least. */
  scan({ low, high }: Range, limit: number, maxBytes: number, isReverse: boolean): SqlStatement {
    const order = isReverse ? "DESC" : "ASC";
    return this.#make(
      (add) => `SELECT kept.key AS key, kept.part AS part, kept.value AS value FROM (
          SELECT key, SUM(size) OVER (ORDER BY key ${order}) AS total, ROW_NUMBER() OVER (ORDER BY key ${order}) AS nth FROM (
            SELECT key, size FROM ${this.#table} WHERE part = 0 AND key >= ${add(low)} AND key < ${add(high)}
            ORDER BY key ${order} LIMIT ${add(limit)}) AS sized
        ) AS page JOIN ${this.#table} AS kept ON kept.key = page.key
        WHERE page.nth = 1 OR page.total <= ${add(maxBytes)} ORDER BY kept.key ${order}, kept.part`,
    );
  }

  /** A batch. A list of statements has no `if`: an expectation that does not hold inserts a row without a version, which the
   *  table refuses, and with it the transaction. */
  write(
    expect: readonly Expected[],
    puts: readonly (readonly [Encoded, Uint8Array])[],
    deletes: readonly Encoded[],
    turn?: Turn,
  ): SqlStatement[] {
    const [first = [], ...more] = pieces(expect, MOST_VALUES / 2 - 1);
    const guards = [this.#guard(first, turn?.waits ? turn : undefined), ...more.map((some) => this.#guard(some))];
    const ended = turn?.ends ? [this.#make((add) => `DELETE FROM ${this.#table} WHERE key = ${add(turn.key)}`)] : [];
    const gone = pieces(deletes, MOST_VALUES).map((some) =>
      this.#make((add) => `DELETE FROM ${this.#table} WHERE key IN (${some.map(add).join(", ")})`),
    );
    const replaced = pieces(puts, MOST_VALUES).map((some) =>
      this.#make((add) => `DELETE FROM ${this.#table} WHERE part > 0 AND key IN (${some.map(([key]) => add(key)).join(", ")})`),
    );
    return [...guards.filter(({ values }) => values.length > 0), ...ended, ...gone, ...replaced, ...this.#puts(puts)];
  }

  /** Takes the turn from whoever lost fewer races. */
  take({ key, id }: Turn, lost: number): SqlStatement {
    return this.#make(
      (add) => `INSERT INTO ${this.#table} AS kept (key, part, version, size, value) VALUES (${add(key)}, 0, ${lost}, 0, ${add(id)})
        ON CONFLICT (key, part) DO UPDATE SET version = excluded.version, value = excluded.value WHERE kept.version < excluded.version`,
    );
  }

  #guard(expect: readonly Expected[], turn?: Turn): SqlStatement {
    return this.#make((add) => {
      const broken = expect.map(({ key, version }) => {
        const found = `EXISTS (SELECT 1 FROM ${this.#table} WHERE part = 0 AND key = ${add(key)}`;
        return version === null ? `${found})` : `NOT ${found} AND version = ${add(version)})`;
      });
      if (turn) {
        broken.push(`EXISTS (SELECT 1 FROM ${this.#table} WHERE part = 0 AND key = ${add(turn.key)} AND value <> ${add(turn.id)})`);
      }
      const none = this.#none;
      const version = this.#isPostgres ? "NULL::bigint" : "NULL";
      return `INSERT INTO ${this.#table} (key, part, version, size, value)
        SELECT ${none}, 0, ${version}, 0, ${none} WHERE ${broken.join(" OR ")}`;
    });
  }

  *#puts(puts: readonly (readonly [Encoded, Uint8Array])[]): Generator<SqlStatement> {
    let some: (readonly [Encoded, Uint8Array])[] = [];
    let bytes = 0;
    for (const put of puts) {
      const size = Math.min(put[1].byteLength, PART_BYTES);
      if (some.length > 0 && (some.length * 3 >= MOST_VALUES || bytes + size > MOST_BYTES)) {
        yield this.#put(some);
        [some, bytes] = [[], 0];
      }
      some.push(put);
      bytes += size;
    }
    if (some.length > 0) yield this.#put(some);
    for (const [key, value] of puts) {
      for (let part = 1; part * PART_BYTES < value.byteLength; part++) {
        const bytes = value.subarray(part * PART_BYTES, (part + 1) * PART_BYTES);
        yield this.#make(
          (add) => `INSERT INTO ${this.#table} (key, part, version, size, value) VALUES (${add(key)}, ${part}, 0, 0, ${add(bytes as Encoded)})`,
        );
      }
    }
  }

  #put(rows: readonly (readonly [Encoded, Uint8Array])[]): SqlStatement {
    return this.#make((add) => {
      const values = rows.map(([key, value]) => {
        const first = value.subarray(0, PART_BYTES) as Encoded;
        // Bound as a value, some clients take no bytes for NULL.
        return `(${add(key)}, 0, 1, ${value.byteLength}, ${first.byteLength === 0 ? this.#none : add(first)})`;
      });
      return `INSERT INTO ${this.#table} AS kept (key, part, version, size, value) VALUES ${values.join(", ")}
        ON CONFLICT (key, part) DO UPDATE SET version = kept.version + 1, size = excluded.size, value = excluded.value`;
    });
  }

  /** No bytes. */
  get #none(): string {
    return this.#isPostgres ? "'\\x'::bytea" : "x''";
  }

  #make(write: (add: (value: SqlValue) => string) => string): SqlStatement {
    const values: SqlValue[] = [];
    const text = write((value) => {
      values.push(value);
      return this.#isPostgres ? `$${values.length}` : "?";
    });
    return { text, values };
  }
}

function pieces<T>(items: readonly T[], most: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / most) }, (_, i) => items.slice(i * most, (i + 1) * most));
}
