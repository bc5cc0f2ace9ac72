/** `npm run fix`: formats, and applies the fixes that the lints know. What they leave is shown. */

import { join } from "node:path";
import { must, root, run, say, script } from "./process.mjs";
import { setup, spellChecker } from "./setup.mjs";

await script(async () => {
  await setup({ tools: true });
  say("fix", "clippy");
  await must("cargo", ["clippy", "--quiet", "--workspace", "--all-targets", "--fix", "--allow-dirty", "--allow-staged"]);
  say("fix", "rustfmt");
  await must("cargo", ["fmt", "--all"]);
  say("fix", "spelling");
  await run(spellChecker, ["--write-changes"]);
  say("fix", "JavaScript");
  await run(process.execPath, [join(root, "node_modules/oxlint/bin/oxlint"), "--fix"]);
});
