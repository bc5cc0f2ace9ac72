/** What the apps of several rows share. */

export const NODE = process.execPath;

/** An app in the browser. */
export const main = `import * as library from "context-compactor";
import { app } from "./app.mjs";
app(library).then((found) => (globalThis.result = found));
`;

const head = '<!doctype html><link rel="icon" href="data:,">';
export const page = (script = "main.js", type = "module") => `${head}<body><script type="${type}" src="${script}"></script></body>\n`;

/** Files that are loaded when they are asked for, or not at all, are counted too: tables of tokenizers, the engine as code. */
export const large = {
  vite: ["(!) Some chunks are larger than 500 kB after minification. Consider:"],
  webpack: ["warning: asset size limit: The following asset(s) exceed the recommended size limit (244 KiB)."],
  rspack: ["warning: ⚠ asset size limit: The following asset(s) exceed the recommended size limit (300.000 KiB). This can impact web performance."],
};

/** The files of the engine. */
export const FILES = ["compact", "core", "rest", "shared"];

/** What the browser says of requests for them below a folder, where they are not. */
export const missing = (folder) => FILES.map((name) => `404 ${folder}/${name}.wasm`);
