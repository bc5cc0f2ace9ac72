/** The stores of Node, each as a place that `open()` opens anew and `remove()` removes. A new store is a line here. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { memoryStore } from "context-compactor";
import * as node from "context-compactor/node";

async function memory() {
  const store = memoryStore();
  return { open: () => store, remove: async () => {} };
}

/** Lasts as long as its files. */
async function file() {
  const folder = await mkdtemp(join(tmpdir(), "context-compactor-files-"));
  const opened = [];
  return {
    folder,
    open() {
      opened.push(node.fileStore(folder));
      return opened.at(-1);
    },
    async remove() {
      await Promise.all(opened.map((store) => store.close()));
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

export const stores = { memory, file };
/** Those that outlive a process. */
export const durable = { file };
