/** Every program of the READMEs and the docs, as it is written, with the packed packages where it says that it runs. */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { build } from "vite";
import { serveAgent } from "../support/agents.mjs";
import { launch, resultOf } from "../support/browser.mjs";
import { serveModel } from "../support/model.mjs";
import { serve } from "../support/serve.mjs";
import { bundleWorker, startWorker } from "../support/worker.mjs";
import { exec, packAll, project, temporaryFolder, withSdks } from "./project.mjs";
import { programs, promisedOutput, withEndpoint } from "./readme.mjs";

const read = (path) => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
const page = '<!doctype html><link rel="icon" href="data:,"><body></body><script type="module" src="/main.js"></script>\n';
const answer = "The answer of the model.";

const runs = { node: runInNode, sdk: runWithSdk, browser: runInBrowser, worker: runInWorker, "durable-object": runInDurableObject, agent: runInAgent };

/** Programs that need more than a project run elsewhere: their place, and the test that takes them from their page. */
const elsewhere = {
  esbuild: "tests/matrix/environments.test.mjs",
  postgres: "tests/node/sql-store.test.mjs",
  otel: "tests/node/opentelemetry.test.mjs",
  server: "tests/node/losses.test.mjs",
  page: "tests/node/losses.test.mjs",
  thread: "tests/browser/opfs.test.mjs",
  ui: "tests/browser/ui.test.mjs",
};
/** What a block may be that is no program. */
const LANGUAGES = ["json", "sh", "sql", "text", "toml"];
const pages = ["README.md", ...readdirSync(new URL("../../docs/", import.meta.url), { recursive: true }).filter((path) => path.endsWith(".md")).map((path) => `docs/${path}`).sort()];

let temporary, archives, model;

test("E27: a block of the docs is a program that runs, or no program", () => {
  for (const page of pages) {
    const text = read(page);
    const found = programs(text);
    const fences = Array.from(text.matchAll(/^(?:```|````)(\w.*)$/gm), ([, language]) => language);
    const others = fences.filter((language) => !LANGUAGES.includes(language));
    assert.deepEqual(others, found.map(({ language, place }) => `${language} ${place}`), page);
    for (const { line, place } of found) {
      if (!(place in runs)) assert.ok(place in elsewhere && read(elsewhere[place]).includes(page), `${page}, line ${line}: nothing runs it`);
    }
  }
});

test("README.md and docs", async (context) => {
  temporary = await temporaryFolder(context);
  archives = await packAll(temporary);
  model = await serveModel(() => answer);
  context.after(() => model.close());
  const found = pages.flatMap((page) => programs(read(page)).map((program) => ({ page, ...program }))).filter(({ place }) => place in runs);
  assert.deepEqual([...new Set(found.map(({ place }) => place))].sort(), Object.keys(runs).sort());
  for (const { page, line, place, code } of found) {
    await context.test(`${page}, line ${line}, in ${place}`, () => runs[place](`${page.replaceAll(/\W/g, "-")}-${line}`, code));
  }
  for (const name of ["evaluator", "vocabularies"]) {
    const [{ place, code }, ...others] = programs(read(`pkg-${name}/README.md`));
    assert.deepEqual([place, others], ["node", []]);
    await context.test(`that of the ${name}`, () => runInNode(name, code));
  }
});

/** An empty project with the program. */
function install(name, code) {
  const files = { "index.html": page, "main.js": withEndpoint(code, model.url) };
  return project(join(temporary, name), archives, files);
}

const shared = new Map();

/** A folder of its own for a program, in a project that such programs share. */
async function beside(kind, name, code, complete = () => {}) {
  if (!shared.has(kind)) shared.set(kind, project(join(temporary, kind), archives, {}).then(async (folder) => (await complete(folder), folder)));
  const folder = join(await shared.get(kind), name);
  await mkdir(folder);
  await writeFile(join(folder, "main.js"), code);
  return folder;
}

/** It ends well, and prints what its comments say. */
async function runInNode(name, code) {
  const folder = await beside("node", name, withEndpoint(code, model.url));
  const { stdout, stderr } = await exec(process.execPath, ["main.js"], { cwd: folder });
  assert.equal(stderr, "");
  const promised = promisedOutput(code);
  if (promised) assert.match(stdout, promised);
}

/** It ends well beside the SDKs, whose keys and addresses are in the environment, and prints what its comments say. */
async function runWithSdk(name, code) {
  const folder = await beside("sdk", name, code, withSdks);
  const agent = await serveAgent();
  const keys = { OPENAI_API_KEY: "key", OPENAI_BASE_URL: `${agent.url}/v1`, ANTHROPIC_API_KEY: "key", ANTHROPIC_BASE_URL: agent.url };
  // Traces are sent to OpenAI, whatever the address of the model.
  keys.OPENAI_AGENTS_DISABLE_TRACING = "1";
  const running = exec(process.execPath, ["main.js"], { cwd: folder, env: { ...process.env, ...keys } });
  const { stdout } = await running.finally(() => agent.close());
  assert.deepEqual(agent.figures().problems, []);
  assert.match(stdout, promisedOutput(code));
}

/** It ends without an error, and the page shows what the model answered. */
async function runInBrowser(name, code) {
  const folder = await install(name, `${code}\nglobalThis.result = document.body.textContent.trim();\n`);
  await build({ root: folder, logLevel: "error" });
  const server = await serve(join(folder, "dist"));
  const browser = await launch("chrome");
  try {
    assert.equal(await resultOf(browser, `${server.url}/`), answer);
  } finally {
    await browser.close();
    await server.close();
  }
}

/** It answers a history with a smaller one, for which it called the provider once, with its key. */
async function runInWorker(name, code) {
  const folder = await install(name, code);
  const keys = [...code.matchAll(/\benv\.([A-Z_]+)/g)].map(([, key]) => [key, "the key"]);
  const worker = await startWorker(await bundleWorker(folder, "./main.js"), { bindings: Object.fromEntries(keys) });
  const calls = model.requests.length;
  try {
    const messages = Array.from({ length: 40 }, (_, at) => ({
      role: at % 2 ? "assistant" : "user",
      content: `${at}. ${"words of a long conversation ".repeat(20)}`,
    }));
    const body = JSON.stringify({ messages });
    const response = await worker.dispatchFetch("http://localhost/", { method: "POST", body });
    const result = await response.json();
    assert.equal(result.success, true);
    assert.ok(result.currentTokens < result.previousTokens);
    assert.ok(result.messages[0].content.includes(answer));
    assert.deepEqual(result.messages.at(-1), messages.at(-1));
    assert.equal(model.requests.length, calls + 1);
    if (keys.length > 0) assert.match(JSON.stringify(model.requests.at(-1).headers), /the key/);
  } finally {
    await worker.dispose();
  }
}

/** What passes requests on to the object of the program, and ends it. */
const front = `
  Chat.prototype.end = function () {
    this.ctx.abort("ended");
  };
  export default {
    async fetch(request, env) {
      const chat = env.CHAT.get(env.CHAT.idFromName("a"));
      const { message, end } = await request.json();
      return Response.json(await (end ? chat.end().catch(() => "ended") : chat.send(message)));
    },
  };`;

/** It returns what it was sent, also when the object has ended in between. */
async function runInDurableObject(name, code) {
  const folder = await install(name, `${code}\n${front}`);
  const durableObjects = { CHAT: { className: "Chat", useSQLite: true } };
  const worker = await startWorker(await bundleWorker(folder, "./main.js"), { durableObjects });
  const post = async (question) => {
    const response = await worker.dispatchFetch("http://localhost/", { method: "POST", body: JSON.stringify(question) });
    return response.json();
  };
  try {
    const said = [{ role: "user", content: "Hello!" }, { role: "assistant", content: "Hi." }, { role: "user", content: "你好" }];
    assert.deepEqual(await post({ message: said[0] }), said.slice(0, 1));
    assert.deepEqual(await post({ message: said[1] }), said.slice(0, 2));
    assert.equal(await post({ end: true }), "ended");
    assert.deepEqual(await post({ message: said[2] }), said);
  } finally {
    await worker.dispose();
  }
}

/** What asks the agent of the program, beside the routes that the program has. */
const client = `
  Chat.prototype.ask = async function (text) {
    await this.saveMessages([...this.messages, { id: crypto.randomUUID(), role: "user", parts: [{ type: "text", text }] }]);
    return this.messages.at(-1).parts.length;
  };
  export default {
    fetch: async (request, env) =>
      new URL(request.url).pathname === "/" ? Response.json(await env.Chat.get(env.Chat.idFromName("a")).ask("Read the files 0 to 59.")) : app.fetch(request, env),
  };`;

/** It makes all calls of its task, each in the window. */
async function runInAgent(name, code) {
  const folder = await install(name, `${code.replace("export default", "const app =")}\n${client}`);
  await withSdks(folder);
  const agent = await serveAgent();
  const worker = await startWorker(await bundleWorker(folder, "./main.js", { node: true }), {
    compatibilityFlags: ["nodejs_compat"],
    bindings: { OPENAI_API_KEY: "key", OPENAI_BASE_URL: `${agent.url}/v1` },
    durableObjects: { Chat: { className: "Chat", useSQLite: true } },
  });
  try {
    assert.ok((await (await worker.dispatchFetch("http://localhost/")).json()) > 120);
    const { calls, refused, problems } = agent.figures("key");
    assert.deepEqual([calls, refused, problems], [61, 0, []]);
    assert.equal((await worker.dispatchFetch("http://localhost/none")).status, 404);
  } finally {
    await worker.dispose();
    await agent.close();
  }
}
