/**
 * Sizes of what an app gets of the package, in bytes, beside the committed snapshot: of each entry what is loaded before the
 * first call, as the app's minifier leaves it, and what comes later.
 *
 * Fails when a size differs by more than 2 % from the snapshot (`--update` writes a new one, to be committed with
 * the change that needs it). What is still above its aim is said, and fails nothing.
 */

import { execFile } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { build } from "esbuild";
import { table } from "./table.mjs";

const pkg = fileURLToPath(new URL("../pkg/", import.meta.url));
const snapshot = new URL("snapshots/size.json", import.meta.url);

/** What these are meant to take at most, in gzip bytes. */
const aims = { openSession: 20_000, "openSession, with the engine": 160_000, "the package, as npm packs it": 1_500_000 };
const tolerance = 0.02;

/** Programs of one line: what an app imports. */
const programs = {
  openSession: 'export { openSession } from "context-compactor";',
  compact: 'export { compact } from "context-compactor";',
  "all of context-compactor": 'export * from "context-compactor";',
  estimateTokens: 'export { estimateTokens, estimateTokensDetailed } from "context-compactor/tokens";',
};

/** Entries whose names say what is in them. */
const subpaths = [
  ...["inline", "history", "tokens", "presets", "commands", "react", "formats", "summarizers", "testing", "opentelemetry", "receipts"],
  ...["ai-sdk", "langchain", "mastra", "tanstack-ai", "openai-agents", "fetch", "cloudflare"],
  ...["worker", "worker-thread"],
  ...["sql", "redis", "node"],
];

/** What is loaded when it is needed, and the script of `dist/` that it begins with. */
const later = {
  "IndexedDB, for sessions without a store": "store/database.js",
  "two copies (mirrorStore)": "store/mirror/mirror.js",
  "sessions by key (sessionPool)": "pool/pool.js",
};
const lazy = 'export { mirrorStore, openSession, sessionPool } from "context-compactor";';

/** Sizes of each part: `{ part: { raw, gzip, brotli } }`. */
export async function sizes() {
  const file = (path) => measure(readFileSync(join(pkg, path)));
  const wasm = file("core.wasm");
  const whole = {};
  for (const [name, program] of Object.entries(programs)) whole[name] = measure(await first(program));
  const entries = {};
  for (const name of subpaths) entries[`context-compactor/${name}`] = measure(await first(`export * from "context-compactor/${name}";`));
  const parts = {};
  const chunks = await chunked(lazy);
  for (const [name, file] of Object.entries(later)) {
    parts[`${name}, later`] = measure(chunks.find(({ entryPoint }) => entryPoint?.endsWith(`dist/${file}`)).contents);
  }
  const inNode = readdirSync(join(pkg, "node/entry")).filter((file) => file.endsWith(".js"));
  const shared = ofNode(inNode.map((file) => `entry/${file}`));
  const commandLine = [...ofNode(["cli/main.js"])].filter((file) => !shared.has(file)).sort();
  return {
    ...whole,
    "core.wasm": wasm,
    "compact.wasm, with the first compaction": file("compact.wasm"),
    "rest.wasm, later": file("rest.wasm"),
    "shared.wasm, with either of them": file("shared.wasm"),
    "core.wasm as code": file("dist/wasm/inline.js"),
    "openSession, with the engine": sum(whole.openSession, wasm),
    ...entries,
    ...parts,
    "catalogue of models, later": file("dist/catalogue.js"),
    "tokenizer.wasm, later": file("tokenizer.wasm"),
    "o200k_base, of the package of vocabularies": file("../pkg-vocabularies/dist/o200k_base.js"),
    "cl100k_base, of the package of vocabularies": file("../pkg-vocabularies/dist/cl100k_base.js"),
    "context-compactor-ui, without React": measure(await first('export * from "context-compactor-ui";')),
    "context-compactor-ui/react, without React": measure(await first('export * from "context-compactor-ui/react";')),
    "styles.css of context-compactor-ui": file("../pkg-ui/styles.css"),
    "evaluator.wasm, of the package of its own": file("../pkg-evaluator/evaluator.wasm"),
    "command line (npx context-compactor)": measure(Buffer.concat(commandLine.map((file) => readFileSync(join(pkg, "node", file))))),
    "the package, as npm packs it": await packed(),
  };
}

/** The files of `node/` that some bring along, at once or later. */
function ofNode(files) {
  const found = new Set(files);
  for (const file of found) {
    const imports = readFileSync(join(pkg, "node", file), "utf8").matchAll(/(?:from |import\(|import )"(\.\.?\/(?:\w+\/)?[\w-]+\.js)"/g);
    for (const [, path] of imports) found.add(join(dirname(file), path));
  }
  return found;
}

const bundled = {
  ...{ bundle: true, minify: true, splitting: true, format: "esm", target: "es2022", legalComments: "none" },
  ...{ outdir: "out", write: false, metafile: true, external: ["node:*", "react"], logLevel: "error" },
};

/** The files that a program becomes. */
async function chunked(contents) {
  const stdin = { contents, resolveDir: fileURLToPath(new URL("./", import.meta.url)) };
  const { outputFiles, metafile } = await build({ ...bundled, stdin });
  return Object.entries(metafile.outputs).map(([path, output]) => {
    const { contents } = outputFiles.find((file) => file.path.endsWith(path));
    return { path, contents, ...output };
  });
}

/** What a program loads before its first call: the script that it begins with, and all that is imported with it. */
async function first(program) {
  const chunks = await chunked(program);
  const loaded = new Set(chunks.filter(({ entryPoint }) => entryPoint === "<stdin>"));
  for (const { imports } of loaded) {
    for (const { kind, path } of imports) {
      const chunk = kind === "import-statement" && chunks.find((chunk) => chunk.path === path);
      if (chunk) loaded.add(chunk);
    }
  }
  return Buffer.concat(Array.from(loaded, ({ contents }) => contents));
}

async function packed() {
  const { stdout } = await promisify(execFile)("npm", ["pack", "--dry-run", "--json"], { cwd: pkg, maxBuffer: 1 << 24 });
  const [{ size, unpackedSize }] = JSON.parse(stdout);
  return { raw: unpackedSize, gzip: size };
}

/** What is wrong with `now`, as messages; nothing when it is as the snapshot says. */
export function problems(now) {
  const kept = JSON.parse(readFileSync(snapshot, "utf8"));
  const found = [];
  for (const [part, size] of Object.entries(now)) {
    for (const [form, bytes] of Object.entries(size)) {
      const before = kept[part]?.[form];
      if (before === undefined || Math.abs(bytes - before) > before * tolerance) {
        found.push(`${part}, ${form}: ${bytes} bytes; the snapshot says ${before ?? "nothing"}`);
      }
    }
  }
  return found;
}

/** Parts that are above their aim, as messages. */
function aboveAim(now) {
  return Object.entries(aims)
    .filter(([part, aim]) => now[part].gzip > aim)
    .map(([part, aim]) => `${part}: ${now[part].gzip} bytes gzipped, the aim is ${aim}`);
}

function measure(bytes) {
  return { raw: bytes.length, gzip: gzipSync(bytes, { level: 9 }).length, brotli: brotliCompressSync(bytes).length };
}

function sum(...parts) {
  const total = (form) => parts.reduce((sum, part) => sum + part[form], 0);
  return { raw: total("raw"), gzip: total("gzip"), brotli: total("brotli") };
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const now = await sizes();
  if (process.argv.includes("--update")) writeFileSync(snapshot, `${JSON.stringify(now, null, 2)}\n`);
  console.log(table(Object.entries(now).map(([part, size]) => ({ bytes: part, ...size }))));
  for (const line of aboveAim(now)) console.log(line);
  const found = problems(now);
  if (found.length > 0) {
    console.error(`${found.join("\n")}\nWhen it is meant to be so: npm run size -- --update`);
    process.exitCode = 1;
  }
}
