/** Making Chromium begin another log file, for what it may have left after a kill. */

/** Of a database that is there only while it is made and deleted. */
const NAME = "context-compactor/rotation";
let isRotated = false;

/**
 * To be called before a write; the first one of a page counts. Chromium keeps databases in LevelDB, which goes on with
 * the log of the run before. Where a kill ended that within a record, what is written after it is not found at the next
 * start, or is taken for damage that costs the whole database (google/leveldb#1287). Deleting a database makes it go on in
 * another log. That is not waited for: it takes milliseconds, and a write before it is only as safe as it was. It is done
 * once, as on a full disk it fails, and what fails there may cost the database too.
 */
export function rotateLog(): void {
  // Chromium alone has this property; others keep no such log.
  if (isRotated || !globalThis.IDBVersionChangeEvent || !("dataLoss" in IDBVersionChangeEvent.prototype)) return;
  isRotated = true;
  const request = indexedDB.open(NAME);
  request.onsuccess = () => {
    request.result.close();
    indexedDB.deleteDatabase(NAME);
  };
}
