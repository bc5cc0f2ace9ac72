/** docs/losses.md: the server that keeps watermarks, as it is written there. */

import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { memoryStore, openSession } from "context-compactor";

let folder;
let server;
let watermarkOf;
before(async () => {
  folder = await mkdtemp(join(tmpdir(), "context-compactor-losses-"));
  const text = await readFile(new URL("../../docs/losses.md", import.meta.url), "utf8");
  const block = async (name) => {
    const path = join(folder, `${name}.mjs`);
    await writeFile(path, new RegExp(`\`\`\`js ${name}\n([\\s\\S]*?)\`\`\``).exec(text)[1]);
    return import(pathToFileURL(path).href);
  };
  const { serveMarks } = await block("server");
  server = serveMarks((request) => request.headers.authorization);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { watermark } = await block("page");
  const { port } = server.address();
  const { fetch } = globalThis;
  // As the browser does for a page of this server, of this user.
  watermarkOf = (user) => {
    const through = async (work) => {
      globalThis.fetch = (path, init) => fetch(`http://127.0.0.1:${port}${path}`, { ...init, headers: { authorization: user } });
      return work().finally(() => (globalThis.fetch = fetch));
    };
    return { get: (key) => through(() => watermark.get(key)), set: (key, value) => through(() => watermark.set(key, value)) };
  };
});
after(async () => {
  server.close();
  await rm(folder, { recursive: true });
});

const options = (user) => ({ id: "chat", contextWindow: 32_000, advanced: { watermark: watermarkOf(user) }, store: memoryStore() });

async function say(session, ...texts) {
  for (const content of texts) await session.append({ role: "user", content });
}

test("D9, D19: with a mark on the server, a site whose data were all cleared is a loss and not a new session", async () => {
  const session = await openSession(options("anna"));
  await say(session, "one", "two");
  await session.close();
  // All that the browser had is gone: another store, and nothing else is known.
  await assert.rejects(openSession(options("anna")), (error) => error.code === "data_loss");
  const other = await openSession(options("berta"));
  assert.equal(other.archive.metadata().totalMessages, 0, "another user's session is another one");
  await other.close();
  const told = [];
  const anew = await openSession({ ...options("anna"), acceptDataLoss: true });
  anew.on("data-loss", ({ kind, lostRecords }) => told.push([kind, lostRecords]));
  await null;
  assert.deepEqual(told, [["session", 2]]);
  await anew.close();
});

test("D19: a script of the page cannot lower the mark, and a deletion leaves a trace", async () => {
  const watermark = watermarkOf("carla");
  await watermark.set("k", "0000000000.0000000000000002.s.h");
  await watermark.set("k", "0000000000.0000000000000001.s.h");
  assert.equal(await watermark.get("k"), "0000000000.0000000000000002.s.h");
  await assert.rejects(watermark.set("k", "9".repeat(2_000)), /413/);
  await watermark.set("k", "");
  assert.equal(await watermark.get("k"), "");
});

test("D19: without a mark and without mustExist nobody can tell, as the page says", async () => {
  const session = await openSession({ id: "chat", contextWindow: 32_000, store: memoryStore() });
  await say(session, "one");
  await session.close();
  const store = memoryStore();
  const fresh = await openSession({ id: "chat", contextWindow: 32_000, store });
  assert.equal(fresh.archive.metadata().totalMessages, 0);
  await fresh.close();
  await assert.rejects(
    openSession({ id: "chat", contextWindow: 32_000, store, mustExist: true }),
    (error) => error.code === "data_loss",
  );
});
