import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { transformSync } from "esbuild";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { problems, sizes } from "../../bench/size.mjs";
import { evaluator, exec, pack, packBoth, pkg, temporaryFolder } from "./project.mjs";

const root = new URL("../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");

const MODULES = ["pkg/core.wasm", "pkg/tokenizer.wasm", "pkg-evaluator/evaluator.wasm"];
const both = [pkg, evaluator].map((folder) => [folder, JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))]);

test("publint finds nothing", async () => {
  for (const [pkgDir, manifest] of both) {
    const { messages } = await publint({ pkgDir, strict: true });
    assert.deepEqual(messages.map((message) => formatMessage(message, manifest)), []);
  }
});

test("the types resolve under every resolution", async (context) => {
  const archives = await packBoth(await temporaryFolder(context));
  const attw = createRequire(import.meta.url).resolve("@arethetypeswrong/cli/package.json");
  const program = join(dirname(attw), JSON.parse(readFileSync(attw, "utf8")).bin.attw);
  const options = ["--exclude-entrypoints", "core.wasm", "--no-color"];
  for (const archive of archives) {
    const run = exec(process.execPath, [program, archive, ...options]);
    await run.catch((error) => assert.fail(error.stdout));
  }
});

test("H13: each package holds what it needs and nothing else", async (context) => {
  const folder = await temporaryFolder(context);
  for (const [from, modules] of [[pkg, ["core.wasm", "tokenizer.wasm"]], [evaluator, ["evaluator.wasm"]]]) {
    const { files } = await pack(folder, from);
    const [scripts, others] = [[], []];
    for (const file of files) (/^(dist|cjs)\//.test(file) ? scripts : others).push(file);
    assert.deepEqual(others.filter((file) => !modules.includes(file)), ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "package.json"]);
    assert.deepEqual(others.filter((file) => file.endsWith(".wasm")), modules);
    assert.deepEqual(scripts.filter((file) => !/\.(js|d\.ts)$/.test(file)), ["cjs/package.json"]);
    assert.deepEqual(scripts.filter((file) => /evaluator/.test(file) !== (from === evaluator) && /entry\/|wasm\//.test(file)), []);
  }
});

test("the packages depend on nothing, and their version is the engine's", () => {
  for (const [, { dependencies, scripts, version }] of both) {
    assert.deepEqual([dependencies, scripts], [undefined, undefined]);
    assert.match(read("Cargo.toml"), new RegExp(`^version = "${version}"$`, "m"));
  }
});

test("the catalogue of models comes with the licences of what it is made of, and only a lazy import names it", async () => {
  const catalogue = read("pkg/dist/catalogue.js");
  for (const part of ["@pydantic/genai-prices", "llm-zoo", "fastest-levenshtein"]) {
    const folder = new URL(`node_modules/${part}/`, root);
    const name = readdirSync(folder).find((file) => file.startsWith("LICENSE"));
    assert.ok(catalogue.includes(readFileSync(new URL(name, folder), "utf8").trim()), part);
  }
  const dist = new URL("pkg/dist/", root);
  const importing = readdirSync(dist).filter((file) => file.endsWith(".js") && read(`pkg/dist/${file}`).includes('"./catalogue.js"'));
  assert.deepEqual(importing, ["models.js"]);
  assert.match(read("pkg/dist/models.js"), /await import\("\.\/catalogue\.js"\)/);
});

test("vocabularies come with their licence, and only lazy imports name what the tokenizers and the evaluator are made of", () => {
  const licence = read("node_modules/gpt-tokenizer/LICENSE").trim();
  for (const [name, folder, importing] of [
    ["o200k_base", "pkg", "tokenizer.js"],
    ["cl100k_base", "pkg", "tokenizer.js"],
    ["tokenizer-inline", "pkg", join("entry", "tokenizer-inline.js")],
    ["evaluator-inline", "pkg-evaluator", join("entry", "evaluator-inline.js")],
  ]) {
    const code = (file) => read(`${folder}/dist/${file}`);
    const scripts = readdirSync(new URL(`${folder}/dist/`, root), { recursive: true }).filter((file) => file.endsWith(".js"));
    const lazy = new RegExp(`import\\("\\.{1,2}/wasm/${name}\\.js"\\)`);
    assert.deepEqual(scripts.filter((file) => code(file).includes(`wasm/${name}.js"`)), [importing]);
    assert.match(code(importing), lazy);
    assert.ok(!code(importing).includes(`from "./wasm/${name}.js"`));
    if (!name.endsWith("-inline")) assert.ok(code(`wasm/${name}.js`).includes(licence));
  }
});

test("D23, H13: only a lazy import names what keeps two copies", () => {
  const folder = join("store", "mirror");
  const dist = new URL("pkg/dist/", root);
  const scripts = readdirSync(dist, { recursive: true }).filter((file) => file.endsWith(".js") && !file.startsWith(join(folder, "/")));
  const imports = /(from |import\()"\.\/(?:store\/)?mirror\/(\w+)\.js"/g;
  const naming = scripts.flatMap((file) => Array.from(read(`pkg/dist/${file}`).matchAll(imports), ([, how, part]) => [file, how, part]));
  assert.deepEqual(naming.filter(([, , part]) => part !== "own"), [[`${folder}.js`, "import(", "mirror"]]);
  // What is always loaded brings nothing along.
  assert.doesNotMatch(read("pkg/dist/store/mirror/own.js"), /["']\.\//);
});

test("E5, H13: only a lazy import names what keeps the sessions of a pool", () => {
  const dist = new URL("pkg/dist/", root);
  const scripts = readdirSync(dist, { recursive: true }).filter((file) => file.endsWith(".js"));
  assert.deepEqual(scripts.filter((file) => read(`pkg/dist/${file}`).includes('pool/pool.js"')), ["pool.js"]);
  assert.match(read("pkg/dist/pool.js"), /import\("\.\/pool\/pool\.js"\)/);
});

test("E6, E7: the entries of databases bring neither the engine nor a client", () => {
  for (const entry of ["sql", "redis"]) {
    const seen = new Set();
    const visit = (file) => {
      if (seen.has(file)) return;
      seen.add(file);
      for (const [, from] of read(`pkg/dist/${file}`).matchAll(/^(?:import|export) .*from "([^"]+)"/gm)) visit(join(dirname(file), from));
    };
    visit(`entry/${entry}.js`);
    assert.ok(seen.size > 5);
    assert.deepEqual([...seen].filter((file) => /^(engine|module|wasm)/.test(file)), []);
  }
});

test("nothing but the entry for Node and the command line name Node's modules", () => {
  const dist = new URL("pkg/dist/", root);
  const scripts = readdirSync(dist, { recursive: true }).filter((file) => file.endsWith(".js"));
  const naming = scripts.filter((file) => /["']node:/.test(read(`pkg/dist/${file}`)));
  const isOfNode = (file) => [join("store", "file"), join("cli", "/")].some((folder) => file.startsWith(folder));
  const others = naming.filter((file) => !isOfNode(file));
  assert.ok(naming.length > 0);
  assert.deepEqual(others, []);
  const importing = scripts.filter((file) => /store\/file\/|\.\/file\//.test(read(`pkg/dist/${file}`)));
  assert.deepEqual(importing, [join("entry", "node.js")]);
  // The command line stands on the public entries; and on nothing of the package beside them but names that are near and the SQL that `sql` prints.
  const cli = scripts.filter((file) => file.startsWith(join("cli", "/")));
  const used = cli.flatMap((file) => Array.from(read(`pkg/dist/${file}`).matchAll(/(?:from |import\()"(\.\.\/[^"]+)"/g), ([, path]) => path));
  assert.deepEqual([...new Set(used)].sort(), ["../entry/fetch-inline.js", "../entry/history-inline.js", "../entry/inline.js", "../entry/node.js", "../entry/tokens-inline.js", "../near.js", "../store/sql/statements.js"]);
  assert.deepEqual(scripts.filter((file) => !cli.includes(file) && /\/cli\//.test(read(`pkg/dist/${file}`))), []);
});

test("the licences are the repository's", () => {
  for (const file of ["LICENSE-MIT", "LICENSE-APACHE"]) {
    for (const folder of ["pkg", "pkg-evaluator"]) assert.equal(read(`${folder}/${file}`), read(file));
  }
});

test("the modules name no path of the machine that built them", () => {
  for (const file of MODULES) {
    const wasm = readFileSync(new URL(file, root), "latin1");
    assert.deepEqual(wasm.match(/\/(?:home|root|Users|tmp)\/[\w./-]*/g) ?? [], [], file);
  }
});

test("the modules carry no names of functions and nothing of what made them", () => {
  for (const file of MODULES) {
    const module = new WebAssembly.Module(readFileSync(new URL(file, root)));
    for (const section of ["name", "producers"]) {
      assert.equal(WebAssembly.Module.customSections(module, section).length, 0, `${file}: ${section}`);
    }
  }
});

test("the sizes are those of the snapshot", () => {
  assert.deepEqual(problems(sizes()), [], "when it is meant to be so: npm run size -- --update");
});

/** Scripts of each adapter, beside what all of them share. */
const ADAPTERS = {
  "ai-sdk": ["entry/ai-sdk-inline", "adapters/ai-sdk", "adapters/recall-tools"],
  fetch: ["entry/fetch-inline", "adapters/fetch"],
  summarizers: ["entry/summarizers", "adapters/summarizers", "adapters/usage", "adapters/chrome"],
  langchain: ["entry/langchain-inline", "adapters/langchain", "formats/langchain"],
  mastra: ["entry/mastra-inline", "adapters/mastra"],
  cloudflare: ["entry/cloudflare-inline", "adapters/cloudflare"],
  "tanstack-ai": ["entry/tanstack-ai-inline", "adapters/tanstack-ai", "adapters/twins"],
  "openai-agents": ["entry/openai-agents-inline", "adapters/openai-agents", "adapters/agent-items", "adapters/agent-runs", "adapters/agent-session"],
  shared: ["adapters/threads", "adapters/calls", "adapters/turn"],
};

test("E23: an adapter is at most 3 KB, minified and gzipped, and one with a session or a format of its SDK 4 KB", async () => {
  for (const [name, files] of Object.entries(ADAPTERS)) {
    const scripts = files.map((file) => transformSync(read(`pkg/dist/${file}.js`), { minify: true, format: "esm" }).code);
    const size = gzipSync(scripts.join(""), { level: 9 }).length;
    const most = files.some((file) => /session|formats/.test(file)) ? 4 : 3;
    assert.ok(size > 500 && size <= most * 1024, `${name}: ${size} bytes`);
  }
});

test("E23: no script names an SDK, and an app with any version of one installs: npm refuses another even where it is optional", () => {
  assert.equal(both[0][1].peerDependencies, undefined);
  const dist = new URL("pkg/dist/", root);
  for (const file of readdirSync(dist, { recursive: true }).filter((file) => /\.(js|d\.ts)$/.test(file))) {
    assert.doesNotMatch(read(`pkg/dist/${file}`), /(?:from|import\() ?"(?:agents|ai|openai|langchain|@cloudflare\/ai-chat|@anthropic-ai\/sdk|@(?:ai-sdk|langchain|mastra|openai|tanstack)\/[\w-]+|agents\/[\w-]+)"/, file);
  }
});

/** Entries of the section that lists the functions which a module defines. */
function functions(bytes) {
  let at = 8;
  const number = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < bytes.length) {
    const [id, size] = [bytes[at++], number()];
    if (id === 3) return number();
    at += size;
  }
  return 0;
}

test("f36_what the profile asks of the linker is in force", { todo: "F36" }, () => {
  // Without `lto` the module has about 10,000 functions, with it about 6,000.
  const found = functions(readFileSync(join(pkg, "core.wasm")));
  assert.ok(found < 8_000, `${found} functions`);
});
