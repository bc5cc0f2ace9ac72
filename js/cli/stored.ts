/** A folder of stored sessions, for the commands that use one. */

import { existsSync } from "node:fs";
import type { Store } from "../entry/main.js";
import { fileStore } from "../entry/node.js";
import { EXIT, Exit, wrongUsage } from "./exit.js";
import type { Given } from "./usage.js";

/** The folder of `--store`. */
export function folderOf({ store, command }: Pick<Given, "store" | "command">): string {
  if (store === undefined) throw wrongUsage(`${command} needs --store DIR, the folder of fileStore`);
  return store;
}

/** The same, of sessions that must be there: a store that is looked into is not made. */
export function existingFolderOf(given: Pick<Given, "store" | "command">): string {
  const folder = folderOf(given);
  if (!existsSync(folder)) throw new Exit(EXIT.input, `--store ${folder}: there is no such folder`);
  return folder;
}

export async function withStore<T>(folder: string, use: (store: Store) => Promise<T>): Promise<T> {
  const store = fileStore(folder);
  try {
    return await use(store);
  } finally {
    await store.close?.();
  }
}
