/** The suite of sessions, run against `context-compactor/worker` (P15). */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const HOOK = new URL("../support/through-worker.mjs", import.meta.url).href;

const FILES = [
  ...["append-prepare", "background", "calls", "changed", "codec", "custom-format", "damage", "delete-session", "diverged", "encryption", "erase", "fork"],
  ...["group-commit", "later", "lessons-sessions", "limits", "live", "losses", "offload", "opentelemetry", "prepared", "presets"],
  ...["provider-thread", "react", "recall", "recovery", "released", "session", "shared-session", "snapshots", "step", "tabs", "transcript"],
  ...["usage", "warnings"],
];

/** Tests that say what a session in a worker does otherwise: what is returned at once is as of the last answer, and a store of the
 *  page is two messages away, so that another handle on it that writes five hundred times a second is always faster. */
const OTHERWISE = {
  "shared-session": ["an append gets through although another writes all the time"],
  session: ["usage and plan count the system prompt before the first prepare"],
  usage: [
    "every provider's own usage object is understood",
    "what was learned is stored by close, explained, and of one model",
    "P25: a prompt that was reported has no bounds, and what comes after it those of the session's reports",
    "what says nothing is refused, and what cannot be the prompt is passed over with a warning",
  ],
};

for (const name of FILES) {
  test(`P15: ${name}.test.mjs passes with sessions in a worker`, async () => {
    const args = ["--import", HOOK, "--test-reporter=tap", at(`./${name}.test.mjs`)];
    const child = spawn(process.execPath, args, { env: { ...process.env, NODE_TEST_CONTEXT: "" }, stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    child.stdout.on("data", (text) => (said += text));
    await new Promise((ended) => child.on("close", ended));
    const failed = Array.from(said.matchAll(/^not ok \d+ - (.*?)(?: # .*)?$/gm), ([, title]) => title.replaceAll("\\#", "#"));
    assert.match(said, /^# pass [1-9]/m, said.slice(-2_000));
    assert.deepEqual(failed, OTHERWISE[name] ?? [], said.slice(0, 5_000));
  });
}
