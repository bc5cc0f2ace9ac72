/** Pages of rows: as a caller of the mirror sees them, and one of both copies, compared. */

import type { Key } from "../../types.js";
import { compareKeys, isDamaged } from "../keys.js";
import type { ScanOptions, Value } from "../keys.js";
import type { Copy } from "./mark.js";
import { isOwn, MARK_OPS, RESERVED } from "./own.js";
import { isLost, isSame } from "./rows.js";

const PAGE = { limit: 100, maxBytes: 1024 * 1024 };

/** Rows of both copies up to `end`, which is `undefined` after the last one: how many there are, and those that one has lost,
 *  that both have, and that differ. */
export interface Compared {
  end: Key | undefined;
  rows: number;
  lostByFirst: Key[];
  lostBySecond: Key[];
  lost: Key[];
  differing: Key[];
}

/** Compares a page of a table, after `after`, in both turns. */
export async function comparePage(first: Copy, second: Copy, table: string, after: Key | undefined): Promise<Compared> {
  const options = { ...PAGE, ...(after && { after }) };
  const pages = [await visible(first, [table], options), await visible(second, [table], options)];
  // As far as both were read.
  const ends = pages.flatMap((rows) => (rows.length > 0 ? [rows.at(-1)![0]] : []));
  const end = ends.sort(compareKeys)[0];
  const [ours, others] = pages.map((rows) => new Map(rows.map(([key, value]) => [JSON.stringify(key), value])));
  const all = new Map(pages.flat().map(([key]) => [JSON.stringify(key), key]));
  const keys = [...all].filter(([, key]) => end && compareKeys(key, end) <= 0);
  const where = (wanted: (a: Value | undefined, b: Value | undefined) => boolean) =>
    keys.filter(([name]) => wanted(ours!.get(name), others!.get(name))).map(([, key]) => key);
  return {
    end,
    rows: keys.length,
    lostByFirst: where((a, b) => isLost(a) && !isLost(b)),
    lostBySecond: where((a, b) => !isLost(a) && isLost(b)),
    lost: where((a, b) => isLost(a) && isLost(b)),
    differing: where((a, b) => !isLost(a) && !isLost(b) && !isSame(a, b)),
  };
}

/** The rows of a copy without those that are the mirror's own. */
export async function visible(copy: Copy, prefix: Key, options: ScanOptions): Promise<[Key, Value][]> {
  if (prefix.length > 1 || prefix[0] !== RESERVED[0]) return copy.ask((store) => store.scan(prefix, options));
  const { limit, maxBytes } = options;
  const rows: [Key, Value][] = [];
  for (let { after } = options; ; ) {
    const page = { ...options, ...(after && { after }), limit: limit + MARK_OPS, maxBytes: maxBytes + MARK_BYTES };
    const found = await copy.ask((store) => store.scan(prefix, page));
    rows.push(...found.filter(([key]) => !isOwn(key)));
    // The mirror's own rows may have taken all of it.
    if (rows.length > 0 || found.length === 0) return cut(rows, options);
    after = found.at(-1)![0];
  }
}

/** What the rows of a mark may take in a page, beside others. */
const MARK_BYTES = 256 * 1024;

/** What of `rows` a page has room for. */
export function cut(rows: [Key, Value][], { limit, maxBytes }: ScanOptions): [Key, Value][] {
  let bytes = 0;
  const end = rows.findIndex(([, value], i) => {
    bytes += isDamaged(value) ? 0 : value.byteLength;
    return i === limit || (i > 0 && bytes > maxBytes);
  });
  return end < 0 ? rows : rows.slice(0, end);
}
