/** `npm run size`: sizes of what is shipped, compared with the committed snapshot (`-- --update` writes it). */

import { Problem, run, script } from "./process.mjs";
import { setup } from "./setup.mjs";

await script(async () => {
  await setup();
  const { ok } = await run("cargo", ["xtask", "size", ...process.argv.slice(2)]);
  if (!ok) throw new Problem("size: failed");
});
