import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { problems, sizes } from "../../bench/size.mjs";
import { evaluator, exec, pack, packAll, pkg, temporaryFolder, ui, vocabularies } from "./project.mjs";

const root = new URL("../../", import.meta.url);
const read = (path) => readFileSync(new URL(path, root), "utf8");

const MODULES = ["pkg/core.wasm", "pkg/compact.wasm", "pkg/rest.wasm", "pkg/shared.wasm", "pkg/tokenizer.wasm", "pkg-evaluator/evaluator.wasm"];
const all = [pkg, evaluator, vocabularies, ui].map((folder) => [folder, JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))]);

test("publint finds nothing", async () => {
  for (const [pkgDir, manifest] of all) {
    const { messages } = await publint({ pkgDir, strict: true });
    assert.deepEqual(messages.map((message) => formatMessage(message, manifest)), []);
  }
});

test("the types resolve under every resolution", async (context) => {
  const archives = await packAll(await temporaryFolder(context));
  const attw = createRequire(import.meta.url).resolve("@arethetypeswrong/cli/package.json");
  const program = join(dirname(attw), JSON.parse(readFileSync(attw, "utf8")).bin.attw);
  const options = ["--exclude-entrypoints", "core.wasm", "styles.css", "--no-color"];
  for (const archive of archives) {
    const run = exec(process.execPath, [program, archive, ...options]);
    await run.catch((error) => assert.fail(error.stdout));
  }
});

test("H13: each package holds what it needs and nothing else", async (context) => {
  const folder = await temporaryFolder(context);
  for (const [from, modules] of [[pkg, ["compact.wasm", "core.wasm", "rest.wasm", "shared.wasm", "tokenizer.wasm"]], [evaluator, ["evaluator.wasm"]], [vocabularies, []], [ui, []]]) {
    const { files } = await pack(folder, from);
    const [scripts, others] = [[], []];
    for (const file of files) (/^(dist|node|cjs)\//.test(file) ? scripts : others).push(file);
    assert.deepEqual(others.filter((file) => !modules.includes(file)), ["LICENSE-APACHE", "LICENSE-MIT", "README.md", "package.json", ...(from === ui ? ["styles.css"] : [])]);
    assert.deepEqual(others.filter((file) => file.endsWith(".wasm")), modules);
    assert.deepEqual(scripts.filter((file) => !/\.(js|d\.ts)$/.test(file)), ["cjs/package.json"]);
    const own = { [evaluator]: /evaluator/, [ui]: /\/ui/ }[from] ?? /^(?!.*(evaluator|\/ui))/;
    assert.deepEqual(scripts.filter((file) => /entry\/(?!all\.js)|wasm\//.test(file) && !own.test(file)), []);
  }
});

test("the packages depend on nothing, and their version is the engine's", () => {
  for (const [, { dependencies, scripts, version }] of all) {
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
  assert.match(read("pkg/dist/models.js"), /import\("\.\/catalogue\.js"\)/);
});

test("Z18: vocabularies come with their licence, in a package of their own that no script of the others imports", () => {
  const licence = read("node_modules/gpt-tokenizer/LICENSE").trim();
  for (const name of ["o200k_base", "cl100k_base"]) assert.ok(read(`pkg-vocabularies/dist/${name}.js`).includes(licence));
  const dist = new URL("pkg/dist/", root);
  const scripts = readdirSync(dist, { recursive: true }).filter((file) => file.endsWith(".js"));
  assert.deepEqual(scripts.filter((file) => /(?:from |import\()"context-compactor-/.test(read(`pkg/dist/${file}`))), []);
});

test("only lazy imports name what the tokenizers and the evaluator are made of", () => {
  for (const [name, folder, importing] of [
    ["tokenizer-inline", "pkg", join("entry", "tokenizer-inline.js")],
    ["evaluator-inline", "pkg-evaluator", join("entry", "evaluator-inline.js")],
  ]) {
    const code = (file) => read(`${folder}/dist/${file}`);
    const scripts = readdirSync(new URL(`${folder}/dist/`, root), { recursive: true }).filter((file) => file.endsWith(".js"));
    const lazy = new RegExp(`import\\("\\.{1,2}/wasm/${name}\\.js"\\)`);
    assert.deepEqual(scripts.filter((file) => code(file).includes(`wasm/${name}.js"`)), [importing]);
    assert.match(code(importing), lazy);
    assert.doesNotMatch(code(importing), new RegExp(`from ?"\\./wasm/${name}\\.js"`));
  }
});

test("Z15, Z17: one script names the engine's files and, in lazy imports, the engine as code; /inline has it", () => {
  const dist = new URL("pkg/dist/", root);
  const scripts = readdirSync(dist, { recursive: true }).filter((file) => file.endsWith(".js") && !/^entry.(tokens|tokenizer)-/.test(file));
  const naming = (what) => scripts.filter((file) => what.test(read(`pkg/dist/${file}`))).sort();
  for (const [code, file] of [["inline", "core"], ["inline-compact", "compact"], ["inline-rest", "rest"], ["inline-shared", "shared"]]) {
    assert.deepEqual(naming(new RegExp(`wasm/${code}\\.js"`)), [join("entry", "inline.js"), join("host", "files.js")]);
    assert.match(read("pkg/dist/host/files.js"), new RegExp(`import\\("\\.\\./wasm/${code}\\.js"\\)`));
    // As bundlers find it; the worker of the package is one file, with its own.
    assert.deepEqual(naming(new RegExp(`new URL\\("\\.\\./\\.\\./${file}\\.wasm", ?import\\.meta\\.url\\)`)), [join("entry", "worker-start.js"), join("host", "addresses.js")]);
  }
});

test("D23, H13: only a lazy import names what keeps two copies", () => {
  const folder = join("store", "mirror");
  const dist = new URL("pkg/dist/", root);
  const scripts = readdirSync(dist, { recursive: true }).filter((file) => file.endsWith(".js") && !file.startsWith(join(folder, "/")));
  const imports = /(from ?|import\()"\.\/(?:store\/)?mirror\/(\w+)\.js"/g;
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

/** The scripts that come with an entry. */
function scriptsOf(entry) {
  const seen = new Set();
  const visit = (file) => {
    if (seen.has(file)) return;
    seen.add(file);
    for (const [, from] of read(`pkg/dist/${file}`).matchAll(/\bfrom ?"(\.[^"]+)"/g)) visit(join(dirname(file), from));
  };
  visit(`entry/${entry}.js`);
  return [...seen];
}

test("E6, E7: the entries of databases bring neither the engine nor a client", () => {
  for (const entry of ["sql", "redis"]) {
    assert.ok(scriptsOf(entry).length > 5);
    assert.deepEqual(scriptsOf(entry).filter((file) => /^(engine|module|wasm)/.test(file)), []);
  }
});

test("X14, X15: the entries of traces and of receipts bring no engine", () => {
  for (const entry of ["opentelemetry", "receipts"]) {
    assert.deepEqual(scriptsOf(entry).filter((file) => /^(engine|module|driver|session|wasm)/.test(file)), [], entry);
  }
});

test("Z16: the entry of estimates brings neither the engine nor the tokenizer, and the table of one family", () => {
  const scripts = scriptsOf("tokens-inline");
  assert.ok(scripts.length > 10);
  assert.deepEqual(scripts.filter((file) => /^(engine|driver|tokenizer|wasm)/.test(file)), []);
  assert.deepEqual(scripts.filter((file) => file.startsWith("generated")).sort(), ["generated/tables/maps.js", "generated/tables/o200k.js"]);
});

test("nothing but the entry for Node and the command line name Node's modules", () => {
  const dist = new URL("pkg/dist/", root);
  const scripts = readdirSync(dist, { recursive: true }).filter((file) => file.endsWith(".js"));
  const naming = scripts.filter((file) => /["']node:/.test(read(`pkg/dist/${file}`)));
  const isOfNode = (file) => file === join("store", "file", "directory.js") || file.startsWith(join("cli", "/"));
  const others = naming.filter((file) => !isOfNode(file));
  assert.ok(naming.length > 0);
  assert.deepEqual(others, []);
  // The rest of those files is a browser's, too.
  const importing = (name) => scripts.filter((file) => read(`pkg/dist/${file}`).includes(name)).sort();
  assert.deepEqual(importing("file/node.js"), [join("entry", "node.js")]);
  assert.deepEqual(importing("file/directory.js"), []);
  // The command line stands on the public entries; and on nothing of the package beside them but names that are near and the SQL that `sql` prints.
  const cli = scripts.filter((file) => file.startsWith(join("cli", "/")));
  const used = cli.flatMap((file) => Array.from(read(`pkg/dist/${file}`).matchAll(/(?:from ?|import\()"(\.\.\/[^"]+)"/g), ([, path]) => path));
  assert.deepEqual([...new Set(used)].sort(), ["../entry/fetch.js", "../entry/history.js", "../entry/main.js", "../entry/node.js", "../entry/tokens-inline.js", "../near.js", "../store/sql/statements.js"]);
  assert.deepEqual(scripts.filter((file) => !cli.includes(file) && /\/cli\//.test(read(`pkg/dist/${file}`))), []);
});

/** The files that come with an entry where Node loads it. */
function loadedInNode(file, found = new Set()) {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, from] of read(`pkg/node/${file}`).matchAll(/^(?:import|export)\b[^;]*?"(\.[^"]+\.js)"/gm)) {
    if (!from.startsWith("../../dist/")) loadedInNode(join(dirname(file), from), found);
  }
  return found;
}

test("P16: in Node an entry is few files, and one that has nothing to do with sessions does not bring what they are", () => {
  const entries = readdirSync(new URL("pkg/node/entry/", root)).filter((file) => file.endsWith(".js"));
  const counts = Object.fromEntries(entries.map((file) => [file, loadedInNode(`entry/${file}`).size]));
  assert.deepEqual(Object.entries(counts).filter(([, count]) => count > 14), []);
  assert.deepEqual([counts["main.js"], counts["tokens-inline.js"]], [6, 3]);
  for (const entry of ["tokens-inline", "formats", "commands", "summarizers", "opentelemetry", "receipts"]) {
    assert.ok(!loadedInNode(`entry/${entry}.js`).has("part/engine.js"), entry);
  }
  const inNode = Object.values(all[0][1].exports).flatMap(({ node }) => (node ? [node.default.slice("./node/entry/".length)] : []));
  // One is no entry: the worker that an entry starts.
  assert.deepEqual(entries.sort(), [...new Set([...inNode, "worker-start.js"])].sort());
});

test("the licences are the repository's", () => {
  for (const file of ["LICENSE-MIT", "LICENSE-APACHE"]) {
    for (const folder of ["pkg", "pkg-evaluator", "pkg-vocabularies", "pkg-ui"]) assert.equal(read(`${folder}/${file}`), read(file));
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

test("the sizes are those of the snapshot", async () => {
  assert.deepEqual(problems(await sizes()), [], "when it is meant to be so: npm run size -- --update");
});

/** Scripts of each adapter, beside what all of them share. */
const ADAPTERS = {
  "ai-sdk": ["entry/ai-sdk", "adapters/ai-sdk", "adapters/recall-tools"],
  fetch: ["entry/fetch", "adapters/fetch"],
  summarizers: ["entry/summarizers", "adapters/summarizers", "adapters/usage", "adapters/chrome"],
  langchain: ["entry/langchain", "adapters/langchain", "formats/langchain"],
  mastra: ["entry/mastra", "adapters/mastra"],
  cloudflare: ["entry/cloudflare", "adapters/cloudflare"],
  "tanstack-ai": ["entry/tanstack-ai", "adapters/tanstack-ai", "formats/tanstack-model"],
  "openai-agents": ["entry/openai-agents", "adapters/openai-agents", "adapters/agent-runs", "adapters/agent-session", "formats/openai-agents"],
  shared: ["adapters/threads", "adapters/calls", "adapters/turn"],
};

/** KB that an adapter may have beside its 3: the format of its SDK, and a session of its SDK. */
const MORE = [[/^formats\//, 0.25], [/session/, 1]];

test("E23: an adapter is at most 3 KB, minified and gzipped, with the format of its SDK a quarter more, and with a session of its SDK one more", async () => {
  for (const [name, files] of Object.entries(ADAPTERS)) {
    const size = await sizeOf(files.map((file) => join(pkg, `dist/${file}.js`)));
    const more = MORE.map(([pattern, kilobytes]) => (files.some((file) => pattern.test(file)) ? kilobytes : 0));
    assert.ok(size > 500 && size <= (3 + more[0] + more[1]) * 1024, `${name}: ${size} bytes`);
  }
});

/** Bytes of these scripts in the bundle of an app, without what they share with the others. */
async function sizeOf(files) {
  const own = new Set(files);
  const others = ({ path, importer }) => (own.has(join(dirname(importer), path)) ? undefined : { path, external: true });
  const plugin = { name: "others", setup: ({ onResolve }) => onResolve({ filter: /^\./ }, others) };
  const entries = files.filter((file) => file.includes("/entry/"));
  const contents = (entries.length > 0 ? entries : files).map((file) => `export * from ${JSON.stringify(file)};`).join("\n");
  const stdin = { contents, resolveDir: pkg };
  const { outputFiles } = await build({ stdin, bundle: true, minify: true, format: "esm", write: false, plugins: [plugin] });
  return gzipSync(outputFiles[0].text, { level: 9 }).length;
}

test("E23: no script names an SDK, and an app with any version of one installs: npm refuses another even where it is optional", () => {
  assert.equal(all[0][1].peerDependencies, undefined);
  const dist = new URL("pkg/dist/", root);
  for (const file of readdirSync(dist, { recursive: true }).filter((file) => /\.(js|d\.ts)$/.test(file))) {
    assert.doesNotMatch(read(`pkg/dist/${file}`), /(?:from ?|import\()"(?:agents|ai|openai|langchain|@opentelemetry\/api|@cloudflare\/ai-chat|@anthropic-ai\/sdk|@(?:ai-sdk|langchain|mastra|openai|tanstack)\/[\w-]+|agents\/[\w-]+)"/, file);
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

test("f36_what the profile asks of the linker is in force", () => {
  // Without `lto` the module has more than 12,000 functions.
  const found = functions(readFileSync(join(pkg, "core.wasm")));
  assert.ok(found < 7_000, `${found} functions`);
});
