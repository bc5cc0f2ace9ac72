/** A journal of the rows that there are, without what was replaced or deleted. */

import { bytesOf } from "./bytes.js";
import type { File } from "./files.js";
import type { Journal } from "./journal.js";
import { encode, randomId, title } from "./record.js";
import type { Put } from "./record.js";
import type { Row } from "./rows.js";

/** Large enough that most of the file is values, which nobody has to read to open it. */
const RECORD_BYTES = 4 * 1024 * 1024;
const RECORD_ROWS = 1_000;

/**
 * Writes a journal of `rows`, whose values are in `from`, and syncs it. A damaged row stays one, without its value. False
 * when what is left of something is in the file of `from` alone.
 */
export async function writeJournal(handle: File, rows: Row[], from: Journal | undefined): Promise<boolean> {
  const id = randomId();
  let at = await writeAll(handle, bytesOf(title(id)));
  let seq = 0;
  let whole = true;
  // What is missing and was not reported yet must be.
  const lost = from?.lost.length ? [...from.lost] : undefined;
  for (const part of parts(rows, lost !== undefined)) {
    const values: Uint8Array[] = [];
    const puts: Put[] = [];
    for (const [i, value] of ((await from?.values(part)) ?? []).entries()) {
      const { key, version, bytes, crc, kept } = part[i]!;
      if (value instanceof Uint8Array) {
        puts.push([key, version, bytes, crc]);
        values.push(value);
      } else {
        puts.push([key, version, 0, 0, kept ?? from!.number]);
        whole &&= kept !== undefined;
      }
    }
    const record = { at, after: at, seq: ++seq, nonce: "", puts, deletes: [], base: true as const };
    at += await writeAll(handle, encode(id, seq === 1 && lost ? { ...record, lost } : record, values).bytes);
  }
  await handle.sync();
  return whole && !from?.incomplete;
}

/** `rows` in as many records as they need; `some` when there must be one. */
function* parts(rows: Row[], some: boolean): Generator<Row[]> {
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
  if (part.length > 0 || (some && rows.length === 0)) yield part;
}

/** Returns the bytes written: all of them. */
async function writeAll(handle: File, bytes: Uint8Array): Promise<number> {
  for (let written = 0; written < bytes.length;) {
    written += (await handle.write(bytes, written)).bytesWritten;
  }
  return bytes.length;
}
