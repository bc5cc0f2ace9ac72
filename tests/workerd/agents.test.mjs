/** Agents of Cloudflare in workerd, as `withCompaction` and `toSessionsCompaction` of `context-compactor/cloudflare` have them (E16, E20, E21). */

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { DONE, fileText, holds, provider, TASK, WINDOW } from "../support/agents.mjs";
import { bundleWorker, startMortal } from "../support/worker.mjs";
import { toSessionsCompaction, withCompaction } from "context-compactor/cloudflare";

const CLASSES = ["Plain", "Chat", "Summarizing", "Strict", "Short", "Noting"];

let bundled, folder, host;
before(async () => {
  bundled = await bundleWorker(fileURLToPath(new URL(".", import.meta.url)), "./agents-worker.mjs", { node: true });
  folder = await mkdtemp(join(tmpdir(), "context-compactor-agents-"));
  host = await start();
});
after(async () => {
  await host?.worker.dispose();
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
});

function start() {
  return startMortal(bundled, {
    compatibilityFlags: ["nodejs_compat"],
    durableObjects: Object.fromEntries(CLASSES.map((className) => [className, { className, useSQLite: true }])),
    durableObjectsPersist: folder,
  });
}

/** Calls a method of the agent. */
async function call(kind, room, method, ...args) {
  const response = await host.worker.dispatchFetch(`http://localhost/${kind}/${room}/${method}`, { method: "POST", body: JSON.stringify(args) });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return JSON.parse(text);
}

/** Looks until it is so, which it must soon be. */
async function until(what, isSo) {
  for (const end = Date.now() + 30_000; !(await isSo()); await sleep(20)) assert.ok(Date.now() < end, `not in time: ${what}`);
}

let made = 0;
const user = (text) => ({ id: `u${++made}`, role: "user", parts: [{ type: "text", text }] });
const textOf = ({ parts }) => parts.filter(({ type }) => type === "text").map(({ text }) => text).join("");
const filesOf = (messages) => messages.flatMap(({ parts }) => parts.filter(({ type }) => type === "tool-read_file"));

/** A client of the chat in a room, over a socket as `useAgentChat` has it. */
async function enter(kind, room, body) {
  const address = `http://localhost/agents/${kind.toLowerCase()}/${room}`;
  const { webSocket } = await host.worker.dispatchFetch(address, { headers: { upgrade: "websocket" } });
  const frames = [];
  webSocket.addEventListener("message", ({ data }) => frames.push(JSON.parse(data)));
  webSocket.accept();
  const client = {
    messages: async () => (await host.worker.dispatchFetch(`${address}/get-messages`)).json(),
    send: (frame) => webSocket.send(JSON.stringify(frame)),
    /** Posts the conversation, and resolves to it with the answer. */
    async post(messages, trigger = "submit-message") {
      const id = (client.asked = `r${++made}`);
      client.send({ type: "cf_agent_use_chat_request", id, init: { method: "POST", body: JSON.stringify({ messages, trigger, ...body }) } });
      await until("the answer", () => frames.some((frame) => frame.id === id && frame.done));
      client.error = frames.find((frame) => frame.id === id && frame.error)?.body;
      return client.messages();
    },
    say: async (text) => client.post([...(await client.messages()), user(text)]),
  };
  return client;
}

/** Stops three times to ask, in place of a file, and is told to go on. */
const inTurns = { script: (nth) => (nth % 16 === 0 ? { text: "Shall I go on?", calls: [] } : undefined) };

/** Roles of a log of so many turns, each with these calls. */
const rolesOf = (...turns) => turns.flatMap((calls, at) => [...(at > 0 ? ["assistant"] : []), "user", ...Array.from({ length: calls }, () => ["assistant", "tool"]).flat()]);

const TURNS = rolesOf(15, 15, 15, 12);

describe("withCompaction", () => {
  for (const kind of ["Chat", "Summarizing"]) {
    test(`E16, E21: an agent dies without it, and ends its work in four turns with it (${kind})`, async (context) => {
      const server = await provider(context, inTurns);
      const plain = await enter("Plain", `${kind}-without`, { url: server.url });
      await plain.say(TASK);
      await plain.say("Go on.");
      assert.match(plain.error, /maximum context length/);
      assert.ok(server.figures(`${kind}-without`).calls <= 26);

      const room = `${kind}-with`;
      const client = await enter(kind, room, { url: server.url });
      let messages = await client.say(TASK);
      for (let turn = 1; turn < 4; turn++) messages = await client.say("Go on.");
      assert.equal(textOf(messages.at(-1)), DONE);
      const figures = server.figures(room);
      holds(figures);
      assert.equal(figures.summaries > 0, kind === "Summarizing");
      // The agent has all: each file as it was read.
      assert.equal(messages.length, 8);
      const files = filesOf(messages);
      assert.equal(files.length, 57);
      for (const { input, output } of files) assert.equal(output, fileText(input.nth));
      const { roles, ok, branches } = await call(kind, room, "look");
      assert.deepEqual(roles, TURNS);
      assert.deepEqual([ok, branches], [true, 0]);
      for (const { body } of server.requests.filter(({ kind }) => kind === "summary")) assert.deepEqual([body.model, body.tools], ["small", undefined]);
      assert.deepEqual(await call(kind, room, "warnings"), []);
    });
  }

  test("E16: the tables of both are in one SQLite", async () => {
    const tables = await call("Chat", "Chat-with", "tables");
    const ours = tables.filter((name) => name.startsWith("context_compactor_"));
    assert.equal(ours.length, 4);
    assert.ok(tables.includes("cf_agents_session_messages"));
  });

  test("E16: the object and its process end between turns: the session goes on, with its summaries", async (context) => {
    const server = await provider(context, inTurns);
    const open = () => enter("Summarizing", "restarted", { url: server.url });
    await (await open()).say(TASK);
    await (await open()).say("Go on.");
    const { summaries } = server.figures("restarted");
    assert.ok(summaries > 0);
    await assert.rejects(call("Summarizing", "restarted", "restart"), /restarted by the test/);
    await (await open()).say("Go on.");
    await host.kill();
    host = await start();
    const messages = await (await open()).say("Go on.");
    assert.equal(textOf(messages.at(-1)), DONE);
    holds(server.figures("restarted"));
    assert.equal(filesOf(messages).length, 57);
    const { roles, ok, branches } = await call("Summarizing", "restarted", "look");
    assert.deepEqual(roles, TURNS);
    assert.deepEqual([ok, branches], [true, 0]);
  });

  test("E16: the process ends within a turn: the agent takes it up again, and its session with it", async (context) => {
    const server = await provider(context);
    const client = await enter("Summarizing", "killed", { url: server.url });
    client.post([user(TASK)]).catch(() => "its socket ends with the process");
    await until("half of the calls", () => server.figures("killed").calls >= 30);
    await host.kill();
    host = await start();
    const again = await enter("Summarizing", "killed", { url: server.url });
    let messages;
    await until("the end of its work", async () => {
      messages = await again.messages();
      return messages.some((message) => textOf(message).includes(DONE));
    });
    const { problems, largest, refused } = server.figures("killed");
    assert.deepEqual([problems, refused], [[], 0]);
    assert.ok(largest <= WINDOW);
    const { ok, text } = await call("Summarizing", "killed", "look");
    assert.equal(ok, true);
    for (const { toolCallId } of filesOf(messages)) assert.ok(text.includes(toolCallId), toolCallId);
  });

  test("E16, E21: two rooms at once keep apart", async (context) => {
    const server = await provider(context);
    const rooms = ["one", "two"];
    const said = await Promise.all(rooms.map(async (room) => (await enter("Summarizing", room, { url: server.url })).say(TASK)));
    for (const [at, room] of rooms.entries()) {
      assert.equal(textOf(said[at].at(-1)), DONE);
      holds(server.figures(room));
      const { text, roles } = await call("Summarizing", room, "look");
      assert.deepEqual(roles, rolesOf(60));
      assert.ok(text.includes(`call_${room}_0`) && !text.includes(`call_${rooms[1 - at]}_0`));
    }
  });

  test("E16, E20: the provider says \"too long\" at call 30: one retry with less", async (context) => {
    const server = await provider(context, { overflowAt: 30 });
    const client = await enter("Chat", "overflow", { url: server.url });
    assert.equal(textOf((await client.say(TASK)).at(-1)), DONE);
    holds(server.figures("overflow"), { refusals: 1 });
  });

  test("E16: a message is answered anew, another one is edited: the session branches there and keeps what was said", async (context) => {
    const server = await provider(context, { files: 30 });
    const client = await enter("Chat", "edited", { url: server.url });
    const first = await client.say(TASK);
    const second = await client.say("Which of them is the longest?");
    const anew = await client.post(second.slice(0, -1), "regenerate-message");
    assert.equal(anew.length, 4);
    assert.equal((await call("Chat", "edited", "look")).branches, 0);
    const edited = await client.post([{ ...first[0], parts: user("Read no file.").parts }]);
    assert.deepEqual(edited.map(textOf), ["Read no file.", DONE]);
    assert.deepEqual(server.requests.at(-1).body.messages.map(({ content }) => content), ["You read files.", "Read no file."]);
    const { branches, text, ok } = await call("Chat", "edited", "look");
    assert.deepEqual([branches, ok], [1, true]);
    for (const said of [TASK, "the longest?", "Read no file.", "call_edited_29"]) assert.ok(text.includes(said), said);
  });

  test("E16: who clears the chat clears the session, also one that is damaged, and begins anew", async (context) => {
    const server = await provider(context, { files: 30 });
    const client = await enter("Chat", "cleared", { url: server.url });
    for (const [at, secret] of ["swordfish", "sesame"].entries()) {
      await client.say(`${TASK} The password is ${secret}.`);
      assert.ok((await call("Chat", "cleared", "look")).text.includes(secret));
      assert.ok((await call("Chat", "cleared", "rows")) > 30 - at * 29);
      if (at > 0) await call("Chat", "cleared", "damage");
      client.send({ type: "cf_agent_chat_clear" });
      await until("all is deleted", async () => (await call("Chat", "cleared", "rows")) === 0);
      assert.deepEqual(await client.messages(), []);
    }
    // More than one message, of which the session never saw any.
    await client.post([user("Hello."), { id: "a", role: "assistant", parts: [{ type: "text", text: "Hello!" }] }, user("How are you?")]);
    const { roles, text, branches } = await call("Chat", "cleared", "look");
    assert.deepEqual([roles, branches], [["user", "assistant", "user"], 0]);
    assert.ok(!/swordfish|sesame/.test(text));
    assert.deepEqual(await call("Chat", "cleared", "warnings"), []);
  });

  test("E16: an agent that keeps its newest messages alone: the log has the others", async (context) => {
    const server = await provider(context, inTurns);
    const client = await enter("Short", "short", { url: server.url });
    let messages = await client.say(TASK);
    for (let turn = 1; turn < 4; turn++) messages = await client.say("Go on.");
    assert.equal(textOf(messages.at(-1)), DONE);
    assert.equal(messages.length, 4);
    holds(server.figures("short"));
    const { roles, branches } = await call("Short", "short", "look");
    assert.deepEqual([roles, branches], [TURNS, 0]);
  });

  test("E16, E20: who cancels the answer cancels the summary that it waits for", async (context) => {
    const server = await provider(context, { summaryMs: 5_000 });
    const client = await enter("Summarizing", "cancelled", { url: server.url });
    const said = client.say(TASK);
    await until("a summary", () => server.requests.some(({ kind }) => kind === "summary"));
    client.send({ type: "cf_agent_chat_request_cancel", id: client.asked });
    const started = Date.now();
    await said;
    await until("its end", () => server.requests.at(-1).isAborted);
    assert.ok(Date.now() - started < 2_000);
    assert.equal((await call("Summarizing", "cancelled", "look")).ok, true);
  });

  test("E16, E20: the model looks up what left its context", async (context) => {
    const ask = (nth) => (nth === 62 ? { text: "", calls: [{ id: "r1", name: "recall_search", input: { query: "module3 part5" } }] } : undefined);
    const server = await provider(context, { script: ask });
    const client = await enter("Chat", "recall", { url: server.url });
    await client.say(TASK);
    const { parts } = (await client.say("What was in module 3?")).at(-1);
    assert.match(parts.find(({ type }) => type === "tool-recall_search").output, /src\/module3\/part5\.ts/);
    assert.ok((await call("Chat", "recall", "look")).usage.offloadCount > 0);
  });

  test("E16, E20: a failure of ours ends no call, unless it is to", async (context) => {
    const server = await provider(context, { files: 2 });
    for (const [kind, outcome] of [["Chat", DONE], ["Strict", ""]]) {
      const room = `${kind}-broken`;
      const client = await enter(kind, room, { url: server.url });
      await client.say("Hello.");
      await call(kind, room, "damage");
      const again = await enter(kind, room, { url: server.url, broken: true });
      const [last] = (await again.say("Go on.")).slice(-1);
      assert.equal(last.role === "assistant" ? textOf(last) : "", outcome);
      if (kind === "Chat") assert.match((await call(kind, room, "warnings"))[0], /the request was sent as it was given: nothing is left/);
      else assert.match(again.error, /nothing is left/);
    }
  });
});

describe("toSessionsCompaction", () => {
  const round = (nth) => [
    user(`What does src/module${nth}/part7.ts say?`),
    {
      id: `a${nth}`,
      role: "assistant",
      parts: [
        { type: "tool-read_file", toolCallId: `c${nth}`, state: "output-available", input: { nth }, output: fileText(nth) },
        { type: "text", text: `It says ${nth}07.` },
      ],
    },
  ];
  const rounds = (from, to) => Array.from({ length: to - from }, (_, at) => round(from + at)).flat();
  const summaryOf = (name) => `## Goal\nThe user asks what files say, one after the other.\n## State\n${name}: ${"each was read, and its line 7 was told. ".repeat(40)}`;
  const said = ({ parts }) => parts[0].text;

  test("E16: one overlay stands for the oldest messages, and the next one for it, too", async () => {
    const all = rounds(0, 30);
    await call("Noting", "notes", "add", all);
    const { result, error } = await call("Noting", "notes", "compact", summaryOf("The first"));
    assert.equal(error, undefined);
    const last = all.findIndex(({ id }) => id === result.toMessageId);
    assert.deepEqual([result.fromMessageId, last > 20], [all[0].id, true]);
    const { history, rows } = await call("Noting", "notes", "read");
    assert.deepEqual(history.slice(1), all.slice(last + 1));
    assert.match(history[0].id, /^compaction_/);
    assert.match(said(history[0]), new RegExp(`stands for ${last + 1} earlier messages.*The first: each was read`, "s"));
    // The messages are all there.
    assert.equal(rows, 60);

    const more = rounds(30, 50);
    await call("Noting", "notes", "add", more);
    const again = await call("Noting", "notes", "compact", summaryOf("The second"));
    assert.match(again.asked[0], /The first: each was read/);
    const next = [...all, ...more].findIndex(({ id }) => id === again.result.toMessageId);
    const after = await call("Noting", "notes", "read");
    assert.deepEqual(after.history.slice(1), [...all, ...more].slice(next + 1));
    assert.match(said(after.history[0]), /The second: each was read/);
    assert.equal(after.rows, 100);
  });

  test("E16: the session compacts by itself when it is long", async () => {
    await call("Noting", "auto", "compact", summaryOf("By itself"));
    await call("Noting", "auto", "add", rounds(0, 30), 12_000);
    const { history, compactions, rows } = await call("Noting", "auto", "read");
    assert.ok(compactions.length >= 1 && history.length < 60);
    assert.match(said(history[0]), /By itself/);
    assert.equal(rows, 60);
  });

  test("E16: nothing to summarize, or a model that fails: no overlay", async () => {
    await call("Noting", "none", "add", [user("Hello.")]);
    assert.equal((await call("Noting", "none", "compact", summaryOf("Nothing"))).result, null);
    await call("Noting", "none", "add", rounds(0, 30));
    const { result, error } = await call("Noting", "none", "compact", null);
    assert.equal(result, null);
    assert.match(error, /the summary failed \(the model is away\)/);
    assert.deepEqual((await call("Noting", "none", "read")).compactions, []);
  });

  test("E16: an overlay names messages of the session alone, never an overlay of before", async () => {
    const overlay = { id: "compaction_1", role: "assistant", parts: [{ type: "text", text: "What was said before. ".repeat(400) }] };
    const shorten = (messages) => toSessionsCompaction({ contextWindow: WINDOW, keep: { messages: 1 }, summarize: async () => summaryOf("Short") })(messages);
    const all = [overlay, ...rounds(0, 6)];
    const { fromMessageId, toMessageId } = await shorten(all);
    assert.deepEqual([fromMessageId, toMessageId], [all[1].id, all.at(-2).id]);
    assert.equal(await shorten([overlay, user("Hello.")]), null);
    assert.equal(await shorten([...rounds(0, 6), overlay, user("Hello.")]), null);
  });
});

test("E16: options that decide nothing here are refused", () => {
  class Agent {}
  for (const [name, remedy] of [["store", /contextCompactor of context-compactor\/ai-sdk/], ["thread", /this\.compactor\.with/]]) {
    assert.throws(() => withCompaction(Agent, { [name]: "memory" }), { code: "invalid_option", field: name, message: remedy });
  }
  assert.throws(() => new (withCompaction(Agent))(), { code: "invalid_option", field: "ctx" });
  assert.throws(() => toSessionsCompaction({ offload: { minChars: 100 } }), { code: "invalid_option", field: "offload" });
  assert.throws(() => toSessionsCompaction({ contextWindw: 100 }), { code: "invalid_option", message: /contextWindow/ });
});
