/** What each entry exports (H13): where everything is that the package ever exported, and that nothing is there twice. */

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";

const root = new URL("../../", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL("pkg/package.json", root), "utf8"));

const ENTRIES = {
  ".": [
    "CompactionError",
    "compact",
    "deleteSession",
    "encryptedStore",
    "importSession",
    "indexedDbStore",
    "isContextOverflow",
    "isSupported",
    "listSessions",
    "memoryStore",
    "mirrorStore",
    "modelFacts",
    "openSession",
    "planCompaction",
    "recallTools",
    "salvage",
    "sessionPool",
    "version",
  ],
  "./history": ["buildSummaryPrompt", "detectFormat", "extractiveSummary", "proposePins", "repairHistory", "splitMessages", "validateHistory"],
  "./tokens": ["estimateTokens", "estimateTokensDetailed", "loadTokenizer", "ready"],
  "./presets": ["optionsFromEnv", "restoreBackup", "withDocumentedNames"],
  "./commands": ["COMMANDS", "chatCommand", "isChatCommand"],
  "./react": ["addTurn", "exportTrajectory", "stats"],
  "./testing": ["formatConformance", "storeConformance"],
  "./formats": ["agui", "aiSdk4", "bedrock", "chrome", "cohere", "langchain", "mastra", "mcp", "mistral", "ollama", "openaiAgents", "tanstack"],
  "./summarizers": ["aiSdk", "anthropic", "chrome", "openaiCompatible", "workersAi"],
  "./opentelemetry": ["conversationAttributes", "traced"],
  "./receipts": ["compactionReceipts", "verifyReceipt"],
  "./ai-sdk": ["compose", "contextCompactor"],
  "./fetch": ["compactingFetch"],
  "./langchain": ["compactionMiddleware"],
  "./mastra": ["ContextCompactor"],
  "./tanstack-ai": ["contextCompactor"],
  "./openai-agents": ["CompactingSession", "contextCompactor"],
  "./worker-thread": ["opfsStore", "serve"],
  "./node": ["fileStore"],
  "./cloudflare": ["durableObjectStore", "toSessionsCompaction", "withCompaction"],
  "./sql": ["d1Driver", "libsqlDriver", "neonDriver", "pgDriver", "postgresDriver", "sqlStore", "sqliteDriver"],
  "./redis": ["redisStore"],
};

/** The main entry again, with a way to say where the module is. */
const SLIM = [...ENTRIES["."], "initialize"].sort();

/** The calls of the main entry whose engine may be in another thread. */
const WORKER = ["CompactionError", "deleteSession", "isContextOverflow", "listSessions", "openSession"];

/** Everything that the main entry ever exported, and calls of a session that became functions: where each is now. */
const MOVED = {
  buildSummaryPrompt: "./history",
  chatCommand: "./commands",
  CompactionError: ".",
  compact: ".",
  detectFormat: "./history",
  encryptedStore: ".",
  estimateTokens: "./tokens",
  estimateTokensDetailed: "./tokens",
  extractiveSummary: "./history",
  importSession: ".",
  indexedDbStore: ".",
  isChatCommand: "./commands",
  COMMANDS: "./commands",
  isContextOverflow: ".",
  listSessions: ".",
  loadTokenizer: "./tokens",
  memoryStore: ".",
  mirrorStore: ".",
  modelFacts: ".",
  openSession: ".",
  optionsFromEnv: "./presets",
  planCompaction: ".",
  proposePins: "./history",
  repairHistory: "./history",
  restoreBackup: "./presets",
  salvage: ".",
  splitMessages: "./history",
  storeConformance: "./testing",
  validateHistory: "./history",
  version: ".",
  // Of a session.
  addTurn: "./react",
  exportTrajectory: "./react",
  stats: "./react",
};

const specifier = (entry) => `context-compactor${entry.slice(1)}`;
const exported = async (entry) => Object.keys(await import(specifier(entry))).sort();
const require = createRequire(import.meta.url);

test("H13: each entry exports what the table has", async () => {
  assert.deepEqual(Object.keys(manifest.exports).sort(), [...Object.keys(ENTRIES), "./inline", "./slim", "./worker", "./core.wasm", "./package.json"].sort());
  for (const [entry, names] of Object.entries(ENTRIES)) {
    assert.deepEqual(await exported(entry), names, entry);
    // As CommonJS, and by every condition that a host may have.
    const { require: cjs, ...esm } = manifest.exports[entry];
    assert.deepEqual(Object.keys(require(new URL(cjs, new URL("pkg/", root)).pathname)).sort(), names, cjs);
    for (const file of new Set(Object.values(esm))) {
      if (/\b(workerd|edge)\.js$/.test(file)) assert.deepEqual([...new Set(declared(new URL(file, new URL("pkg/", root))))].sort(), names, file);
    }
  }
  assert.deepEqual(await exported("./inline"), ENTRIES["."]);
  assert.deepEqual(await exported("./slim"), SLIM);
  assert.deepEqual(await exported("./worker"), WORKER);
  assert.deepEqual(Object.keys(require(new URL(manifest.exports["./worker"].require, new URL("pkg/", root)).pathname)).sort(), WORKER);
  for (const host of ["workerd", "edge-light"]) {
    assert.deepEqual([...new Set(declared(new URL(manifest.exports["./slim"][host], new URL("pkg/", root))))].sort(), SLIM, host);
  }
});

/** The names of values that a module declares or re-exports: what cannot be imported here is read. */
function declared(url) {
  const source = readFileSync(url, "utf8");
  const lists = Array.from(source.matchAll(/export ?\{([^}]*)\}/g), ([, names]) => names.split(",").map((name) => name.split(" as ").at(-1).trim()));
  const own = Array.from(source.matchAll(/\bexport (?:async )?(?:function|class|const) (\w+)/g), ([, name]) => name);
  const whole = Array.from(source.matchAll(/\bexport ?\* ?from ?"(.+?)"/g), ([, from]) => declared(new URL(from, url)));
  return [...lists.flat(), ...own, ...whole.flat()].filter(Boolean);
}

test("H13: every export of before is where the map says", async () => {
  for (const [name, entry] of Object.entries(MOVED)) assert.ok((await exported(entry)).includes(name), `${name} of ${entry}`);
});

/** The model that is built into Chrome writes summaries, and its prompts are a format: two things of one name. */
const isOther = (entry, name) => entry === "./formats" && name === "chrome";

/** What the entries of several SDKs have: an app imports that of its own. */
const OF_SDKS = ["contextCompactor"];
const butThose = (entry, names) => names.filter((name) => !OF_SDKS.includes(name) && !isOther(entry, name));

test("H13: nothing is exported twice, values and types alike", async () => {
  const seen = new Map();
  for (const entry of Object.keys(ENTRIES)) {
    for (const name of butThose(entry, await exported(entry))) {
      assert.equal(seen.get(name), undefined, `${name} is exported by ${seen.get(name)} and ${entry}`);
      seen.set(name, entry);
    }
  }
  const types = new Map();
  for (const entry of Object.keys(ENTRIES)) {
    for (const name of butThose(entry, typesOf(new URL(manifest.exports[entry].default.replace(".js", ".d.ts"), new URL("pkg/", root))))) {
      assert.equal(types.get(name), undefined, `${name} is exported by ${types.get(name)} and ${entry}`);
      types.set(name, entry);
    }
  }
  assert.equal(types.get("Session"), ".");
  assert.equal(types.get("Trajectory"), "./react");
});

/** All names that a declaration file exports, with those of the files that it exports whole. */
function typesOf(url) {
  const source = readFileSync(url, "utf8");
  const lists = Array.from(source.matchAll(/export (?:type )?\{([^}]*)\}/g), ([, names]) => names.split(",").map((name) => name.replace("type ", "").trim()));
  const own = Array.from(source.matchAll(/^export (?:declare |type |interface |abstract )*(?:function|class|const|interface|type)? ?(\w+)/gm), ([, name]) => name);
  const whole = Array.from(source.matchAll(/^export (?:type )?\* from "(.+)"/gm), ([, from]) => typesOf(new URL(from.replace(".js", ".d.ts"), url)));
  return [...new Set([...lists.flat(), ...own, ...whole.flat()].filter((name) => name && !["type", "from", "declare"].includes(name)))];
}

/** The declaration files that the entries lead to, without those of the package's own calls of its engine. */
function declarations() {
  const files = new Map();
  const visit = (url) => {
    const path = url.href.slice(root.href.length).replace(/^pkg(-\w+)?\/dist\//, "");
    if (/^(driver|effects|engine)\.d|^wasm\//.test(path) || files.has(path) || !existsSync(url)) return;
    const source = readFileSync(url, "utf8");
    files.set(path, source);
    for (const [, from] of source.matchAll(/from "(\.[^"]+)"/g)) visit(new URL(from.replace(".js", ".d.ts"), url));
  };
  for (const folder of ["pkg/", "pkg-evaluator/", "pkg-ui/"]) {
    const { exports } = JSON.parse(readFileSync(new URL(`${folder}package.json`, root), "utf8"));
    const paths = Object.values(exports).flatMap((of) => (typeof of === "string" ? [] : Object.values(of).filter((path) => typeof path === "string")));
    for (const path of paths.filter((path) => path.startsWith("./dist/"))) visit(new URL(path.replace(".js", ".d.ts"), new URL(folder, root)));
  }
  return files;
}

/** Words that only who wrote the engine knows, and forms that a reader stumbles over. */
const HOUSE_WORDS = new RegExp(
  String.raw`\b(?:${[
    ...["unsent", "unpaged", "whereabouts", "climb\\w*", "slot", "rungs?", "keep-layer", "stub", "desk", "temper", "offloads", "word for word"],
    ...["held", "stands?", "stood", "told", "tells?", "behind", "parted", "anew", "catalogue"],
  ].join("|")})\b`,
  "gi",
);

/** What a hover text has that its reader cannot look up: ids and pages of a specification, house words. */
function strange(text) {
  const prose = text.replace(/`[^`]*`/g, "");
  const ids = text.match(/\b[A-Z]{1,2}\d+\.\d+\b|\((?:[A-Z]{1,2}\d+)(?:, [A-Z]{1,2}\d+)*\)/g) ?? [];
  const pages = (text.match(/[\w/-]+\.md\b/g) ?? []).filter((page) => page !== "docs/presets.md");
  const headless = text.match(/^What (?:is|was|came|became|stands)\b/) ?? [];
  return [...ids, ...pages, ...(prose.match(HOUSE_WORDS) ?? []), ...headless];
}

const textOf = (comment) => comment.replace(/\s*\n\s*\* ?/g, " ").replace(/^\/\*\* ?|\s*\*\/$/g, "").trim();

test("H19, H20: a hover text stands alone", () => {
  const texts = Array.from(declarations(), ([path, source]) => (source.match(/\/\*\*[^]*?\*\//g) ?? []).map((text) => ({ path, text: textOf(text) }))).flat();
  assert.ok(texts.length > 500, `${texts.length} texts`);
  assert.deepEqual(texts.flatMap(({ path, text }) => strange(text).map((found) => `${path}: ${found}: ${text.slice(0, 90)}`)), []);
  assert.deepEqual(strange("What came of it (`S5.13`, storage.md): told by the climb."), ["S5.13", "storage.md", "told", "climb", "What came"]);
});
