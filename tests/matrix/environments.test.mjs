/**
 * The package in every bundler, framework and runtime of the table (E25): `npm test -- matrix`. `BLESS=1` writes what was measured to
 * the report, and `docs/environments.md` from it.
 */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { stripVTControlCharacters } from "node:util";
import { gzipSync } from "node:zlib";
import { exec, packAll, project } from "../packaging/project.mjs";
import { expected } from "../packaging/scenario.mjs";
import { launch, resultOf } from "../support/browser.mjs";
import { serve } from "../support/serve.mjs";
import { startServer } from "../support/started.mjs";
import { readReport, writeReport } from "./report.mjs";
import { ROWS } from "./rows.mjs";

/** Names of rows, divided by commas: these alone. */
const asked = process.env.CC_ROWS?.split(",");
const isLinux = `${process.platform} ${process.arch}` === "linux x64";

/** What a page loads of the package before the first call, gzipped, with all of the main entry: at most so much (Z21). */
const FIRST = 60_000;

const env = { ...process.env, NO_COLOR: "1", CI: undefined, NEXT_TELEMETRY_DISABLED: "1", WRANGLER_SEND_METRICS: "false", DENO_NO_UPDATE_CHECK: "1" };

describe("E25", { skip: !isLinux && "programs of the runtimes are those for Linux on x64" }, () => {
  const report = {};
  let folder, archives, browser;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), "context-compactor-"));
    archives = await packAll(folder);
    browser = await launch("chrome");
  });
  after(async () => {
    await browser?.close();
    await rm(folder, { recursive: true, force: true });
    if (process.env.BLESS === "1") writeReport({ ...readReport(), ...report });
  });

  for (const [name, { packages, files, cases }] of Object.entries(ROWS)) {
    if (asked && !asked.includes(name)) continue;
    test(`E25: ${name}`, async (context) => {
      const cwd = await project(join(folder, name.replaceAll(/\W/g, "-")), archives, files, packages);
      const found = {};
      let server;
      context.after(() => server?.stop());
      for (const [what, row] of Object.entries(cases)) {
        await context.test(`E25: ${name}: ${what}`, async (context) => {
          if (server && server.command !== row.serve) server = void (await server.stop());
          const measured = row.build ? await built(cwd, row.build, row.fails) : {};
          if (row.serve) server ??= { command: row.serve, ...(await startServer([resolve(cwd, row.serve[0]), ...row.serve.slice(1)], { cwd, env })) };
          try {
            if (!row.fails) Object.assign(measured, await did(browser, server?.url, cwd, row));
          } catch (cause) {
            throw new Error(`${cause.message}\n${server?.said() ?? ""}`, { cause });
          }
          context.diagnostic(JSON.stringify(measured));
          const { engine, warnings = [], console = [], first } = measured;
          assert.deepEqual({ engine, warnings, console }, { engine: row.engine, warnings: row.warnings ?? [], console: row.console ?? [] });
          if (row.error) assert.match(measured.error, row.error);
          const { atMost = FIRST } = row;
          assert.ok(first === undefined || (first > 5_000 && first <= atMost), `${first} bytes before the first call`);
          found[what] = measured;
        });
      }
      if (Object.keys(found).length === Object.keys(cases).length) report[name] = { packages, cases: found };
    });
  }
});

/** What a command warns of; of one that fails, the line that says why. */
async function built(cwd, [program, ...args], fails) {
  const run = exec(resolve(cwd, program), args, { cwd, env, maxBuffer: 1 << 26 });
  const { code = 0, stdout, stderr } = await run.catch((error) => error);
  const text = stripVTControlCharacters(stdout + stderr);
  assert.equal(code !== 0, fails !== undefined, text);
  const lines = text.split("\n").map((line) => line.trim());
  if (fails) {
    assert.match(text, fails);
    return { engine: "refused", error: lines.find((line) => fails.test(line)) };
  }
  return { warnings: lines.filter((line) => /^(warn|\(!\)|⚠)/i.test(line)) };
}

function did(browser, url, cwd, row) {
  if (row.run) return ran(cwd, row.run);
  return row.asks ? answered(url, row) : opened(browser, url, cwd, row);
}

/** What a program says that the app found. */
async function ran(cwd, [program, ...args]) {
  const { stdout, stderr } = await exec(resolve(cwd, program), args, { cwd, env });
  assert.equal(stderr, "");
  return checked(JSON.parse(stdout));
}

/** The same, by a server's answer, which is JSON or a page with it. */
async function answered(url, { path = "/" }) {
  const response = await fetch(url + path);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return checked(JSON.parse(/<pre>(.*)<\/pre>/s.exec(text)?.[1] ?? text));
}

/** The same, by a page: a server's, or that of a folder. */
async function opened(browser, url, cwd, { path = "/", dist = "dist", bare, serve: isServed, reloads = 0 }) {
  const own = isServed ? undefined : await serve(join(cwd, dist));
  const root = own?.url ?? url;
  try {
    for (let nth = 0; nth < reloads; nth++) await resultOf(browser, root + path, { timeout: 60_000 }).catch(() => {});
    const console = [];
    const onConsole = (message) => console.push(...saidBy(message, root));
    const { first, ...found } = await resultOf(browser, root + path, { timeout: 120_000, onConsole });
    const without = bare ? (await resultOf(browser, root + bare, { timeout: 60_000 })).first : [];
    // Servers for development send scripts as they are.
    const isBuilt = first.length > 0 && (own || bare);
    return { ...checked(found), console: [...new Set(console)].sort(), ...(isBuilt && { first: (await zipped(first)) - (await zipped(without)) }) };
  } finally {
    await own?.close();
  }
}

/** Errors and warnings of the console; of a request that failed its status and path. */
function saidBy(message, root) {
  if (!/^(error|warn)/.test(message.type())) return [];
  const text = message.text().replaceAll(root, "");
  const [, status] = /^Failed to load resource: .* status of (\d+)/.exec(text) ?? [];
  return [status ? `${status} ${new URL(message.location().url).pathname}` : text];
}

async function zipped(urls) {
  const sizes = await Promise.all(urls.map(async (url) => gzipSync(new Uint8Array(await (await fetch(url)).arrayBuffer()), { level: 9 }).length));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** It did what it does everywhere, or was refused: what is of this environment remains. */
function checked({ compacted, done, engine, error, stack }) {
  assert.equal(stack, undefined);
  if (engine === "refused") return { engine, error };
  assert.deepEqual({ compacted, done }, { compacted: { success: true, llmCalls: 0 }, done: expected });
  return { engine };
}
