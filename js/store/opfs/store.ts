/** The store of a browser's dedicated workers: the files of `fileStore`, in the private file system of the origin. */

import { checkOptions, invalidOption } from "../../checks.js";
import type { Batch, Store } from "../../types.js";
import { storeIn } from "../file/store.js";
import { isPersisted } from "../persistence.js";
import { sessionOf, Tabs } from "../tabs.js";
import type { Changed } from "../tabs.js";
import { OpfsDirectory } from "./directory.js";

/** Options of `opfsStore`. */
export interface OpfsOptions {
  /** Name of the directory, without `/` and `\`. Default: `context-compactor`. */
  name?: string;
  /** `strict` (default): an `append` resolves when it is on the disk. `relaxed`: no commit waits for the disk, so the last
   *  ones survive a crash of the browser, but not a power cut. */
  durability?: "strict" | "relaxed";
  /** The journal is rewritten when this many bytes of it, and at least half of it, belong to replaced or deleted values.
   *  At least 1. Default: 16 MiB. */
  rewriteBytes?: number;
}

/**
 * Stores sessions in files of the origin private file system (OPFS), in the format of `fileStore`. It works in a dedicated
 * worker only, because pages and shared workers cannot write these files in place. Workers of several tabs may use one name
 * at the same time. Best as the second copy of a `mirrorStore` over `indexedDbStore`; both are cleared with the site's data.
 *
 * Never falls back to another store: without OPFS, as in WebKitGTK, and outside a dedicated worker its methods reject with
 * `store_unavailable`. They also reject with `store_unavailable` when another tab does not let go of the files in 10 s, with
 * `quota_exceeded`, `store_corrupt` and `schema_too_new`. Throws `invalid_option`.
 */
export function opfsStore(options: OpfsOptions = {}): Store {
  checkOptions(options, ["name", "durability", "rewriteBytes"]);
  const { name = "context-compactor" } = options;
  if (typeof name !== "string" || /^\.{0,2}$|[/\\\0]/.test(name)) throw invalidOption("name", "must be the name of a directory");
  const store = storeIn(() => OpfsDirectory.open(name), options);
  const { commit } = store;
  const tabs = new Tabs();
  tabs.tune(`files/${name}/changes`);
  return Object.assign(store, {
    name: `files/${name}`,
    async commit(batch: Batch) {
      const written = sessionOf(batch);
      await commit(batch);
      if (written) tabs.tell(written.sid, written.ver);
    },
    changes: (listener: Changed) => tabs.listen(listener),
    persisted: isPersisted,
  });
}
