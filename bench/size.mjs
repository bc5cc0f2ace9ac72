/**
 * Sizes of what the package ships, in bytes, beside the committed snapshot.
 *
 * Fails when a size differs by more than 2 % from the snapshot (`--update` writes a new one, to be committed with
 * the change that needs it). What is still above its aim is said, and fails nothing.
 */

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { table } from "./table.mjs";

const pkg = fileURLToPath(new URL("../pkg/", import.meta.url));
const snapshot = new URL("snapshots/size.json", import.meta.url);

/** What the two ways to load the package are meant to take at most, in gzip bytes. */
const aims = { "slim: wasm, glue, facade": 150 * 1024, "inlined: glue, facade, base64": 215 * 1024 };
const tolerance = 0.02;

/** Entries that bring scripts of their own, and where those are in `dist/`: only who imports them has them. */
const subpaths = {
  history: /^(history\.js|entry\/history-)/,
  tokens: /^((tokens|tokenizer|text)\.js|entry\/(tokens|estimates|tokenizer)-)/,
  presets: /^((backup|documented|environment)\.js|entry\/presets-)/,
  commands: /^(commands|entry\/commands)\.js$/,
  react: /^entry\/react\.js$/,
  "ai-sdk": /^(adapters\/(ai-sdk|recall-tools)|entry\/ai-sdk-\w+)\.js$/,
  langchain: /^(adapters\/langchain|entry\/langchain-\w+)\.js$/,
  mastra: /^(adapters\/mastra|entry\/mastra-\w+)\.js$/,
  "tanstack-ai": /^(adapters\/tanstack-ai|entry\/tanstack-ai-\w+)\.js$/,
  "openai-agents": /^(adapters\/(openai-agents|agent-\w+)|entry\/openai-agents-\w+)\.js$/,
  fetch: /^(adapters\/fetch|entry\/fetch-\w+)\.js$/,
  summarizers: /^(adapters\/(chrome|summarizers|usage)|entry\/summarizers)\.js$/,
  "adapters, what they share": /^adapters\/(calls|threads|turn|twins)\.js$/,
  // The one of LangChain is the adapter's, too.
  formats: /^(formats\/(?!conformance)|entry\/formats\.js$)/,
  testing: /^((store\/(conformance|damage|probe)|formats\/conformance)\.js|entry\/testing-)/,
  cloudflare: /^(store\/durable\/|(adapters\/cloudflare|entry\/(agents|cloudflare)-\w+)\.js$)/,
  // These two share turns, and the keys of the one before.
  sql: /^(store\/(sql\/|turns\.)|entry\/sql\.js$)/,
  redis: /^(store\/(redis\/|turns\.)|entry\/redis\.js$)/,
  node: /^(store\/file\/|entry\/node\.js$)/,
};

/** What `mirrorStore` and `sessionPool` load with their first calls. */
const mirror = /^store\/mirror\/(?!own\.)/;
const pool = /^pool\//;

/** The command line, which no app imports. */
const commandLine = /^cli\//;

/** Sizes of each part: `{ part: { raw, gzip, brotli } }`. */
export function sizes() {
  const wasm = readFileSync(join(pkg, "core.wasm"));
  const glue = readFileSync(join(pkg, "dist/wasm/core.js"));
  const inline = readFileSync(join(pkg, "dist/wasm/inline.js"));
  const catalogue = readFileSync(join(pkg, "dist/catalogue.js"));
  const tables = ["o200k_base.js", "cl100k_base.js"];
  const generated = new Set(["core.js", "inline.js", "catalogue.js", "tokenizer-inline.js", ...tables]);
  const scripts = readdirSync(join(pkg, "dist"), { recursive: true })
    .sort()
    .filter((file) => file.endsWith(".js") && !generated.has(basename(file)));
  const whole = (files) => Buffer.concat(files.map((file) => readFileSync(join(pkg, "dist", file))));
  const facade = whole(scripts.filter((file) => ![...Object.values(subpaths), mirror, pool, commandLine].some((own) => own.test(file))));
  const measured = { "core.wasm": measure(wasm), glue: measure(glue), facade: measure(facade), base64: measure(inline) };
  const sum = (...parts) => ({
    raw: parts.reduce((total, part) => total + measured[part].raw, 0),
    gzip: parts.reduce((total, part) => total + measured[part].gzip, 0),
    brotli: parts.reduce((total, part) => total + measured[part].brotli, 0),
  });
  return {
    ...measured,
    "slim: wasm, glue, facade": sum("core.wasm", "glue", "facade"),
    "inlined: glue, facade, base64": sum("glue", "facade", "base64"),
    ...Object.fromEntries(
      Object.entries(subpaths).map(([name, own]) => [
        name.includes(",") ? name : `${name}, a subpath of its own`,
        measure(whole(scripts.filter((file) => own.test(file)))),
      ]),
    ),
    "two copies (mirrorStore), loaded when they are needed": measure(whole(scripts.filter((file) => mirror.test(file)))),
    "sessions by key (sessionPool), loaded when they are needed": measure(whole(scripts.filter((file) => pool.test(file)))),
    "command line (npx context-compactor)": measure(whole(scripts.filter((file) => commandLine.test(file)))),
    "catalogue of models, loaded when it is needed": measure(catalogue),
    "tokenizer.wasm, loaded when it is needed": measure(readFileSync(join(pkg, "tokenizer.wasm"))),
    "evaluator.wasm, of the package of its own": measure(readFileSync(join(pkg, "../pkg-evaluator/evaluator.wasm"))),
    ...Object.fromEntries(
      tables.map((file) => [`${file}, loaded when it is needed`, measure(readFileSync(join(pkg, "dist/wasm", file)))]),
    ),
  };
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

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const now = sizes();
  if (process.argv.includes("--update")) writeFileSync(snapshot, `${JSON.stringify(now, null, 2)}\n`);
  console.log(table(Object.entries(now).map(([part, size]) => ({ bytes: part, ...size }))));
  for (const line of aboveAim(now)) console.log(line);
  const found = problems(now);
  if (found.length > 0) {
    console.error(`${found.join("\n")}\nWhen it is meant to be so: npm run size -- --update`);
    process.exitCode = 1;
  }
}
