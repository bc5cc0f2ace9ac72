/**
 * Flipped bits under sessions: `CC_FLIPS` in the files of a store, in the clear and encrypted, and `CC_BROWSER_FLIPS` in those
 * of each browser's databases; `CC_ENGINES` names some of these, `CC_FLIPS_SEED` says which bits. Prints a line `count {…}`
 * for each, and the problems that were found.
 */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { flipBrowser } from "../support/browser-flips.mjs";
import { DRIVEN } from "../support/engines.mjs";
import { encryptedStore } from "../support/offload.mjs";
import { generator } from "../support/random.mjs";
import { flipSessions, makeSessions } from "../support/session-flips.mjs";

const flips = Number(process.env.CC_FLIPS ?? 1_000);
const databases = Number(process.env.CC_BROWSER_FLIPS ?? 60);
const seed = Number(process.env.CC_FLIPS_SEED ?? 1);
const encryptionKey = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt", "decrypt"]);

/** The first problem ends it: what the sessions were is compared with what they are. */
async function flipFiles(of, over) {
  const directory = await mkdtemp(join(tmpdir(), "context-compactor-flips-"));
  const random = generator(seed);
  try {
    await makeSessions(directory, over);
    const counts = await flipSessions(directory, over, function* (bits) {
      for (let nth = 0; nth < flips; nth++) yield random(bits);
    });
    return { counts: { check: "flips", of, seed, ...counts, failures: 0 }, problems: [] };
  } finally {
    await rm(directory, { recursive: true });
  }
}

const runs = {
  file: () => flipFiles("file", (inner) => inner),
  "file-encrypted": () => flipFiles("file-encrypted", (inner) => encryptedStore(inner, { encryptionKey })),
  ...Object.fromEntries(Object.keys(DRIVEN).map((engine) => [engine, () => flipBrowser(engine, { flips: databases, seed })])),
};
const chosen = process.env.CC_ENGINES ? process.env.CC_ENGINES.split(",") : Object.keys(runs);

for (const engine of chosen) {
  const failed = (error) => ({ counts: { check: "flips", of: engine, seed, failures: 1 }, problems: [error.stack] });
  const { counts, problems } = await runs[engine]().catch(failed);
  for (const problem of problems.slice(0, 20)) console.log(`${engine}: ${problem}`);
  console.log(`count ${JSON.stringify(counts)}`);
  if (problems.length > 0) process.exitCode = 1;
}
