/** Bundlers, and what needs none. */

import { FILES, large, main, missing, NODE, page } from "./texts.mjs";

const web = { "main.js": main, "dist/index.html": page() };
const build = [NODE, "build.mjs"];

/** The script of a bundler with webpack's options. */
const packed = (load) => `${load}
const options = { mode: "production", context: import.meta.dirname, entry: { main: "./main.js" } };
const stats = await new Promise((done, failed) => bundler(options).run((error, stats) => (error ? failed(error) : done(stats))));
const { errors, warnings } = stats.toJson({ all: false, errors: true, warnings: true });
if (errors.length > 0) throw new Error(errors[0].message);
for (const { message } of warnings) console.log("warning: " + message.trim());
`;

const rollup = `import { rollup } from "rollup";
import { nodeResolve } from "@rollup/plugin-node-resolve";
const onwarn = ({ message }) => console.log("warning: " + message.trim());
const bundle = await rollup({ input: "main.js", plugins: [nodeResolve({ browser: true })], onwarn });
await bundle.write({ dir: "dist", format: "es" });
`;

/** The first argument is JSON of what differs from the rest. */
const esbuild = `import { build } from "esbuild";
const { warnings } = await build({ bundle: true, minify: true, logLevel: "silent", ...JSON.parse(process.argv[2]) });
for (const { text } of warnings) console.log("warning: " + text);
`;
const esbuilt = (options) => [NODE, "build.mjs", JSON.stringify(options)];
const split = esbuilt({ entryPoints: ["main.js"], format: "esm", splitting: true, outdir: "dist" });
const guarded = (policy) => page().replace("<body>", `<meta http-equiv="Content-Security-Policy" content="${policy}"><body>`);

/** What a build does that has the files where its bundler would not copy them: the page shows it. */
export const copied = (folder) => `import { copyFileSync } from "node:fs";

for (const name of ["core", "compact", "rest", "shared"]) {
  copyFileSync(\`node_modules/context-compactor/\${name}.wasm\`, \`${folder}/\${name}.wasm\`);
}
`;

const blocked = FILES.map(
  (name) => `Connecting to '/${name}.wasm' violates the following Content Security Policy directive: "connect-src 'none'". The action has been blocked.`,
);
blocked.push(...FILES.map((name) => `Fetch API cannot load /${name}.wasm. Refused to connect because it violates the document's Content Security Policy.`));

const vite = (version, dev, warnings = large.vite) => ({
  packages: { vite: version },
  files: { "main.js": main, "index.html": page("/main.js") },
  cases: {
    build: { build: [NODE, "node_modules/vite/bin/vite.js", "build"], engine: "file", warnings },
    dev: { serve: [NODE, "node_modules/vite/bin/vite.js", "--strictPort", "--port", "PORT"], engine: dev },
  },
});

const parcelBuild = [NODE, "node_modules/parcel/lib/bin.js", "build", "index.html", "--no-autoinstall"];
/** It reads the `exports` of packages when it is asked to. */
const parcel = (resolver, cases) => ({
  packages: { parcel: "2.16.4" },
  files: { "main.js": main, "index.html": page(), "package.json": JSON.stringify({ private: true, type: "module", "@parcel/resolver-default": resolver }) },
  cases,
});

/** The map has each entry of the package as its manifest has it. */
const importMap = `import { cpSync, readFileSync, writeFileSync } from "node:fs";
const imports = {};
for (const name of ["context-compactor", "context-compactor-vocabularies"]) {
  const { exports } = JSON.parse(readFileSync("node_modules/" + name + "/package.json", "utf8"));
  for (const [part, to] of Object.entries(exports)) if (to.default) imports[name + part.slice(1)] = to.default.replace("./", "/" + name + "/");
  cpSync("node_modules/" + name, "dist/" + name, { recursive: true, filter: (from) => !from.includes("/cjs") });
}
for (const file of ["main.js", "app.mjs", "scenario.mjs"]) cpSync(file, "dist/" + file);
const page = readFileSync("dist/index.html", "utf8").replace("<body>", '<script type="importmap">' + JSON.stringify({ imports }) + "</script><body>");
writeFileSync("dist/index.html", page);
`;

const worker = `import * as library from "context-compactor";
import { app } from "./app.mjs";
addEventListener("message", ({ source }) => app(library).then((found) => source.postMessage({ found }), ({ stack }) => source.postMessage({ found: { stack } })));
`;
const registered = (options) => `navigator.serviceWorker.onmessage = ({ data: { found } }) => (globalThis.result = found);
navigator.serviceWorker.register("worker.js", ${options}).then(() => navigator.serviceWorker.ready).then(({ active }) => active.postMessage("go"));
`;

export const BUNDLERS = {
  "Vite 5": vite("5.4.21", "code"),
  "Vite 6": vite("6.4.6", "code"),
  "Vite 7": vite("7.3.8", "code"),
  "Vite 8": vite("8.3.8", "file"),
  "webpack 5": { packages: { webpack: "5.113.0" }, files: { ...web, "build.mjs": packed('import bundler from "webpack";') }, cases: { build: { build, engine: "file", warnings: large.webpack } } },
  "Rspack 2": { packages: { "@rspack/core": "2.3.3" }, files: { ...web, "build.mjs": packed('import { rspack as bundler } from "@rspack/core";') }, cases: { build: { build, engine: "file", warnings: large.rspack } } },
  "Parcel 2": parcel({}, { "build of a subpath": { build: parcelBuild, engine: "refused", fails: /Cannot load file/ } }),
  "Parcel 2 with `packageExports`": parcel({ packageExports: true }, { build: { build: parcelBuild, engine: "file" } }),
  "Rollup 4": {
    packages: { rollup: "4.68.8", "@rollup/plugin-node-resolve": "16.0.3" },
    files: { ...web, "build.mjs": rollup },
    cases: { build: { build, engine: "code", console: missing("") } },
  },
  esbuild: {
    packages: { esbuild: "0.28.2" },
    files: { ...web, "build.mjs": esbuild, "copy.mjs": esbuild + copied("files"), "one/index.html": page("main.js", "text/javascript"), "files/index.html": page() },
    cases: {
      modules: { build: split, engine: "code", console: missing("") },
      "one script (iife)": { build: esbuilt({ entryPoints: ["main.js"], format: "iife", outdir: "one" }), dist: "one", engine: "code", atMost: 2_700_000 },
      "modules, the files copied": { build: [NODE, "copy.mjs", JSON.stringify({ entryPoints: ["main.js"], format: "esm", splitting: true, outdir: "files" })], dist: "files", engine: "file" },
    },
  },
  "Bun's bundler": {
    packages: { "@oven/bun-linux-x64": "1.4.5" },
    files: web,
    cases: { build: { build: ["node_modules/@oven/bun-linux-x64/bin/bun", "build", "--minify", "--splitting", "--outdir=dist", "main.js"], engine: "code", console: missing("") } },
  },
  "import map": { packages: {}, files: { ...web, "build.mjs": importMap }, cases: { "no bundler": { build, engine: "file", atMost: 90_000 } } },
  "service worker": {
    packages: { esbuild: "0.28.2" },
    files: {
      "build.mjs": esbuild + copied("module"),
      "worker.js": worker,
      "dist/index.html": page(),
      "dist/main.js": registered("{}"),
      "module/index.html": page(),
      "module/main.js": registered('{ type: "module" }'),
    },
    cases: {
      "one script (iife)": { build: esbuilt({ entryPoints: ["worker.js"], format: "iife", outdir: "dist" }), engine: "code" },
      "one module, the files beside it": { build: esbuilt({ entryPoints: ["worker.js"], format: "esm", outdir: "module" }), dist: "module", engine: "file" },
    },
  },
  "Content-Security-Policy": {
    packages: { esbuild: "0.28.2" },
    files: {
      "main.js": main,
      "build.mjs": esbuild + copied("dist"),
      "dist/index.html": guarded("connect-src 'none'"),
      "dist/strict.html": guarded("script-src 'self'"),
      "dist/wasm.html": guarded("script-src 'self' 'wasm-unsafe-eval'"),
    },
    cases: {
      "`connect-src 'none'`": { build: split, engine: "code", console: blocked },
      "`script-src 'self'`": { path: "/strict.html", engine: "refused", error: /add 'wasm-unsafe-eval' to its script-src/ },
      "`script-src 'self' 'wasm-unsafe-eval'`": { path: "/wasm.html", engine: "file" },
    },
  },
};
