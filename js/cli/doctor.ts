/** `doctor`: what this runtime can do. */

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { modelFacts, openSession, version } from "../entry/main.js";
import { estimateTokens } from "../entry/tokens-inline.js";
import { fileStore } from "../entry/node.js";
import { EXIT } from "./exit.js";
import type { Terminal } from "./terminal.js";
import type { Given } from "./usage.js";

interface Check {
  name: string;
  ok: boolean;
  detail: string;
}

const NEEDED = [20, 19];

const CHECKS: [string, () => Promise<string> | string][] = [
  [
    "Node",
    () => {
      const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
      const [least = 0, then = 0] = NEEDED;
      if (major < least || (major === least && minor < then)) throw new Error(`${process.versions.node}; ${NEEDED.join(".")} or later is needed`);
      return `${process.versions.node} on ${process.platform} ${process.arch}`;
    },
  ],
  ["engine", () => `${version()}, in WebAssembly`],
  ["models", async () => (await modelFacts("gpt-4o")).source],
  ["tokens", () => `${estimateTokens("Hello, world!")} in "Hello, world!", estimated`],
  ["files", stores],
];

/** Stores a message, and reads it in another session. */
async function stores(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "context-compactor-"));
  try {
    for (const round of [0, 1]) {
      const store = fileStore(folder);
      const session = await openSession({ id: "doctor", store, contextWindow: 8_000, logger: () => {} });
      if (round === 0) await session.append({ role: "user", content: "Hello." });
      else if (session.archive.metadata().totalMessages !== 1) throw new Error("what was written is not there");
      await session.close();
      await store.close?.();
    }
    return `a session in ${tmpdir()} was written, synced and read`;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export async function doctor(_given: Given, terminal: Terminal): Promise<number> {
  const checks: Check[] = [];
  for (const [name, check] of CHECKS) {
    terminal.progress(name);
    try {
      checks.push({ name, ok: true, detail: await check() });
    } catch (error) {
      checks.push({ name, ok: false, detail: (error as Error).message });
    }
  }
  const ok = checks.every((check) => check.ok);
  terminal.object("doctor", { ok, checks });
  terminal.table(checks.map((check) => [check.ok ? "ok" : "FAILS", check.name, check.detail]));
  return ok ? EXIT.fine : EXIT.problems;
}
