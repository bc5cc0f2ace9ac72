/** `npm run fix`: formats, and applies the fixes that the lints know. */

import { must, say, script } from "./process.mjs";

await script(async () => {
  say("fix", "clippy");
  await must("cargo", ["clippy", "--quiet", "--workspace", "--all-targets", "--fix", "--allow-dirty", "--allow-staged"]);
  say("fix", "rustfmt");
  await must("cargo", ["fmt", "--all"]);
});
