/**
 * The pictures of the docs: `npm run pictures -w www`. The demo's first screen, wide and narrow, light and dark, and the
 * command line's report.
 */

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { launch } from "../tests/support/browser.mjs";
import { serve } from "../tests/support/serve.mjs";

const SIZES = [
  [1280, 800],
  [768, 1024],
  [360, 800],
];
const root = fileURLToPath(new URL("../", import.meta.url));
const folder = join(root, "docs/pictures");
const site = mkdtempSync(join(tmpdir(), "pictures-"));
mkdirSync(folder, { recursive: true });
await build({ root: join(root, "www"), logLevel: "error", build: { outDir: site, emptyOutDir: true } });
const cli = [join(root, "pkg/node/cli/main.js"), "replay", "invoicing-run.json", "--window", "32k", "--report", join(site, "replay.html")];
execFileSync(process.execPath, cli, { cwd: join(root, "www/public/transcripts"), stdio: "ignore" });
const server = await serve(site);
const browser = await launch("chrome");
try {
  for (const [width, height] of SIZES) {
    for (const scheme of ["light", "dark"]) {
      // Whoever comes for the first time has no session.
      const page = await (await browser.createBrowserContext()).newPage();
      await page.setViewport({ width, height });
      await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
      await page.goto(`${server.url}/`);
      await page.waitForFunction(() => document.querySelector(".rows") && /Play/.test(document.querySelector(".play").textContent), { polling: 50 });
      await save(page, `demo-${width}-${scheme}`);
    }
  }
  const page = await browser.newPage();
  await page.setViewport({ width: 960, height: 720 });
  await page.goto(`${server.url}/replay.html`);
  await save(page, "replay");
} finally {
  await browser.close();
  await server.close();
  rmSync(site, { recursive: true, force: true });
}

async function save(page, name) {
  const path = join(folder, `${name}.webp`);
  await page.screenshot({ path, type: "webp", quality: 45 });
  console.log(`${name}: ${Math.round(statSync(path).size / 1_000)} KB`);
}
