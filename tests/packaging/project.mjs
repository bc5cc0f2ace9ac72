/** Empty projects with the packed packages installed. */

import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

export const exec = promisify(execFile);
export const pkg = fileURLToPath(new URL("../../pkg/", import.meta.url));
export const evaluator = fileURLToPath(new URL("../../pkg-evaluator/", import.meta.url));
export const vocabularies = fileURLToPath(new URL("../../pkg-vocabularies/", import.meta.url));
export const ui = fileURLToPath(new URL("../../pkg-ui/", import.meta.url));
const here = fileURLToPath(new URL("./", import.meta.url));

/** How every WebAssembly module that is code begins: compressed, in base64. */
export const base64Module = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2]).toString("base64");

/** A folder for the time of a test or suite, removed after it. In `parent`, so that nothing installed is found from it. */
export async function temporaryFolder(context, parent = tmpdir()) {
  const folder = await mkdtemp(join(parent, "context-compactor-"));
  context.after(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Packs the package as it would be published; resolves to the archive's path and the files in it. */
export async function pack(folder, from = pkg) {
  const { stdout } = await exec("npm", ["pack", "--json", "--pack-destination", folder], { cwd: from });
  const [{ filename, files }] = JSON.parse(stdout);
  return { archive: join(folder, filename), files: files.map(({ path }) => path).sort() };
}

/** Packs the package, its evaluator, the vocabularies and the parts for pages; resolves to the paths of their archives. */
export async function packAll(folder) {
  const packed = await Promise.all([pkg, evaluator, vocabularies, ui].map((from) => pack(folder, from)));
  return packed.map(({ archive }) => archive);
}

/** A project in `folder` with the archives installed, `packages` of others (versions by name), the scenarios, and `files`: texts by path. */
export async function project(folder, archives, files, packages = {}) {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "package.json"), '{ "private": true, "type": "module" }\n');
  const named = Object.entries(packages).map(([name, version]) => `${name}@${version}`);
  const from = named.length > 0 ? "--prefer-offline" : "--offline";
  await exec("npm", ["install", from, "--no-audit", "--no-fund", ...[archives].flat(), ...named], { cwd: folder });
  for (const file of ["scenario.mjs", "evaluation.mjs", "alone.mjs", "app.mjs"]) await cp(join(here, file), join(folder, file));
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), text);
  }
  return folder;
}

/** Puts the SDKs beside the package, by their own names and in the newest major. */
export async function withSdks(folder) {
  const sdks = { ai: "ai7", "@ai-sdk/openai": "ai7-openai", openai: "openai" };
  for (const name of ["@ai-sdk/react", "@anthropic-ai/sdk", "@cloudflare/ai-chat", "@cloudflare/workers-types", "@langchain/core", "@langchain/langgraph", "@langchain/openai", "@libsql/client", "@mastra/core", "@openai/agents", "@tanstack/ai", "@tanstack/ai-openai", "agents", "langchain", "react", "react-dom"]) sdks[name] = name;
  for (const [name, ours] of Object.entries(sdks)) {
    const place = join(folder, "node_modules", name);
    await mkdir(dirname(place), { recursive: true });
    await symlink(rootOf(ours), place);
  }
}

/** The folder of a package that the tests have. */
function rootOf(name) {
  // What has types alone cannot be imported.
  const path = fileURLToPath(import.meta.resolve(name.endsWith("-types") ? `${name}/package.json` : name));
  const end = path.lastIndexOf(`node_modules/${name}/`);
  return path.slice(0, end) + `node_modules/${name}`;
}
