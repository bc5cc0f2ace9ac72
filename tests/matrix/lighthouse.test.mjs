/**
 * The demo's first page as Lighthouse judges it, which npm installs: what it brings along would change what other tests have. How
 * the page loads, on the slow network that Lighthouse simulates, is printed.
 */

import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "vite";
import { exec, temporaryFolder } from "../packaging/project.mjs";
import { launch } from "../support/browser.mjs";
import { serve } from "../support/serve.mjs";

/** The newest that runs in Node 20. */
const LIGHTHOUSE = "12.8.2";
/** Of 100. */
const LEAST = 95;
const ASSERTED = ["accessibility", "best-practices"];
const SCREENS = {
  desktop: { mobile: false, width: 1280, height: 800, deviceScaleFactor: 1, disabled: false },
  mobile: { mobile: true, width: 360, height: 800, deviceScaleFactor: 2, disabled: false },
};
const FIGURES = ["first-contentful-paint", "largest-contentful-paint", "speed-index", "total-blocking-time", "cumulative-layout-shift"];

test(`Lighthouse gives the demo's first page at least ${LEAST} for accessibility and best practices`, async (context) => {
  const folder = await temporaryFolder(context);
  await writeFile(join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
  await exec("npm", ["install", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund", `lighthouse@${LIGHTHOUSE}`], { cwd: folder });
  const { default: lighthouse } = await import(pathToFileURL(join(folder, "node_modules/lighthouse/core/index.js")).href);
  const outDir = join(folder, "site");
  await mkdir(outDir);
  await build({ root: fileURLToPath(new URL("../../www/", import.meta.url)), logLevel: "error", build: { outDir, emptyOutDir: true } });
  const server = await serve(outDir);
  context.after(() => server.close());
  const browser = await launch("chrome");
  context.after(() => browser.close());
  const port = Number(new URL(browser.wsEndpoint()).port);
  for (const [formFactor, screenEmulation] of Object.entries(SCREENS)) {
    const { lhr } = await lighthouse(`${server.url}/`, { port, onlyCategories: [...ASSERTED, "performance"], formFactor, screenEmulation, logLevel: "error" });
    assert.equal(lhr.runtimeError, undefined);
    const scores = Object.entries(lhr.categories).map(([name, { score }]) => `${name} ${Math.round(score * 100)}`);
    const figures = FIGURES.map((id) => `${lhr.audits[id].title} ${lhr.audits[id].displayValue}`);
    context.diagnostic(`${formFactor}: ${[...scores, ...figures].join(", ")}`);
    for (const name of ASSERTED) {
      const { score, auditRefs } = lhr.categories[name];
      const faults = auditRefs.filter(({ id, weight }) => weight > 0 && lhr.audits[id].score !== null && lhr.audits[id].score < 1).map(({ id }) => id);
      assert.ok(score * 100 >= LEAST, `${formFactor}, ${name}: ${score * 100}, for ${faults}`);
    }
  }
});
