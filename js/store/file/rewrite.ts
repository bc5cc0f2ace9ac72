/** A journal of the rows that there are, without what was replaced or deleted. */

import type { FileHandle } from "node:fs/promises";
import type { Journal } from "./journal.js";
import { encode, randomId, title } from "./record.js";
import type { Row } from "./rows.js";

/** Large enough that most of the file is values, which nobody has to read to open it. */
const RECORD_BYTES = 4 * 1024 * 1024;
const RECORD_ROWS = 1_000;

/** Writes a journal of `rows`, whose values are in `from`, and syncs it. A damaged value is not copied: it throws. */
export async function writeJournal(handle: FileHandle, rows: Row[], from: Journal | undefined): Promise<void> {
  const id = randomId();
  let at = await writeAll(handle, Buffer.from(title(id)));
  let prev = "";
  let seq = 0;
  for (const part of parts(rows)) {
    const values = ((await from?.values(part)) ?? []) as Uint8Array[];
    const puts = part.map(({ key, version, bytes, crc }): [typeof key, number, number, number] => [key, version, bytes, crc]);
    const { bytes, sum } = encode(id, { at, seq: ++seq, prev, nonce: "", puts, deletes: [] }, values);
    at += await writeAll(handle, bytes);
    prev = sum;
  }
  await handle.sync();
}

function* parts(rows: Row[]): Generator<Row[]> {
  let part: Row[] = [];
  let bytes = 0;
  for (const row of rows) {
    if (part.length > 0 && (part.length === RECORD_ROWS || bytes + row.bytes > RECORD_BYTES)) {
      yield part;
      part = [];
      bytes = 0;
    }
    part.push(row);
    bytes += row.bytes;
  }
  if (part.length > 0) yield part;
}

/** Returns the bytes written: all of them. */
async function writeAll(handle: FileHandle, bytes: Buffer): Promise<number> {
  for (let written = 0; written < bytes.length;) {
    written += (await handle.write(bytes, written)).bytesWritten;
  }
  return bytes.length;
}
