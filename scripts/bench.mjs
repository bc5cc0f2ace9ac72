/** `npm run bench`: sets up, builds, and runs the benches; `npm run bench -- NAME …` runs those named. */

import { build } from "./build.mjs";
import { Problem, run, script } from "./process.mjs";
import { setup } from "./setup.mjs";

await script(async () => {
  await setup({ tools: true });
  await build();
  const { ok } = await run(process.execPath, ["--expose-gc", "bench/run.mjs", ...process.argv.slice(2)]);
  if (!ok) throw new Problem("bench: failed");
});
