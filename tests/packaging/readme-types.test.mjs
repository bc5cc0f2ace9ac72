/** Every program of the READMEs and the docs, read by TypeScript with the packed packages and the SDKs' own types. */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { exec, packAll, project, temporaryFolder, withSdks } from "./project.mjs";
import { programs } from "./readme.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));
const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
const pages = ["README.md", ...readdirSync(join(root, "docs"), { recursive: true }).filter((path) => path.endsWith(".md")).map((path) => `docs/${path}`).sort(), "pkg-evaluator/README.md"];

/** Where a program runs says which platform's types it is read with. */
const PLATFORMS = {
  worker: ["worker", "durable-object", "agent"],
  page: ["browser", "esbuild", "node", "otel", "page", "postgres", "sdk", "server", "thread", "ui"],
};
const OPTIONS = {
  worker: { lib: ["es2024", "esnext.disposable"], types: ["@cloudflare/workers-types"] },
  page: { lib: ["es2024", "esnext.disposable", "dom", "dom.iterable", "dom.asynciterable"], types: ["node"], jsx: "react-jsx" },
};

/** What TypeScript has against JavaScript that runs: pages with the codes of its errors, by the reason why they say nothing of the program. */
const REASONS = {
  "`\"object\"`, `\"user\"` and the likes are texts in a constant of JavaScript, where the parameter wants that one word": {
    "docs/formats.md": ["TS2769"],
    "docs/migration.md": ["TS2345", "TS2769"],
    "docs/sdk/ai-sdk.md": ["TS2769"],
    "docs/sdk/clients.md": ["TS2769"],
    "docs/sdk/cloudflare.md": ["TS2322", "TS2769"],
    "docs/sdk/langchain.md": ["TS2769"],
    "docs/sdk/mastra.md": ["TS2322"],
    "docs/sdk/openai-agents.md": ["TS2322"],
    "docs/sdk/tanstack-ai.md": ["TS2345"],
    "pkg-evaluator/README.md": ["TS2769"],
  },
  "messages are objects of no known fields until the app names their type": {
    "docs/archives.md": ["TS2339"],
    "docs/recall.md": ["TS2339"],
    "docs/recipes.md": ["TS2339"],
    "docs/sessions.md": ["TS2339"],
    "docs/stateless.md": ["TS2339"],
  },
  "streams and addresses of Node are unions": { "docs/sdk/proxy.md": ["TS2339", "TS2345"] },
  "without `strictNullChecks` the SDK takes a call that streams for one that does not": { "docs/sdk/tanstack-ai.md": ["TS2504"] },
};
const KNOWN = Object.values(REASONS).flatMap((of) => Object.entries(of).flatMap(([page, codes]) => codes.map((code) => `${page} ${code}`)));

test("E27: every program of the docs has the types of the packages and of the SDKs", async (context) => {
  const temporary = await temporaryFolder(context);
  const folder = await project(join(temporary, "docs"), await packAll(temporary), {});
  await withSdks(folder);
  for (const name of ["@opentelemetry/api", "pg", "@types/pg", "@types/node", "@types/react"]) {
    const place = join(folder, "node_modules", name);
    await mkdir(dirname(place), { recursive: true });
    await symlink(join(root, "node_modules", name), place);
  }
  const found = [];
  let count = 0;
  for (const [platform, places] of Object.entries(PLATFORMS)) {
    const names = new Map();
    for (const page of pages) {
      for (const { line, code } of programs(readFileSync(join(root, page), "utf8")).filter(({ place }) => places.includes(place))) {
        const name = `${page.replaceAll(/\W/g, "-")}-${line}.js`;
        names.set(name, page);
        await mkdir(join(folder, platform), { recursive: true });
        // A program without imports is a module all the same.
        await writeFile(join(folder, platform, name), `${code}export {};\n`);
      }
    }
    count += names.size;
    const compilerOptions = { target: "es2023", module: "nodenext", strict: true, strictNullChecks: false, noImplicitAny: false, allowJs: true, checkJs: true, noEmit: true, skipLibCheck: true, ...OPTIONS[platform] };
    await writeFile(join(folder, platform, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.js"] }));
    const { stdout } = await exec(process.execPath, [tsc, "--pretty", "false", "--project", platform], { cwd: folder, maxBuffer: 1 << 24 }).catch((error) => error);
    for (const [, file, line, code, message] of stdout.matchAll(/^\w+\/([\w-]+\.js)\((\d+),\d+\): error (TS\d+): (.*)$/gm)) {
      found.push({ page: names.get(file), code, text: `${file}, line ${line}: ${code} ${message}` });
    }
  }
  const all = pages.flatMap((page) => programs(readFileSync(join(root, page), "utf8")));
  assert.equal(count, all.length, "a program of a place that has no platform");
  assert.ok(count > 40, `${count} programs`);
  const unknown = found.filter(({ page, code }) => !KNOWN.includes(`${page} ${code}`));
  assert.deepEqual(unknown.map(({ text }) => text), []);
  const gone = KNOWN.filter((known) => !found.some(({ page, code }) => known === `${page} ${code}`));
  assert.deepEqual(gone, [], "known, and not there any more");
});
