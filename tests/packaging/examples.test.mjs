/** The examples, run as they are with the packed package and a model that is a local server. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { build } from "vite";
import { launch } from "../support/browser.mjs";
import { serveModel } from "../support/model.mjs";
import { serve } from "../support/serve.mjs";
import { bundleWorker, startWorker } from "../support/worker.mjs";
import { exec, packAll, project, temporaryFolder, withSdks } from "./project.mjs";

const examples = fileURLToPath(new URL("../../examples/", import.meta.url));
const typescript = fileURLToPath(import.meta.resolve("typescript/bin/tsc"));
const summary = "## Current Status\nThe numbers were counted.";

test("examples", async (context) => {
  const temporary = await temporaryFolder(context);
  const archives = await packAll(temporary);
  const model = await serveModel(({ system, messages }) => (system ? summary : `You said: ${messages.at(-1).content}`));
  context.after(() => model.close());

  /** A copy of an example with the archives installed, and the SDKs where it says so. Its TypeScript has no errors. */
  async function install(name, { sdks = false } = {}) {
    const names = await readdir(join(examples, name));
    const sources = names.filter((file) => file !== "package.json" && file !== "node_modules" && file !== "dist");
    const texts = sources.map(async (file) => [file, await readFile(join(examples, name, file), "utf8")]);
    const folder = await project(join(temporary, name), archives, Object.fromEntries(await Promise.all(texts)));
    if (sdks) await withSdks(folder);
    if (sources.includes("tsconfig.json")) {
      await exec(process.execPath, [typescript, "-p", folder]).catch(({ stdout }) => assert.fail(stdout));
    }
    return folder;
  }

  await context.test("each has a manifest that takes the package from this repository", async () => {
    for (const name of await readdir(examples)) {
      const manifest = JSON.parse(await readFile(join(examples, name, "package.json"), "utf8"));
      assert.equal(manifest.dependencies["context-compactor"], "file:../../pkg");
      assert.equal(manifest.name, name);
    }
  });

  await context.test("node-agent answers from a month of logs in a window of 5,000 tokens", async () => {
    const folder = await install("node-agent");
    const { stdout } = await exec(process.execPath, ["agent.mjs"], { cwd: folder });
    assert.match(stdout, /\d+ results offloaded: \d+ tokens\n/);
    assert.match(stdout, /history summarised: \d+ tokens\n/);
    assert.match(stdout, /A job failed on the days 9, 18, 27\.\n/);
    assert.match(stdout, /\{ verbatim: \d+, summarized: \d+(, offloaded: \d+)? \} valid: true\n$/);
    for (const [, used] of stdout.matchAll(/^(\d+) of 5000 tokens$/gm)) assert.ok(Number(used) <= 4_500);
  });

  await context.test("E22: ai-sdk reads a month of logs in a window of 8,000 tokens, in two turns with a divider for each compaction", async () => {
    const folder = await install("ai-sdk", { sdks: true });
    const { stdout, stderr } = await exec(process.execPath, ["agent.mjs"], { cwd: folder });
    assert.equal(stderr, "");
    assert.match(stdout, /^user: On which days .*\n(--- [\w, ]+: \d+ of 8000 tokens are used now ---\n)+assistant: A job failed on the days 9, 18 and 27\.\n/);
    const [, largest] = stdout.match(/33 calls, the largest prompt of (\d+) tokens\n65 messages in the log, valid: true\n$/);
    assert.ok(Number(largest) < 8_000);
  });

  await context.test("E22: openai reads 40 files in a window of 8,000 tokens, of which the provider takes no more", async () => {
    const folder = await install("openai", { sdks: true });
    const { stdout, stderr } = await exec(process.execPath, ["agent.mjs"], { cwd: folder });
    assert.equal(stderr, "");
    assert.match(stdout, /^The files 9, 18, 27 and 36 mention an error\.\n41 calls, the largest prompt of \d+ tokens; the app has 83 messages\n/);
    assert.match(stdout, /offloaded: \d+ } valid: true\n$/);
  });

  await context.test("E22: langchain reads 40 files in a window of 8,000 tokens, in two turns of a thread", async () => {
    const folder = await install("langchain", { sdks: true });
    const { stdout, stderr } = await exec(process.execPath, ["agent.mjs"], { cwd: folder });
    assert.equal(stderr, "");
    const answer = "The files 9, 18, 27 and 36 mention an error\\.\n";
    assert.match(stdout, new RegExp(`^${answer}${answer}42 calls, the largest prompt of \\d+ tokens; the state has 84 messages\n83 messages in the log, valid: true\n$`));
  });

  await context.test("E22: mastra reads a month of logs in a window of 8,000 tokens, in two turns of a thread", async () => {
    const folder = await install("mastra", { sdks: true });
    const { stdout, stderr } = await exec(process.execPath, ["agent.mjs"], { cwd: folder });
    assert.equal(stderr, "");
    const answer = "A job failed on the days 9, 18 and 27\\.\n";
    assert.match(stdout, new RegExp(`^${answer}${answer}33 calls, the largest prompt of \\d+ tokens\n65 messages in the log, valid: true\n$`));
  });

  await context.test("E22: openai-agents reads 40 files in a window of 8,000 tokens, in two turns of a session", async () => {
    const folder = await install("openai-agents");
    await withSdks(folder);
    const { stdout, stderr } = await exec(process.execPath, ["agent.mjs"], { cwd: folder });
    assert.equal(stderr, "");
    const answer = "The files 9, 18, 27 and 36 mention an error\\.\n";
    const figures = "42 calls, the largest prompt of [1-7]\\d{3} tokens; the session has 84 items\n83 items in the log, valid: true\n";
    assert.match(stdout, new RegExp(`^${answer}${answer}${figures}$`));
  });

  await context.test("E22: tanstack-ai reads 40 files in a window of 8,000 tokens, in two runs of a thread", async () => {
    const folder = await install("tanstack-ai");
    await withSdks(folder);
    const { stdout, stderr } = await exec(process.execPath, ["agent.mjs"], { cwd: folder });
    assert.equal(stderr, "");
    const answer = "The files 9, 18, 27 and 36 mention an error\\.\n";
    assert.match(stdout, new RegExp(`^${answer}${answer}42 calls, the largest prompt of \\d+ tokens; the page has 40 results\n83 messages in the log, valid: true\n$`));
  });

  await context.test("E22: use-chat: the page and the table have all messages over a restart, with a divider where the prompt became shorter", async (context) => {
    const folder = await install("use-chat");
    await withSdks(folder);
    // Links lead out of the project, where there is another React.
    await build({ root: folder, logLevel: "error", resolve: { dedupe: ["react", "react-dom"] } });
    const env = { ...process.env, PORT: "0" };
    const output = [];
    const start = async () => {
      const server = spawn(process.execPath, ["server.mjs"], { cwd: folder, env, stdio: ["ignore", "pipe", "inherit"] });
      context.after(() => server.kill("SIGKILL"));
      const lines = createInterface({ input: server.stdout });
      lines.on("line", (line) => output.push(line));
      const [url] = await once(lines, "line");
      return { server, url };
    };
    const browser = await launch("chrome");
    context.after(() => browser.close());
    const page = await browser.newPage();
    const errors = [];
    page.on("pageerror", (error) => errors.push(error));
    const shown = () => page.$$eval("#messages > *", (items) => items.map(({ className, textContent }) => `${className} ${textContent}`.trim()));
    const settled = (text) => page.waitForFunction((text) => document.querySelector("#messages")?.textContent.includes(text), { timeout: 60_000 }, text);
    const enter = async (text) => {
      await page.waitForSelector("input:not([disabled])");
      await page.type("input", `${text}\n`);
    };

    let { server, url } = await start();
    await page.goto(url);
    await enter("Did a job fail on the days 1 to 30?");
    await settled("A job failed on the days 9, 18, 27.");
    const before = await shown();
    assert.equal(before[0], "user: Did a job fail on the days 1 to 30?");
    assert.equal(before.at(-1), "assistant: A job failed on the days 9, 18, 27.");
    assert.deepEqual(before.filter((text) => text.startsWith("tool ")), Array.from({ length: 30 }, (_, at) => `tool read_log {"day":${at + 1}}`));
    const dividers = before.filter((text) => text.startsWith("cc cc-divider"));
    assert.ok(dividers.length >= 2);
    for (const text of dividers) assert.match(text, /^cc cc-divider cc-divider-\w+ [A-Z][a-z, ]+[\d.,]+ → [\d.,]+ tokens/);

    server.kill("SIGKILL");
    await once(server, "exit");
    ({ server, url } = await start());
    await page.goto(url);
    await settled("A job failed");
    assert.deepEqual(await shown(), before);
    await enter("Are you sure?");
    await settled("I looked again: job 9-9 failed.");
    const messages = await (await fetch(`${url}/api/chat?id=chat-1`)).json();
    assert.deepEqual(messages.map(({ role }) => role), ["user", "assistant", "user", "assistant"]);
    const logs = messages[1].parts.filter(({ type }) => type === "tool-read_log");
    assert.equal(logs.length, 30);
    for (const { output } of logs) assert.equal(output.split("\n").length, 60);
    const prompts = output.flatMap((line) => line.match(/^a prompt of (\d+) tokens$/)?.[1] ?? []).map(Number);
    assert.equal(prompts.length, 33);
    assert.ok(Math.max(...prompts) < 8_000, `a prompt of ${Math.max(...prompts)} tokens`);
    for (const body of [{ id: "chat-1" }, { id: "chat-1", message: { role: "system", parts: [] } }]) {
      assert.equal((await fetch(`${url}/api/chat`, { method: "POST", body: JSON.stringify(body) })).status, 400);
    }
    assert.deepEqual(errors, []);
  });

  await context.test("E22: cloudflare-agent reads a month of logs in a window of 8,000 tokens, for each room", async () => {
    const folder = await install("cloudflare-agent", { sdks: true });
    const worker = await startWorker(await bundleWorker(folder, "./worker.ts", { node: true }), {
      compatibilityFlags: ["nodejs_compat"],
      durableObjects: { Reader: { className: "Reader", useSQLite: true } },
    });
    try {
      const ask = async (room, text) => (await worker.dispatchFetch(`http://localhost/${room}?text=${text}`)).json();
      const { said, messages, prompts, log, valid } = await ask("ada", "On which days did a job fail?");
      assert.deepEqual([said, messages, prompts.length, log, valid], ["A job failed on the days 9, 18 and 27.", 2, 32, 63, true]);
      assert.ok(Math.max(...prompts) < 8_000, prompts.join(" "));
      const again = await ask("ada", "Are you sure?");
      assert.deepEqual([again.messages, again.prompts.length, again.log], [4, 33, 65]);
      assert.equal((await ask("bo", "On which days did a job fail?")).messages, 2);
    } finally {
      await worker.dispose();
    }
  });

  await context.test("systems: each of the five designs goes its own way through the run, loses nothing, and finds what left again", async () => {
    const folder = await install("systems");
    const run = async (name) => {
      const { stdout, stderr } = await exec(process.execPath, [`${name}.mjs`], { cwd: folder });
      assert.equal(stderr, "", name);
      assert.match(stdout, /\d+ messages in the log, valid: true; found again: true\n$/, name);
      return stdout;
    };
    const counts = (stdout, pattern) => Array.from(stdout.matchAll(pattern), ([, before, after]) => [Number(before), Number(after)]);

    const offload = await run("offload");
    assert.match(offload, /^(offload: \d+ results, \d+ tokens freed\n)+compact: \d+ → \d+ tokens, [1-9]\d* offloads deleted\n/);
    assert.match(offload, /> \/context\n[\d,]+ \/ 16,000 tokens \([\d.]+%\)\n.*\nCompaction at 9,000 tokens\n/);
    assert.match(offload, /> \/compact\n[\d,]+ → [\d,]+ tokens\nFreed [\d,]+ tokens/);

    const react = await run("react");
    assert.match(react, /^info: Tool result too large \(\d+ chars\), applying streaming compression\.\.\.\ninfo: Breaking result into 3 chunks for summarization\n/);
    assert.match(react, /warn: Context size \d+ exceeds threshold 19200, triggering global compression\.\.\.\n(info: Turn \d+: Compressed result \d+ → \d+ chars\n)+info: Global compression complete/);
    assert.match(react, /22 turns, [\d.]+ % of the limit, needs compression: false\nevery thought and action as it was: true\n/);

    const layered = await run("layered");
    const [auto, manual] = counts(layered, /^a summary: (\d+) → (\d+) tokens$/gm);
    assert.ok(auto[1] < auto[0] && manual[1] < manual[0]);
    assert.match(layered, /micro: [1-9]\d* old results cleared, 3 whole\n/);
    assert.match(layered, /manual: the model was told to keep the exact times\n/);

    const factor3 = await run("factor3");
    const [[whole, digest]] = counts(factor3, /^digest: (\d+) → (\d+) characters$/gm);
    assert.ok(digest < whole / 2);
    const halves = counts(factor3, /^at half of the window: (\d+) → (\d+) tokens$/gm);
    assert.ok(halves.length >= 3);
    for (const [before] of halves) assert.ok(before >= 6_000 && before < 9_000, String(before));
    assert.equal(factor3.match(/^## Token Usage @ /gm).length, halves.length);

    const checkpoint = await run("checkpoint");
    const inContext = Array.from(checkpoint.matchAll(/^checkpoint: \d+ → \d+ tokens, (\d+) in the context$/gm), ([, count]) => Number(count));
    assert.ok(inContext.length >= 4 && Math.max(...inContext) > inContext.at(-1), `they merge: ${inContext}`);
    assert.match(checkpoint, /> \/context snapshot\nSnapshot ID\n/);
    assert.match(checkpoint, /goal: completed, 1 decision\n/);
    assert.match(checkpoint, /> \/context list\nID .* messages\n> \/context restore ID\nBack at ID\.\nthe context is another one: true\n/);
  });

  await context.test("worker answers each user, keeps every message, and knows /compact", async () => {
    const folder = await install("worker");
    const tokens = { one: "ada", two: "bo" };
    const worker = await startWorker(await bundleWorker(folder, "./worker.ts"), {
      bindings: {
        ENDPOINT: `${model.url}/v1/chat/completions`,
        MODEL: "small",
        OPENAI_API_KEY: "secret",
        TOKENS: JSON.stringify(tokens),
      },
      durableObjects: { CHATS: { className: "Chat", useSQLite: true } },
    });
    try {
      const ask = (token, text) =>
        worker.dispatchFetch("http://localhost/", {
          method: text === undefined ? "GET" : "POST",
          headers: { authorization: `Bearer ${token}` },
          body: text === undefined ? null : JSON.stringify({ text }),
        });
      const said = [];
      for (const { content } of chat(12)) {
        const text = `${content} ${content}`;
        assert.deepEqual(await (await ask("one", text)).json(), { text: `You said: ${text}` });
        said.push({ role: "user", content: text }, { role: "assistant", content: `You said: ${text}` });
      }
      const { headers, body } = model.requests.at(-1);
      assert.deepEqual([headers.authorization, body.model], ["Bearer secret", "small"]);
      assert.match((await (await ask("one", "/compact")).json()).text, /tokens/);
      assert.equal((await (await ask("one", "still there?")).json()).text, "You said: still there?");
      const { content } = model.requests.at(-1).body.messages[0];
      assert.match(content.slice(0, content.indexOf(summary)), /^\[Compressed History\]\n\nThis page stands for 18 earlier messages .+\n\n$/);
      const asked = [{ role: "user", content: "still there?" }, { role: "assistant", content: "You said: still there?" }];
      assert.deepEqual(await (await ask("one")).json(), [...said, ...asked]);
      assert.deepEqual(await (await ask("two")).json(), []);
      for (const token of ["three", "constructor", ""]) assert.equal((await ask(token)).status, 401, token);
      assert.equal((await ask("two", { not: "a text" })).status, 400);
    } finally {
      await worker.dispose();
    }
  });

  await context.test("vite-chat answers, survives a reload, and knows /compact and /context", async () => {
    const folder = await install("vite-chat");
    await build({ root: folder, logLevel: "error" });
    const server = await serve(join(folder, "dist"));
    const browser = await launch("chrome");
    try {
      const page = await browser.newPage();
      const errors = [];
      page.on("pageerror", (error) => errors.push(error));
      const shown = () => page.$$eval("#messages li", (items) => items.map((item) => item.textContent));
      const settled = (text) =>
        page.waitForFunction((text) => document.querySelector("#messages").textContent.includes(text), {}, text);
      const enter = async (text) => {
        await page.$eval("input", (input, text) => (input.value = text), text);
        await page.focus("input");
        await page.keyboard.press("Enter");
      };
      await page.goto(`${server.url}/?endpoint=${model.url}/v1/chat/completions`);
      const said = [];
      for (const number of ["one", "two", "three", "four"]) {
        const text = `${number} ${"word ".repeat(100)}`.trim();
        await enter(text);
        await settled(`assistant: You said: ${number}`);
        said.push(`user: ${text}`, `assistant: You said: ${text}`);
      }
      assert.deepEqual(await shown(), said);

      await page.reload();
      await settled("You said: four");
      assert.deepEqual(await shown(), said);

      await enter("/context");
      await settled("8 messages · 0 tool calls · 0 offloads");
      await enter("/compact keep the numbers");
      await settled(" offloads.");
      const [first, ...rest] = await shown();
      assert.match(first.slice(0, first.indexOf(summary)), /^user: \[Compressed History\]\n\nThis page stands for 7 earlier messages .+\n\n$/);
      // Where a user's message is kept first, an acknowledgement stands between the summary and it (F24).
      const kept = rest.slice(0, -1).filter((text) => text !== "assistant: Understood. Continuing with compressed context.");
      assert.deepEqual(kept, said.slice(-kept.length));
      assert.equal(rest.length - 1 - kept.length, kept[0].startsWith("user: ") ? 1 : 0);
      assert.match(JSON.stringify(model.requests.at(-1).body), /keep the numbers/);
      await enter("still there?");
      await settled("assistant: You said: still there?");
      assert.deepEqual(errors, []);
    } finally {
      await browser.close();
      await server.close();
    }
  });
});

/** A conversation of `count` messages with text enough to be worth a summary. */
function chat(count) {
  return Array.from({ length: count }, (_, at) => ({
    role: at % 2 ? "assistant" : "user",
    content: `${at}. ${"counted numbers of things ".repeat(20)}`,
  }));
}
