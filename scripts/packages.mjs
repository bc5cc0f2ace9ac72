/**
 * A part of the build, for the folder of a package whose `dist/` is there: declarations that no entry leads to go, and two more
 * forms are written.
 *
 * `node/` has the scripts of `dist/` in few files: Node takes as long for a file as for what is in it. Bundlers take those of
 * `dist/`, of which they can leave out what an app does not use.
 *
 * `cjs/` is for who cannot `require` ES modules, such as Jest. It has the scripts of `dist/` in one file, of which each entry runs its part: files of their own would each repeat what
 * translates them. Data is read from the files that the ES modules have, so that it is in the package once.
 */

import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { build } from "esbuild";
import { rolldown } from "rolldown";

const [folder] = process.argv.slice(2);
const [dist, cjs] = ["dist", "cjs"].map((kind) => join(folder, kind));

const all = readdirSync(dist, { recursive: true });
const entries = all.filter((path) => dirname(path) === "entry" && path.endsWith(".js")).map((path) => basename(path, ".js"));
const { exports: ways, bin = {} } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
const required = Object.values(ways).flatMap(({ require }) => (require ? [basename(require, ".js")] : []));

/** The declarations that some entries lead to. */
function declarations(entries) {
  const found = new Set(entries.map((name) => join(dist, `entry/${name}.d.ts`)));
  for (const file of found) {
    for (const [, path] of readFileSync(file, "utf8").matchAll(/(?:from |import\()"(\.[^"]+)\.js"/g)) found.add(join(dirname(file), `${path}.d.ts`));
  }
  return found;
}

const kept = declarations(entries);
for (const path of all.filter((path) => path.endsWith(".d.ts"))) if (!kept.has(join(dist, path))) rmSync(join(dist, path));

// The worker that is started by its address, which is nobody's import.
const worker = join(dist, "entry/worker-start.js");
if (existsSync(worker)) {
  await build({ entryPoints: [worker], outfile: worker, allowOverwrite: true, bundle: true, format: "esm", target: "es2022", legalComments: "none", minifyWhitespace: true, logLevel: "warning" });
}

await few(Object.values(ways).flatMap(({ node }) => (node ? [relative("node", node.default)] : [])));

rmSync(cjs, { recursive: true, force: true });
for (const file of declarations(required)) {
  const target = join(cjs, relative(dist, file));
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(file, target);
}
writeFileSync(join(cjs, "package.json"), '{ "type": "commonjs" }\n');

/** Paths as the scripts have them, which are as deep as the result is. */
const data = ["../wasm/inline*", "../wasm/tokenizer-inline.js", "../wasm/evaluator-inline.js", "./catalogue.js"];
const how = { bundle: true, platform: "node", target: "es2022", packages: "external", external: data, logLevel: "warning" };
await build({
  stdin: { contents: required.map((name) => `exports[${JSON.stringify(name)}] = () => require("./entry/${name}.js");`).join("\n"), resolveDir: dist },
  ...{ ...how, format: "cjs", outfile: join(cjs, "entry/all.js") },
  minifyWhitespace: true,
  // Jest has no `import()`.
  supported: { "dynamic-import": false },
  // Without an address there is no file beside it: the module comes as `wasm/….js` has it, which reads the file.
  define: { "import.meta.url": "undefined" },
});

mkdirSync(join(cjs, "wasm"), { recursive: true });
for (const path of all.filter((path) => /^wasm\/.*inline.*\.js$/.test(path))) {
  const name = basename(path, ".js").replace("inline-", "").replace("-inline", "").replace("inline", "core");
  const code = `const { readFile } = require("node:fs/promises");\nexports.bytes = () => readFile(\`\${__dirname}/../../${name}.wasm\`);\n`;
  writeFileSync(join(cjs, path), code);
}
if (existsSync(join(dist, "catalogue.js"))) writeFileSync(join(cjs, "entry/catalogue.js"), asScript("catalogue"));

/** What a module of `dist/` exports in its last line, taken from what is before it. */
function asScript(name) {
  return `const { readFileSync } = require("node:fs");
const { compileFunction } = require("node:vm");
const [script] = readFileSync(\`\${__dirname}/../../dist/${name}.js\`, "utf8").split("\\nexport const ");
module.exports = compileFunction(\`\${script}\\nreturn ${name};\`)();
`;
}

// The names beside it are how others find them without running it.
const entryPoints = required.map((name) => join(dist, `entry/${name}.js`));
const { metafile } = await build({ ...how, entryPoints, format: "esm", outdir: "names", write: false, metafile: true });
for (const name of required) {
  const names = metafile.outputs[`names/${name}.js`].exports;
  writeFileSync(join(cjs, `entry/${name}.js`), `module.exports = require("./all.js")${/^\w+$/.test(name) ? `.${name}` : `["${name}"]`}();\n0 && (module.exports = { ${names.join(", ")} });\n`);
}

/** Writes the scripts of some entries, and of the programs, in few files. All are one folder deep, so that all name what is beside them alike. */
async function few(entries) {
  if (entries.length === 0) return;
  const folderOfAll = join(folder, "node");
  const workers = existsSync(worker) ? [relative(dist, worker)] : [];
  const inputs = [...entries, ...workers, ...Object.values(bin).map((path) => relative("node", path))];
  const bundle = await rolldown({
    input: Object.fromEntries(inputs.map((path) => [path.replace(/\.js$/, ""), join(dist, path)])),
    platform: "neutral",
    external: /^[^./]/,
    preserveEntrySignatures: "allow-extension",
    experimental: { attachDebugInfo: "none" },
    // A store comes at once with who names it, and when it is needed with who does not.
    checks: { ineffectiveDynamicImport: false },
    plugins: [{ name: "beside", resolveId: beside }],
  });
  rmSync(folderOfAll, { recursive: true, force: true });
  await bundle.write({
    dir: folderOfAll,
    entryFileNames: "[name].js",
    chunkFileNames: "part/[name].js",
    paths: (id) => id.replace(/^beside:/, ""),
    comments: false,
    minify: false,
    codeSplitting: { includeDependenciesRecursively: false, groups: groups() },
  });
  for (const path of entries) writeFileSync(join(folderOfAll, path.replace(/\.js$/, ".d.ts")), `export * from "../../dist/${path}";\n`);
}

/** What is data is in the package once, but for the tables that are always needed. */
function beside(id) {
  const path = /([\w-]+\.wasm|wasm\/[\w-]*inline[\w-]*\.js|catalogue\.js|generated\/tables\/(?!maps|o200k)\w+\.js)$/.exec(id)?.[0];
  if (path) return { id: `beside:../../${path.endsWith(".wasm") ? "" : "dist/"}${path}`, external: true };
}

/** What is loaded together: what nearly all entries need, what counts tokens, and the rest of what a session is. */
function groups() {
  const of = (names) => new Set(names.flatMap((name) => [...reached(`${name}.js`)]));
  const small = of(["sql", "redis", "commands", "summarizers", "formats", "opentelemetry", "receipts"].map((name) => `entry/${name}`));
  const [tokens, engine] = [of(["entry/tokens-inline"]), of(["index"])];
  const tests = {
    base: (path) => small.has(path) && (engine.has(path) || tokens.has(path)),
    tokens: (path) => tokens.has(path),
    engine: (path) => engine.has(path),
  };
  const isPart = (path) => !path.startsWith("entry/");
  return Object.entries(tests).map(([name, test], nth) => ({
    name,
    priority: 3 - nth,
    test: (id) => isPart(relative(dist, id)) && test(relative(dist, id)),
  }));
}

/** A script of `dist/` and those that come with it. */
function reached(path, found = new Set()) {
  if (found.has(path) || path.startsWith("wasm/inline")) return found;
  found.add(path);
  const script = readFileSync(join(dist, path), "utf8");
  for (const [, from] of script.matchAll(/^(?:import|export)\b[^;]*?"(\.[^"]+\.js)"/gm)) reached(join(dirname(path), from), found);
  return found;
}
