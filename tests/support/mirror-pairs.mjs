/** Pairs of simulated disks with a mirror over them, and sessions over that. */

import { summariser } from "./api.mjs";
import { Disk, loadMirror } from "./mirror.mjs";
import { openSession } from "./offload.mjs";

export const library = await loadMirror();

export const disks = () => [new Disk(library), new Disk(library)];

export const over = ([one, two], options, process) =>
  library.mirrorStore(one.open(process), two.open(process), options);

/** A session over `store`, with what it tells. */
export async function session(store, id = "s") {
  const opened = await openSession({ id, store, contextWindow: 32_000, summarize: summariser() });
  const told = [];
  opened.on("data-loss", ({ kind, reason }) => told.push({ kind, reason }));
  opened.on("warning", (warning) => told.push(warning));
  return Object.assign(opened, { told });
}

export async function collect(items) {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}

export const moment = () => new Promise((resolve) => setTimeout(resolve, 20));
