/** `npm run watch`: `npm run quick` again on every save. */

import { watch } from "node:fs";
import { join } from "node:path";
import { root, say, script } from "./process.mjs";
import { quick } from "./quick.mjs";

const FOLDERS = ["crates", "src", "js", "tests"];

/** What the build writes is no change. */
const MADE = /^wasm[/\\]|node_modules|target/;

/** An editor saves several files at once. */
const QUIET_MS = 300;

await script(async () => {
  let isRunning = false;
  let isDue = false;
  let timer;
  const again = async () => {
    if (isRunning) return void (isDue = true);
    [isRunning, isDue] = [true, false];
    await quick().catch((error) => say("watch", error.message));
    isRunning = false;
    if (isDue) await again();
    else say("watch", "waiting for a change");
  };
  for (const folder of FOLDERS) {
    watch(join(root, folder), { recursive: true }, (_, name) => {
      if (name && MADE.test(name)) return;
      clearTimeout(timer);
      timer = setTimeout(again, QUIET_MS);
    });
  }
  await again();
  await new Promise(() => {});
});
